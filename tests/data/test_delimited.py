"""CSV, TSV with a header, and Parquet: what is read, what is refused, and that nothing is lost on the way."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyburl.base.errors import DataError, InvalidOptionError
from anyburl.data import COLUMNS, load_dataset, read_triples, write_triples
from anyburl.data.files import read_batches
from anyburl.data.formats.delimited import _last_end
from anyburl.data.options import ReadOptions

ROWS = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch")]
NASTY = [
    "two words",
    "a,b",
    '"quoted"',
    '"',
    '""',
    "it's",
    "f(x, y)",
    "#1",
    "Ελλάδα",
    "東京",
    "http://example.org/a#b?c=d",
    "<http://example.org/>",
    "_:b0",
    "n" * 5000,
    "null",
    "1.0",
    " a ",
    "\\N",
]
BROKEN_LINES = ["one\ntwo", "one\r\ntwo", "\na", "tab\tbed", 'a,"\n"b', "end\r"]
in_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
labels = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)


def written(folder: Path, text: str, name: str = "train.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def refusal(path: Path, options: ReadOptions | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read_triples(path, options)
    return str(caught.value).removeprefix(f"{path.parent}/")


@pytest.mark.parametrize(
    "text",
    [
        "subject,relation,object\ned,speaks,dutch\nlisa,speaks,dutch\n",
        "Head,Relation,Tail\r\ned,speaks,dutch\r\nlisa,speaks,dutch",
        "\ufefftarget,label,source\ndutch,speaks,ed\n\ndutch,speaks,lisa\n\n",
        '"p","s","o"\n"speaks","ed","dutch"\nspeaks,lisa,dutch\n',
        "\n\r\ns,p,o\ned,speaks,dutch\nlisa,speaks,dutch",
    ],
)
def test_the_header_of_a_csv_file_says_where_the_labels_are(tmp_path: Path, text: str) -> None:
    frame = read_triples(written(tmp_path, text))
    assert frame.rows() == ROWS
    assert tuple(frame.columns) == COLUMNS


def test_columns_are_chosen_by_name_or_by_number(tmp_path: Path) -> None:
    text = "weight,verb,who,what\n1,speaks,ed,dutch\n,speaks,lisa,dutch\n"
    by_name = ReadOptions(columns=("who", "VERB", "what"))
    assert read_triples(written(tmp_path, text), by_name).rows() == ROWS
    assert read_triples(written(tmp_path, text.replace(",", "\t"), "train.tsv"), by_name).rows() == ROWS
    by_number = ReadOptions(columns=("3", "2", "4"))
    without = text.split("\n", 1)[1]
    assert read_triples(written(tmp_path, without), by_number).rows() == ROWS
    assert read_triples(written(tmp_path, without.replace(",", "\t"), "train.txt"), by_number).rows() == ROWS


def test_files_with_tabs_have_no_header_unless_columns_are_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, "subject\trelation\tobject\ned\tspeaks\tdutch\n", "train.tsv")
    assert read_triples(path).rows() == [COLUMNS, ROWS[0]]
    assert read_triples(path, ReadOptions(columns=COLUMNS)).rows() == ROWS[:1]


def test_quotes_mean_nothing_where_tabs_separate(tmp_path: Path) -> None:
    path = written(tmp_path, 's\tp\to\n"a\tb"\t"\n', "train.tsv")
    assert read_triples(path, ReadOptions(columns=("s", "p", "o"))).rows() == [('"a', 'b"', '"')]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "subject,relation,object,weight\na,b,c,1\n",
            "train.csv:1: expected three columns, got the columns subject, relation, object, weight; choose with "
            "--columns A,B,C, or by number if there is no header",
        ),
        ("ed,speaks,dutch\n", "train.csv:1: expected one each for subject, relation and object, got the columns ed,"),
        ("s,p,o\na,b,c\na,b\n", "train.csv:3: expected 3 fields, got 2: 'a,b'"),
        ("s,p,o\na,b,c,d\n", "train.csv:2: expected 3 fields, got 4: 'a,b,c,d'"),
        ("s,p,o\n\na,,c\n", "train.csv:3: expected a label, got an empty relation: 'a,,c'"),
        ('s,p,o\n"x\ny",b,c\na,b,""\n', "train.csv:4: expected a label, got an empty object: 'a,b,'"),
        ('s,p,o\n"a"b,c,d\n', "train.csv:2: expected fields separated by commas, quoted where needed: "),
        ('s,p,o\na,b,c\na,b,"c\n', "train.csv:3: expected fields separated by commas, quoted where needed: "),
        ("s,p,o\na,\0,c\n", "train.csv:2: expected text, got a NUL character"),
        ("s,p,o\n", "train.csv: expected lines with a subject, a relation and an object, got none"),
        ("", "train.csv: expected lines with a subject, a relation and an object, got none"),
        ("\n\n", "train.csv: expected lines with a subject, a relation and an object, got none"),
        ("\n\ns,p\na,b\n", "train.csv:3: expected three columns, got the columns s, p; choose with"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(tmp_path: Path, text: str, sentence: str) -> None:
    assert refusal(written(tmp_path, text)).startswith(sentence)


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_bytes(b"s,p,o\na,b,c\na,b,\xff\n")
    assert refusal(path) == "train.csv:3: expected UTF-8 text, got other bytes"


def test_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "s,p,o\na,b,c\n")
    missing = ReadOptions(columns=("s", "verb", "o"))
    assert refusal(path, missing) == "train.csv:1: expected a column 'verb', got the columns s, p, o"
    assert refusal(path, ReadOptions(columns=("1", "2", "4"))) == "train.csv:1: expected a column 4, got 3 columns"
    twice = ReadOptions(columns=("A", "p", "o"))
    assert "several of that name" in refusal(written(tmp_path, "a,a,p,o\nx,y,z,w\n"), twice)
    with pytest.raises(InvalidOptionError, match="columns must be the names of three columns"):
        ReadOptions(columns=("s", "s", "o"))


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".csv", ".csv.gz", ".csv.zst", ".parquet"])
def test_nasty_labels_survive_every_format(tmp_path: Path, suffix: str) -> None:
    nasty = NASTY if suffix.startswith(".tsv") or suffix.endswith(".zst") else [*NASTY, *BROKEN_LINES]
    rows = [(label, relation, "x") for label in nasty for relation in nasty] + [("x", "y", label) for label in nasty]
    path = tmp_path / f"train{suffix}"
    write_triples(rows, path)
    assert read_triples(path).rows() == rows
    assert sorted(load_dataset(tmp_path).train.to_polars().rows()) == sorted(rows)


@in_one_folder
@given(rows=st.lists(st.tuples(labels, labels, labels), min_size=1), size=st.integers(1, 50))
def test_any_labels_survive_csv_and_parquet_in_any_pieces(
    tmp_path: Path, rows: list[tuple[str, str, str]], size: int
) -> None:
    for suffix in (".csv", ".csv.gz", ".parquet"):
        path = tmp_path / f"any{suffix}"
        write_triples(rows, path)
        assert pl.concat(read_batches(path, size=size)).rows() == rows


@in_one_folder
@given(rows=st.lists(st.tuples(labels, labels, labels), min_size=1), size=st.integers(1, 50))
def test_what_python_writes_is_read(tmp_path: Path, rows: list[tuple[str, str, str]], size: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([COLUMNS, *rows])
    path = written(tmp_path, text.getvalue(), "python.csv")
    assert pl.concat(read_batches(path, size=size)).rows() == rows


@given(st.text('a,"\n'))
def test_records_end_where_a_line_does_and_all_quotes_are_closed(text: str) -> None:
    ends = [0, *(row + 1 for row, letter in enumerate(text) if letter == "\n" and text[:row].count('"') % 2 == 0)]
    expected = len(text) if text.count('"') % 2 == 0 else ends[-1]
    assert _last_end(text.encode()) == expected


def test_a_quote_that_nothing_closes_is_found_before_the_whole_file_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.data.formats.delimited.LONGEST", 100)
    path = written(tmp_path, 's,p,o\na,b,"c\n' + "a,b,c\n" * 100)
    with pytest.raises(DataError, match=r"train.csv:\d+: expected fields separated by commas, quoted where needed"):
        list(read_batches(path, size=10))


def test_compressed_csv_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.csv.gz"
    path.write_bytes(gzip.compress(b"s,p,o\n" + b"a,b,c\n" * 100)[:-10])
    assert "the compressed file is damaged or truncated" in refusal(path)


def test_labels_that_csv_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a label with a NUL character cannot be written"):
        write_triples([("a", "b", "\0")], tmp_path / "train.csv")


@pytest.mark.parametrize("blank", ["", "\n"])
def test_columns_that_are_not_chosen_may_be_missing_at_the_end_of_a_line(tmp_path: Path, blank: str) -> None:
    path = written(tmp_path, f"s,p,o,weight\ned,speaks,dutch\n{blank}lisa,speaks,dutch,1\n")
    assert read_triples(path, ReadOptions(columns=("s", "p", "o"))).rows() == ROWS


def test_parquet_gives_the_usual_or_the_chosen_columns(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    pl.DataFrame({"o": ["dutch"], "s": [1], "p": ["speaks"]}).write_parquet(path)
    assert read_triples(path).rows() == [("1", "speaks", "dutch")]
    pl.DataFrame({"o": ["dutch"], "s": ["ed"], "p": ["speaks"], "date": [1.5]}).write_parquet(path)
    assert refusal(path).startswith("train.parquet: expected three columns, got the columns o, s, p, date")
    assert read_triples(path, ReadOptions(columns=("s", "p", "o"))).rows() == ROWS[:1]


def test_parquet_with_gaps_or_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    pl.DataFrame({"s": ["a", "b", None], "p": ["r"] * 3, "o": ["c"] * 3}).write_parquet(path)
    with pytest.raises(DataError, match=r"train.parquet: row 2: expected a label, got an empty subject"):
        list(read_batches(path, size=64))
    pl.DataFrame(schema={"s": pl.String, "p": pl.String, "o": pl.String}).write_parquet(path)
    assert refusal(path).startswith("train.parquet: expected rows with a subject")
    path.write_bytes(b"no parquet at all")
    assert refusal(path).startswith("train.parquet: expected a Parquet file")


def test_the_folder_of_a_run_is_no_data(tmp_path: Path) -> None:
    write_triples(ROWS, tmp_path / "train.parquet")
    (tmp_path / "options.json").write_text("{}")
    with pytest.raises(DataError, match="is a run folder, which contains rules: pass the data"):
        load_dataset(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.txt", "a\tr\tb\nonly\ttwo\nc\tr\td\n\t\t\nx\tr\ty\tz\n"),
        ("g.csv", "subject,relation,object\na,r,b\nonly,two\nc,r,d\n,,\nx,r,y,z\n"),
    ],
)
def test_bad_lines_are_skipped_and_listed_on_demand(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=f"{name}:[23]: expected 3"):
        load_dataset(path)
    dataset = load_dataset(path, ReadOptions(skip_bad=True))
    assert sorted(dataset.train.to_polars().rows()) == [("a", "r", "b"), ("c", "r", "d")]
    ((what, n),) = dataset.left_out.items()
    assert n == 3
    first = 2 if name == "g.txt" else 3
    assert what.startswith(f"bad lines of {path} (line {first}: expected 3")


def test_literals_of_a_table_are_refused(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text("subject,relation,object\na,r,b\n")
    with pytest.raises(DataError, match="--literals ranges is for RDF"):
        load_dataset(tmp_path / "g.csv", ReadOptions(literals="ranges"))
