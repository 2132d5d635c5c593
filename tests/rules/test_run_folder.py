"""The rules of run folders: `RuleSet.load` takes the folder of any run, finished or not, and its snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anyburl.base.errors import OptionError, RunError
from anyburl.data import Vocabulary
from anyburl.rules import labels, run_folder
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import write_part
from rules.samples import assert_same, make_rules

NUMBERS = {"number": 1, "elapsed": 10.0, "rules": 4, "dropped": 1, "paths": 5, "bodies": 6}
SPAN = json.dumps({"snapshot": "10", **NUMBERS, "profiles": []}) + "\n"


@pytest.fixture
def rules() -> RuleSet:
    return make_rules([(f"h(X,c{n}) <= b(X,A)", (n + 2, n)) for n in range(10)])


@pytest.fixture
def folder(tmp_path: Path, rules: RuleSet) -> Path:
    """A run folder without rules."""
    folder = tmp_path / "run"
    (folder / run_folder.PARTS).mkdir(parents=True)
    (folder / run_folder.OPTIONS).write_text("{}")
    run_folder.write_vocabulary(folder, rules.vocabulary)
    return folder


def test_a_run_that_has_just_begun_has_no_rules(folder: Path, rules: RuleSet) -> None:
    assert len(RuleSet.load(folder)) == 0
    assert RuleSet.load(folder).vocabulary == rules.vocabulary


def test_rules_that_are_gone_from_a_run_are_noticed_by_its_trace(folder: Path, rules: RuleSet) -> None:
    (folder / run_folder.TRACE).write_text(SPAN)
    assert RuleSet.read(folder)[1].remarks == [
        "it holds no rules, but found 4: they were not saved yet, or rules.parquet was removed"
    ]
    write_part(folder, rules)
    assert RuleSet.read(folder)[1].remarks == []


def test_a_finished_run_is_its_file(folder: Path, rules: RuleSet) -> None:
    rules.save(folder / run_folder.RULES)
    assert_same(RuleSet.load(folder), rules)
    assert_same(RuleSet.load(str(folder)), rules)


def test_a_run_that_goes_on_is_its_parts_in_their_order(folder: Path, rules: RuleSet) -> None:
    for start in (0, 4, 6):
        write_part(folder, rules.slice(start, {0: 4, 4: 6, 6: 10}[start]))
    assert_same(RuleSet.load(folder), rules)
    assert sorted(path.name for path in (folder / "parts").iterdir()) == [f"00000{n}.columns" for n in (1, 2, 3)]


@pytest.mark.parametrize("most_enum_labels", [0, 500_000], ids=["strings", "dictionaries"])
def test_parts_add_to_the_file_of_a_run_that_was_resumed(
    folder: Path, rules: RuleSet, monkeypatch: pytest.MonkeyPatch, most_enum_labels: int
) -> None:
    """Also where the file holds the labels in use only, as it does with a large vocabulary."""
    monkeypatch.setattr(labels, "MOST_ENUM_LABELS", most_enum_labels)
    rules.slice(0, 6).save(folder / run_folder.RULES)
    write_part(folder, rules.slice(4, 10))
    assert_same(RuleSet.load(folder), rules)


def test_snapshots_are_taken_by_their_seconds(folder: Path, rules: RuleSet) -> None:
    rules.save(folder / run_folder.RULES)
    rules.slice(0, 3).save(folder / "rules-10.parquet")
    rules.slice(0, 1).save(folder / "rules-0.5.parquet")
    for at in (10, 10.0, "10"):
        assert_same(RuleSet.load(folder, at=at), rules.slice(0, 3))
    assert len(RuleSet.load(folder, at=0.5)) == 1
    with pytest.raises(RunError, match=r"has no snapshot at 7 seconds; it has 0\.5, 10"):
        RuleSet.load(folder, at=7)


def test_a_snapshot_of_a_killed_run_is_told_by_its_trace(folder: Path, rules: RuleSet) -> None:
    write_part(folder, rules)
    (folder / run_folder.TRACE).write_text(SPAN + '{"snapshot": "20", "ru')
    assert_same(RuleSet.load(folder, at=10), rules.slice(0, 5))
    with pytest.raises(RunError, match="has no snapshot at 20 seconds; it has none"):
        RuleSet.load(folder, at=20)


def test_a_snapshot_that_was_not_saved_to_its_end_is_refused(folder: Path, rules: RuleSet) -> None:
    write_part(folder, rules.slice(0, 4))
    (folder / run_folder.TRACE).write_text(SPAN)
    with pytest.raises(RunError, match="has no snapshot at 10 seconds: 4 of its 5 rules were saved"):
        RuleSet.load(folder, at=10)


def test_a_vocabulary_may_be_given(folder: Path, rules: RuleSet) -> None:
    rules.save(folder / run_folder.RULES)
    vocabulary = Vocabulary.from_labels(["c1", "c2"], ["b", "h"])
    with pytest.warns(UserWarning, match="run: 2 rules read; 8 rules use labels that are not in the data"):
        found = RuleSet.load(folder, vocabulary)
    assert_same(found, rules.slice(1, 3))
    assert found.vocabulary is vocabulary


def test_only_run_folders_have_snapshots(tmp_path: Path, folder: Path, rules: RuleSet) -> None:
    rules.save(tmp_path / "rules.txt")
    with pytest.raises(OptionError, match=r"at needs a run folder with snapshots, got the file '.*rules\.txt'"):
        RuleSet.load(tmp_path / "rules.txt", at=10)
    with pytest.raises(RunError, match=r"is not a run folder: it has no options\.json"):
        RuleSet.load(tmp_path)


# What is damaged is named, and what is whole is read.


def broken_header(good: bytes) -> bytes:
    return good.replace(b"'shape': (", b"'shape': (9999999999999, ", 1)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda good: b"",
    "truncated": lambda good: good[: len(good) // 2],
    "cut by a byte": lambda good: good[:-1],
    "junk": lambda good: b"junk" * 50,
    "zeros": lambda good: bytes(len(good)),
    "a zip file": lambda good: b"PK\x03\x04" + good,
    "pickled": lambda good: b"\x80\x04" + good,
    "another header": broken_header,
    "no number": lambda good: good.replace(b"'<i4'", b"'<U1'", 1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_costs_its_own_rules_only(folder: Path, rules: RuleSet, damage: str) -> None:
    for start in (0, 4, 6):
        write_part(folder, rules.slice(start, {0: 4, 4: 6, 6: 10}[start]))
    part = folder / "parts" / "000002.columns"
    part.write_bytes(DAMAGES[damage](part.read_bytes()))
    with pytest.warns(UserWarning, match=r"8 rules read; .*000002\.columns is damaged .*: its rules are left out"):
        found = RuleSet.load(folder)
    assert_same(found, RuleSet.concat([rules.slice(0, 4), rules.slice(6, 10)]))


@pytest.mark.parametrize("damage", ["empty", "truncated", "junk"])
def test_a_damaged_file_of_a_resumed_run_leaves_its_parts(folder: Path, rules: RuleSet, damage: str) -> None:
    file = folder / run_folder.RULES
    rules.slice(0, 6).save(file)
    write_part(folder, rules.slice(4, 10))
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.warns(UserWarning, match=r"6 rules read; .*rules\.parquet: the file cannot be read .* left out"):
        assert_same(RuleSet.load(folder), rules.slice(4, 10))


@pytest.mark.parametrize("damage", [None, "empty", "truncated", "junk"])
def test_without_a_vocabulary_there_is_the_file(folder: Path, rules: RuleSet, damage: str | None) -> None:
    vocabulary = folder / run_folder.VOCABULARY
    write_part(folder, rules.slice(4, 10))
    if damage:
        vocabulary.write_bytes(DAMAGES[damage](vocabulary.read_bytes()))
    else:
        vocabulary.unlink()
    with pytest.raises(RunError, match=r"vocabulary\.parquet is (missing|damaged)"):
        RuleSet.load(folder)
    rules.slice(0, 6).save(folder / run_folder.RULES)
    with pytest.warns(UserWarning, match=r"6 rules read; .*vocabulary\.parquet is .* are left out"):
        assert_same(RuleSet.load(folder), rules.slice(0, 6))


@pytest.mark.parametrize("labels", [["c1", "c0"], ["c0", "c0"], ["", "c0"]])
def test_a_vocabulary_is_sorted_and_distinct(folder: Path, labels: list[str]) -> None:
    frame = pl.DataFrame({"kind": ["entity", "entity"], "label": labels})
    frame.write_parquet(folder / run_folder.VOCABULARY)
    with pytest.raises(RunError, match=r"vocabulary\.parquet is damaged \(expected entity labels"):
        RuleSet.load(folder)
    frame.rename({"kind": "sort"}).write_parquet(folder / run_folder.VOCABULARY)
    with pytest.raises(RunError, match=r"is damaged \(expected the columns kind, label\)"):
        RuleSet.load(folder)


def test_a_run_of_which_nothing_is_whole_is_refused(folder: Path, rules: RuleSet) -> None:
    write_part(folder, rules)
    run_folder.write_vocabulary(folder, Vocabulary.from_labels(["c0"], ["b", "h"]))
    with pytest.raises(RunError, match=r"000001\.columns is damaged .* in the column 'head_constant', got 9"):
        RuleSet.load(folder)
    (folder / "parts" / "000001.columns").write_bytes(b"junk")
    with pytest.raises(RunError, match=r"000001\.columns is damaged"):
        RuleSet.load(folder)


def test_files_that_are_no_parts_are_left_alone(folder: Path, rules: RuleSet) -> None:
    for name in ("notes.txt", "old.columns", ".000009.columns.part77", "-1.columns"):
        (folder / "parts" / name).write_text("not ours")
    (folder / "rules-copy.parquet").write_text("not ours")
    write_part(folder, rules)
    assert_same(RuleSet.load(folder), rules)
    assert run_folder.snapshot_names(folder) == []
    with pytest.raises(RunError, match="it has none"):
        RuleSet.load(folder, at=10)


TRACES = [
    b"\xff\xfe{}",
    b"[1, 2]",
    b'"text"',
    b"17",
    b"null",
    b'[["snapshot", "10"]]',
    b'{"snapshot": "10"}',
    b'{"snapshot": "10", "rules": "many", "dropped": 0}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("line", TRACES)
def test_lines_of_a_trace_that_are_no_spans_are_left_out(folder: Path, rules: RuleSet, line: bytes) -> None:
    write_part(folder, rules)
    (folder / run_folder.TRACE).write_bytes(b"\n".join([line, SPAN.encode(), line]))
    assert sum(map(run_folder.is_whole_span, run_folder.read_trace(folder))) == 1
    assert_same(RuleSet.load(folder, at=10), rules.slice(0, 5))


def test_a_snapshot_of_a_killed_run_needs_all_its_parts(folder: Path, rules: RuleSet) -> None:
    write_part(folder, rules.slice(0, 3))
    write_part(folder, rules.slice(3, 10))
    (folder / run_folder.TRACE).write_text(SPAN)
    (folder / "parts" / "000001.columns").write_bytes(b"")
    with pytest.raises(RunError, match=r"has no snapshot at 10 seconds: .*000001\.columns is damaged"):
        RuleSet.load(folder, at=10)


@pytest.mark.parametrize(
    "described",
    [
        "",
        "[]",
        "\xff",
        '{"data": 1, "options": {}}',
        '{"data": {"source": 7}, "options": {}}',
        '{"data": {"reading": [1]}, "options": {}}',
        '{"data": {"prefixes": "x"}, "options": {}}',
        "[" * 100_000,
    ],
)
def test_options_that_describe_no_run_are_refused(folder: Path, described: str) -> None:
    (folder / run_folder.OPTIONS).write_text(described, "latin-1")
    with pytest.raises(RunError, match=r"options\.json (cannot be read as JSON|does not describe a run)"):
        run_folder.described_run(folder)


def test_damaged_triples_and_names_are_named(folder: Path, rules: RuleSet) -> None:
    (folder / run_folder.OPTIONS).write_text('{"data": {}, "options": {}}')
    for name, read in ((run_folder.TRAIN, run_folder.read_train), (run_folder.NAMES, run_folder.read_run_names)):
        (folder / name).write_bytes(b"junk")
        with pytest.raises(RunError, match=f"{name} is damaged"):
            read(folder)
    ids = {"subject": [0], "relation": [0], "object": [10]}
    pl.DataFrame(ids, schema=dict.fromkeys(ids, pl.Int32)).write_parquet(folder / run_folder.TRAIN)
    with pytest.raises(RunError, match=r"train\.parquet is damaged \(expected ids from 0 to below"):
        run_folder.read_train(folder)
