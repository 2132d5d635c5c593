"""Facts in files: every format, whole parts, nothing half-written."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from anyburl import DataError, OptionError
from anyburl.reasoning.completion.files import FactFile, FactStream, open_facts

FACTS = pl.DataFrame(
    {
        "subject": ["ed", "http://example.org/lisa", "a b\tc"],
        "relation": ["speaks", "http://example.org/speaks", "says"],
        "object": ["dutch", '"hallo"@nl', "_:b1"],
        "score": [0.8, 0.25, 1e-5],
        "probability": [0.5, None, None],
        "rule": ["speaks(X,Y) <= lives(X,A), lang(A,Y)", "r <= ", "s <= "],
        "rules": pl.Series([2, 1, 1], dtype=pl.Int32),
        "facts": [[["ed", "lives", "holland"], ["holland", "lang", "dutch"]], [], [["é", "r", '"x"']]],
    }
)


def write(path: Path, *parts: pl.DataFrame) -> Path:
    with FactFile(path) as file:
        for part in parts:
            file.add(part)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return path


def test_parquet(tmp_path: Path) -> None:
    assert pl.read_parquet(write(tmp_path / "m.parquet", FACTS[:1], FACTS[1:])).equals(FACTS)


@pytest.mark.parametrize("name", ["m.tsv", "m.tsv.gz"])
def test_tab_separated(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, FACTS[:2], FACTS[2:])
    text = (gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()).decode()
    lines = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    assert lines[0] == FACTS.columns
    assert [len(line) for line in lines] == [len(FACTS.columns)] * 4
    assert [line[3:5] for line in lines[1:3]] == [["0.8", "0.5"], ["0.25", ""]]
    assert (lines[3][0], lines[3][3]) == ("a b c", "1e-05")
    assert [json.loads(line[-1]) for line in lines[1:]] == FACTS["facts"].to_list()


def test_comma_separated(tmp_path: Path) -> None:
    read = pl.read_csv(write(tmp_path / "m.csv", FACTS[:2], FACTS[2:]))
    assert read.drop("facts").equals(FACTS.drop("facts").with_columns(pl.col("rules").cast(pl.Int64)))
    assert [json.loads(text) for text in read["facts"]] == FACTS["facts"].to_list()


def test_conflicts_are_written_as_json_where_there_are_some(tmp_path: Path) -> None:
    conflicts = pl.Series([None, ["lisa", "speaks", 'a "b"\tc'], None], dtype=pl.List(pl.String))
    path = write(tmp_path / "m.tsv", FACTS.with_columns(conflict=conflicts))
    told = [line.split("\t")[-1] for line in path.read_text().splitlines()]
    assert told[0] == "conflict"
    assert [json.loads(text) if text else None for text in told[1:]] == conflicts.to_list()


def test_json_lines(tmp_path: Path) -> None:
    lines = write(tmp_path / "m.jsonl", FACTS[:2], FACTS[2:]).read_text().splitlines()
    assert [json.loads(line) for line in lines] == FACTS.to_dicts()


@pytest.mark.parametrize("name", ["m.nt", "m.ttl"])
def test_rdf(tmp_path: Path, name: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")
    path = write(tmp_path / name, FACTS)
    kind = pyoxigraph.RdfFormat.N_TRIPLES if name.endswith(".nt") else pyoxigraph.RdfFormat.TURTLE
    found = [[str(term) for term in list(quad)[:3]] for quad in pyoxigraph.parse(path=str(path), format=kind)]
    assert found[0] == ["<urn:anyburl:ed>", "<urn:anyburl:speaks>", "<urn:anyburl:dutch>"]
    assert found[1] == ["<http://example.org/lisa>", "<http://example.org/speaks>", '"hallo"@nl']
    assert found[2][0] == "<urn:anyburl:a%20b%09c>"
    assert " . # score 0.8, probability 0.5, speaks(X,Y) <= lives(X,A), lang(A,Y)\n" in path.read_text()


def test_no_facts_leave_an_empty_file(tmp_path: Path) -> None:
    for name in ("m.parquet", "m.tsv", "m.jsonl", "m.nt"):
        path = tmp_path / name
        with FactFile(path) as file:
            file.add(FACTS[:0])
        assert path.is_file()
    assert pl.read_parquet(tmp_path / "m.parquet").equals(FACTS[:0])


def test_a_killed_process_leaves_whole_parts_and_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.tsv"
    path.write_text("old")
    killed = FactFile(path)
    killed.__enter__()
    killed.add(FACTS[:2])
    killed.add(FACTS[2:])
    killed._lock = None  # which the system lets go of
    assert path.read_text() == "old"
    assert pl.read_parquet(tmp_path / "m.tsv.parts" / "*.parquet").equals(FACTS)
    write(path, FACTS[:1])
    assert len(path.read_text().splitlines()) == 2


def _interrupt_after(file: FactFile) -> KeyboardInterrupt:
    file.add(FACTS[:2])
    return KeyboardInterrupt()


def test_an_interrupt_keeps_what_was_found(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    file = FactFile(path)
    with pytest.raises(KeyboardInterrupt), file:
        raise _interrupt_after(file)
    assert len(path.read_text().splitlines()) == 2


def test_an_interrupt_before_the_first_part_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), FactFile(path):
        raise KeyboardInterrupt
    assert path.read_text() == "old"


def test_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with open_facts("-") as stream:
        assert isinstance(stream, FactStream)
        stream.add(FACTS[:1])
        stream.add(FACTS[1:])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["subject", "ed", "http://example.org/lisa", "a b c"]


@pytest.mark.parametrize("name", ["m.xlsx", "m", "m.parquet.gz", "m.xml"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match=r"ends in \.parquet, \.tsv, \.csv, \.jsonl, \.nt, \.ttl, \.nq, \.trig, or -"):
        open_facts(str(tmp_path / name))


def test_places_that_cannot_be_written_to_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        open_facts(str(tmp_path / "m.tsv"))
    with pytest.raises(DataError, match="does not exist"):
        open_facts(str(tmp_path / "no" / "m.tsv"))


def test_two_do_not_write_one_file_at_once(tmp_path: Path) -> None:
    """The second one would remove the parts of the first."""
    path = tmp_path / "m.tsv"
    with FactFile(path) as first:
        first.add(FACTS)
        with pytest.raises(DataError, match=r"m\.tsv is being written by another process"), FactFile(path):
            pass
        first.add(FACTS)
    assert len(path.read_text().splitlines()) == 1 + 2 * len(FACTS)
    write(path, FACTS)


def test_a_folder_beside_the_file_keeps_what_is_not_ours(tmp_path: Path) -> None:
    parts = tmp_path / "m.tsv.parts"
    parts.mkdir()
    (parts / "notes.txt").write_text("mine")
    (parts / "000000.parquet").write_text("of a process that was killed")
    with FactFile(tmp_path / "m.tsv") as file:
        file.add(FACTS)
    assert [file.name for file in parts.iterdir()] == ["notes.txt"]
    parts.rename(tmp_path / "elsewhere")
    parts.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match=r"m\.tsv\.parts is a symbolic link"):
        write(tmp_path / "m.tsv", FACTS)
    assert [file.name for file in (tmp_path / "elsewhere").iterdir()] == ["notes.txt"]
