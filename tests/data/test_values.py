"""Values beside triples: files of values, relations that are named or recognised, and what is refused."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from anyburl import DataError, InvalidOptionError, OptionError, ReadOptions, load_dataset
from anyburl.data.dataset import Dataset
from anyburl.graph.stored import build_index

KNOWS = "".join(f"p{n}\tknows\tp{(n + 1) % 12}\n" for n in range(12))
HEIGHTS = "".join(f"p{n}\theight\t1.{n + 50}\n" for n in range(12))


def shown(data: Dataset, split: str = "train") -> dict[str, list[str]]:
    """Return the values of each attribute as texts, those of the entities in order."""
    attributes = data.attributes if split == "train" else data.held_out[split]
    return {
        name: [
            f"{data.vocabulary.entity_label(int(e))}={one.format(v)}"
            for v, e in zip(one.values, one.entities, strict=True)
        ]
        for name, one in attributes.items()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text(KNOWS)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("attributes.txt", "p1\tage\t7\np2\tage\t30.5\np2\tage\t30.5\np1\tborn\t1900-01-01\n"),
        ("attributes.tsv", "entity\tattribute\tvalue\np1\tage\t7\np2\tage\t30.5\np1\tborn\t1900-01-01\n"),
        ("numeric.csv", 'value,property,id\n7,age,p1\n"30.5",age,p2\n1900-01-01,born,p1\n'),
        ("attributes_train.csv", "id,age,born,note\np1,7,1900-01-01,kind\np2,30.5,,\n"),
        (
            "numeric.txt",
            'p1\tage\t"+7"^^<http://www.w3.org/2001/XMLSchema#decimal>\np2\tage\t"30.5"\n'
            'p1\tborn\t"1900"^^<http://www.w3.org/2001/XMLSchema#gYear>\n',
        ),
    ],
)
def test_a_file_of_values_beside_the_triples_is_read(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    assert shown(load_dataset(folder)) == {"age": ["p1=7", "p2=30.5"], "born": ["p1=1900-01-01"]}


def test_values_held_out_and_those_of_a_folder_elsewhere(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "values"
    elsewhere.mkdir()
    for split, value in (("train", 1), ("valid", 2), ("test", 3)):
        with gzip.open(elsewhere / f"numeric_{split}.txt.gz", "wt") as file:
            file.write(f"p1\tage\t{value}\nnobody\tage\t{value}\n")
    data = load_dataset(folder, ReadOptions(attribute_file=str(elsewhere)))
    assert [shown(data, split) for split in ("train", "valid", "test")] == [{"age": [f"p1={n}"]} for n in (1, 2, 3)]
    assert data.left_out == {"values of entities without triples": 3}


def test_parquet_has_values_in_rows_or_columns(folder: Path) -> None:
    columns = {"id": ["p1", "p2"], "tall": [True, None], "size": [None, 3.5], "born": [date(1950, 2, 3), None]}
    pl.DataFrame(columns).write_parquet(folder / "attributes.parquet")
    assert shown(load_dataset(folder)) == {"born": ["p1=1950-02-03"], "size": ["p2=3.5"], "tall": ["p1=true"]}
    rows = {"value": [1.5, 2.5], "entity": ["p1", "p2"], "attribute": ["size", "size"]}
    pl.DataFrame(rows).write_parquet(folder / "attributes.parquet")
    assert shown(load_dataset(folder)) == {"size": ["p1=1.5", "p2=2.5"]}


def test_a_table_of_a_database_has_values_in_rows_or_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(folder / "people.db")) as database:
        database.execute("CREATE TABLE people (name TEXT, age REAL, born DATE, town TEXT)")
        database.execute("INSERT INTO people VALUES ('p1', 7, '1900-01-01', 'Oslo'), ('p2', 30.5, NULL, NULL)")
        database.execute("CREATE TABLE ages (entity TEXT, attribute TEXT, value REAL)")
        database.execute("INSERT INTO ages VALUES ('p1', 'age', 7), ('p2', 'age', 30.5)")
        database.commit()
    monkeypatch.chdir(folder)
    wide = ReadOptions(attribute_file="sqlite:people.db#people")
    monkeypatch.chdir("/")  # a run is used from another folder
    assert shown(load_dataset(folder, wide)) == {"age": ["p1=7", "p2=30.5"], "born": ["p1=1900-01-01"]}
    long = ReadOptions(attribute_file=f"sqlite:{folder}/people.db#ages")
    assert shown(load_dataset(folder, long)) == {"age": ["p1=7", "p2=30.5"]}
    with pytest.raises(DataError, match=r"no table named; add #TABLE to the address \(there are ages, people\)$"):
        load_dataset(folder, ReadOptions(attribute_file=f"sqlite:{folder}/people.db"))
    with pytest.raises(DataError, match="no such table: none"):
        load_dataset(folder, ReadOptions(attribute_file=f"sqlite:{folder}/people.db#none"))
    with pytest.raises(OptionError, match="values are read from a file or folder, sqlite:PATH#TABLE or duckdb:"):
        ReadOptions(attribute_file="postgresql://localhost/people#ages")


def test_named_relations_are_values_in_files_and_frames(folder: Path) -> None:
    (folder / "train.txt").write_text(f"{KNOWS}p1\tborn\t1950\np1\tage\t07\n")
    data = load_dataset(folder, attributes={"born": "date", "age": "number"})
    assert shown(data) == {"age": ["p1=7"], "born": ["p1=1950-01-01"]}
    assert (len(data.train), data.vocabulary.relations.to_list()) == (12, ["age", "born", "knows"])
    frame = data.train.to_polars().vstack(
        pl.DataFrame([["p1", "age", "7"]], schema=["subject", "relation", "object"], orient="row")
    )
    assert shown(load_dataset(frame, attributes={"age": "boolean"}, options=ReadOptions(skip_bad=True))) == {}
    assert shown(load_dataset(frame, attributes={"age": "number"})) == {"age": ["p1=7"]}


def test_relations_of_numbers_are_recognised_unless_kept(folder: Path) -> None:
    (folder / "train.txt").write_text(KNOWS + HEIGHTS)
    (folder / "valid.txt").write_text("p1\theight\t1.99\n")
    data = load_dataset(folder)
    assert shown(data)["height"][:2] == ["p0=1.5", "p1=1.51"]
    assert shown(data, "valid") == {"height": ["p1=1.99"]}
    assert "1.99" not in data.vocabulary.entities
    kept = load_dataset(folder, attributes={"height": "entity"})
    assert kept.attributes.empty
    assert len(kept.train) == 24


@pytest.mark.parametrize(
    "facts",
    [
        KNOWS + HEIGHTS + "1.50\tknows\tp1\n",  # a number that is a subject: ids
        KNOWS + HEIGHTS + "p1\tlikes\t1.50\n",  # an object of another relation
        KNOWS + HEIGHTS + "p1\theight\ttall\n",  # an object that is no number
        KNOWS + HEIGHTS[: HEIGHTS.index("p9")],  # fewer than ten
        KNOWS + HEIGHTS.replace("1.", "000"),  # codes
        HEIGHTS,  # nothing else
    ],
)
def test_other_relations_stay(folder: Path, facts: str) -> None:
    (folder / "train.txt").write_text(facts)
    data = load_dataset(folder)
    assert data.attributes.empty
    assert len(data.train) == facts.count("\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "p1\tweight\t70\np2\tweight\t12 kg\n",
            r"attributes\.tsv:2: expected a number such as 12\.5, without a unit, for weight, got '12 kg'",
        ),
        ("p1\tage\t7\np1\tage\t8\n\np2\tage\tnan\n", r"attributes\.tsv:4: expected a number .* got 'nan'"),
        ("p1\tage\t7\np2\tage\t1e999\n", r"attributes\.tsv:2: expected a number .* got '1e999'"),
        (
            "id\tage\tsize\np1\t7\t1\np2\t3\t1,5\np3\t\t2\n",
            r"attributes\.tsv:3: expected a number .* for size, got '1,5'",
        ),
        ("p1\tborn\t1900-01-01\np2\tborn\t1900-02-30\n", r"attributes\.tsv:2: expected a date such as .*'1900-02-30'"),
        ("p1\tweight\t12 kg\np2\tweight\t70\n", r"attributes\.tsv:1: expected a number .* for weight, got '12 kg'"),
        ("p1\n", r"attributes\.tsv:1: expected lines of an entity, an attribute and a value"),
        ("p1\tage\t7\np2\tage\n", r"attributes\.tsv:2: expected 3 tab-separated fields"),
    ],
)
def test_what_is_no_value_is_refused_with_its_line(folder: Path, text: str, message: str) -> None:
    (folder / "attributes.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_dataset(folder)


def test_bad_values_are_skipped_where_that_is_wished(folder: Path) -> None:
    (folder / "attributes.tsv").write_text("p1\tweight\t70\np2\tweight\t12 kg\np2\tnote\thello\n")
    data = load_dataset(folder, ReadOptions(skip_bad=True))
    assert shown(data) == {"weight": ["p1=70"]}
    assert data.left_out == {"values that are no number, date or boolean": 2}


def test_names_that_are_not_there_and_kinds_that_are_none_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match=r"no attribute or relation 'know'.*did you mean knows"):
        load_dataset(folder, attributes={"know": "number"})
    with pytest.raises(DataError, match=r"train\.txt:1: expected a number .* for knows, got 'p1'"):
        load_dataset(folder, attributes={"knows": "number"})
    with pytest.raises(InvalidOptionError, match="attribute must be names with a kind"):
        load_dataset(folder, attributes={"knows": "colour"})
    with pytest.raises(DataError, match=r"expected a file of values such as attributes\.tsv"):
        load_dataset(folder, ReadOptions(attribute_file=str(folder)))
    for name in ("attributes.tsv", "numeric.tsv"):
        (folder / name).write_text("p1\tage\t7\n")
    with pytest.raises(DataError, match="keep one of them"):
        load_dataset(folder)


def test_an_index_keeps_values(folder: Path, tmp_path: Path) -> None:
    (folder / "attributes.tsv").write_text("p1\tage\t7\np2\tage\t8\n")
    plain = load_dataset(folder)
    index = build_index(folder, tmp_path / "index")
    assert shown(index) == shown(plain) == {"age": ["p1=7", "p2=8"]}
    assert index.fingerprint == plain.fingerprint
    with pytest.raises(DataError, match="pass attributes to `anyburl index`"):
        load_dataset(tmp_path / "index", attributes={"age": "number"})
