"""Facts with times: from text, tables, frames, databases and RDF; splits by time; what is wrong with them."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import DataError, InvalidOptionError, ReadOptions, TemporalDataset, load_dataset, load_temporal_dataset
from anyburl.data.files import SPLITS
from anyburl.data.sources import recognise_times
from anyburl.temporal.facts import NEVER

Row = tuple[str, ...]
EVENTS: list[Row] = [
    ("france", "visits", "italy", "2014-01-03"),
    ("france", "visits", "italy", "2014-01-01"),
    ("italy", "thanks", "france", "2014-02-05"),
    ("italy", "thanks", "france", "2014-02-05"),
]
STAYS: list[Row] = [(*row, end) for row, end in zip(EVENTS[:3], ("2014-01-04", "", "2014-02-06"), strict=True)]


def labelled(data: TemporalDataset) -> list[Row]:
    """Return all facts as text, in order."""
    rows = []
    for facts in map(data.split, SPLITS):
        times = [data.clock.label(step) for step in facts.times]
        ends = [] if facts.ends is None else [("" if end == NEVER else data.clock.label(end),) for end in facts.ends]
        triples = data.vocabulary.decode_triples(facts.triples).rows()
        rows += [(*t, time, *(ends[i] if ends else ())) for i, (t, time) in enumerate(zip(triples, times, strict=True))]
    return rows


def in_order(rows: list[Row]) -> list[Row]:
    return sorted({*rows}, key=lambda row: (row[3], *row))


def written(folder: Path, kind: str, rows: list[Row]) -> Any:
    """Write facts in some way; return what is to be loaded."""
    names = ["head", "relation", "tail", "date", "until"][: len(rows[0])]
    frame = pl.DataFrame(rows, schema=names, orient="row")
    path = folder / f"facts.{kind}"
    match kind:
        case "txt":
            path.write_text("".join("\t".join(row) + "\n" for row in rows))
        case "csv":
            frame.write_csv(path)
        case "tsv":
            path.write_text("".join("\t".join(row) + "\n" for row in [tuple(names), *rows]))
        case "parquet":
            frame.with_columns(pl.col("date").str.to_date()).write_parquet(path)
        case "frame":
            return frame
        case "rows":
            return rows
        case "sqlite":
            with sqlite3.connect(path) as database:
                database.execute(f"CREATE TABLE facts ({', '.join(names)})")
                database.executemany(f"INSERT INTO facts VALUES ({', '.join('?' * len(names))})", rows)
            return f"sqlite:{path}#facts"
    return path


@pytest.mark.parametrize("rows", [EVENTS, STAYS], ids=["events", "intervals"])
@pytest.mark.parametrize("kind", ["txt", "csv", "tsv", "parquet", "frame", "rows", "sqlite"])
def test_facts_with_times_are_read_sorted_and_without_repetitions(tmp_path: Path, kind: str, rows: list[Row]) -> None:
    source = written(tmp_path, kind, rows)
    data = load_temporal_dataset(source)
    assert labelled(data) == in_order(rows)
    assert (data.clock.unit, data.steps[0], data.n_duplicates) == ("day", 0, len(rows) - len({*rows}))
    if isinstance(source, Path):
        assert recognise_times(str(source), ReadOptions())
        assert len(load_dataset(source, ReadOptions(time=("ignore",))).train) == 2
        with pytest.raises(DataError, match=r"--time auto reads .* --time ignore leaves"):
            load_dataset(source)


def test_times_in_rdf_are_about_statements(tmp_path: Path) -> None:
    path = tmp_path / "facts.ttl"
    path.write_text(
        "@prefix : <http://x/> . @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
        '<< :malta :joins :eu >> :since "2004-05-01" .\n'
        ':m rdf:subject :uk ; rdf:predicate :joins ; rdf:object :eu ; :since "1973-01-01" ; :until "2020-01-31" .\n'
        ":malta :near :italy ."
    )
    data = load_temporal_dataset(path)
    assert [(row[0][-2:], *row[3:]) for row in labelled(data)] == [
        ("uk", "1973-01-01", "2020-01-31"),
        ("ta", "2004-05-01", ""),
    ]
    assert data.left_out["plain statements"] == 1


def test_instants_of_frames_are_counted_in_utc() -> None:
    times = [datetime(2014, 1, 1, hour, tzinfo=UTC) for hour in (10, 12)]
    frame = pl.DataFrame({"subject": ["a", "a"], "relation": ["r", "r"], "object": ["b", "b"], "time": times})
    assert [row[3] for row in labelled(load_temporal_dataset(frame))] == ["2014-01-01T10:00Z", "2014-01-01T12:00Z"]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"split": (0.5, 0.2, 0.3)}, (5, 2, 3)),
        ({"split_at": ("4", "7")}, (4, 3, 3)),
        ({"split_at": ("8",)}, (8, 0, 2)),
    ],
)
def test_splits_are_in_the_order_of_time(options: dict[str, Any], sizes: tuple[int, ...]) -> None:
    rows = [("a", "r", f"b{i}", str(i // 2 * 2 if i < 4 else i)) for i in range(10)]
    data = load_temporal_dataset(rows, granularity="1", **options)
    assert (len(data.train), len(data.valid), len(data.test)) == sizes
    assert labelled(data) == in_order(rows)


def test_a_split_outside_the_history_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="split_at must be after 2014-01-01 and not after 2014-02-05"):
        load_temporal_dataset(EVENTS, split_at=("2020-01-01",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a r b 2014-01-01\na r b soon\n", ":2: expected a time .*got 'soon'"),
        ("a\tr\tb\t2014-01-01\n\na\tr\tc\t2014-13-01\n", ":3: expected a time .*got '2014-13-01'"),
        ("a\tr\tb\t2014-01-01\na\tr\tc\t2014\n", ":2: expected a date such as 2014-01-01, .*got a number: '2014'"),
        ("a\tr\tb\t2014-01-01\na\tr\tc\t\n", ":2: expected 4 tab-separated fields, got an empty time"),
        ("a\tr\tb\t2014-01-01\na\tr\tc\n", ":2: expected 4 tab-separated fields, got 3"),
        ("a\tr\tb\t2014-01-01T00:00Z\na\tr\tc\t2014-01-01T00:00\n", ":2: expected a date and time with a zone"),
        ("a\tr\tb\t2014-01-01\na\tr\tc\t44 BC\n", ":2: expected a time .*got '44 BC'"),
        ("a\tr\tb\t2014-01-02\t2014-01-01\n", ":1: expected an end that is not before the begin"),
        ("a\tr\tb\t0.5\n", ":1: expected a time .*whole number.*got '0.5'"),
    ],
)
def test_bad_times_get_a_sentence_with_file_and_line(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "facts.txt"
    path.write_text(text)
    with pytest.raises(DataError, match=f"facts.txt{sentence}"):
        load_temporal_dataset(path)


def test_a_coarser_granularity_takes_what_states_at_least_that() -> None:
    rows = [("a", "r", "b", "2014-03-01"), ("a", "r", "b", "2015"), ("a", "r", "b", "2016-07")]
    assert [row[3] for row in labelled(load_temporal_dataset(rows, granularity="year"))] == ["2014", "2015", "2016"]


def test_triples_are_not_read_with_times_by_mistake() -> None:
    with pytest.raises(InvalidOptionError, match="load_temporal_dataset reads times"):
        load_dataset("history", ReadOptions(time=("auto",)))


def test_the_built_in_history_is_as_its_readme_says() -> None:
    data = load_temporal_dataset("history")
    assert [len(data.split(split)) for split in SPLITS] == [624, 38, 59]
    assert (data.vocabulary.n_entities, data.vocabulary.n_relations, data.clock.unit) == (211, 5, "year")
    assert data.train.times[-1] < data.valid.times[0] <= data.valid.times[-1] < data.test.times[0]
    assert {*load_dataset("geo").vocabulary.entities} > {*data.vocabulary.decode_entities(data.train.subjects)} - {
        "Czechoslovakia", "Soviet_Union", "Yugoslavia"}  # fmt: skip
