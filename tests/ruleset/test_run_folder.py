"""The rules of run folders: `RuleSet.load` takes the folder of any run, finished or not, and its snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl.errors import OptionError, RunError
from anyburl.ruleset import RuleSet, frame_writer
from anyburl.ruleset.files import run_folder
from anyburl.triples import Vocabulary
from ruleset.samples import assert_same, make_rules


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


def test_a_finished_run_is_its_file(folder: Path, rules: RuleSet) -> None:
    rules.save(folder / run_folder.RULES)
    assert_same(RuleSet.load(folder), rules)
    assert_same(RuleSet.load(str(folder)), rules)


def test_a_run_that_goes_on_is_its_parts_in_their_order(folder: Path, rules: RuleSet) -> None:
    for start in (0, 4, 6):
        run_folder.write_part(folder, rules.slice(start, {0: 4, 4: 6, 6: 10}[start]))
    assert_same(RuleSet.load(folder), rules)
    assert sorted(path.name for path in (folder / "parts").iterdir()) == [f"00000{n}.columns" for n in (1, 2, 3)]


@pytest.mark.parametrize("most_enum_labels", [0, 500_000], ids=["strings", "dictionaries"])
def test_parts_add_to_the_file_of_a_run_that_was_resumed(
    folder: Path, rules: RuleSet, monkeypatch: pytest.MonkeyPatch, most_enum_labels: int
) -> None:
    """Also where the file holds the labels in use only, as it does with a large vocabulary."""
    monkeypatch.setattr(frame_writer, "MOST_ENUM_LABELS", most_enum_labels)
    rules.slice(0, 6).save(folder / run_folder.RULES)
    run_folder.write_part(folder, rules.slice(4, 10))
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
    run_folder.write_part(folder, rules)
    (folder / run_folder.TRACE).write_text('{"snapshot": "10", "rules": 4, "dropped": 1}\n{"snapshot": "20", "ru')
    assert_same(RuleSet.load(folder, at=10), rules.slice(0, 5))
    with pytest.raises(RunError, match="has no snapshot at 20 seconds; it has none"):
        RuleSet.load(folder, at=20)


def test_a_vocabulary_may_be_given(folder: Path, rules: RuleSet) -> None:
    rules.save(folder / run_folder.RULES)
    vocabulary = Vocabulary.from_labels(["c1", "c2"], ["b", "h"])
    with pytest.warns(UserWarning, match="run: 2 rules read; 8 rules use labels that are not in the data"):
        found = RuleSet.load(folder, vocabulary)
    assert_same(found, rules.slice(1, 3))
    assert found.vocabulary is vocabulary


def test_only_run_folders_have_snapshots(tmp_path: Path, folder: Path, rules: RuleSet) -> None:
    rules.save(tmp_path / "rules.txt")
    with pytest.raises(OptionError, match=r"at asks for a snapshot of a run folder, got the file '.*rules\.txt'"):
        RuleSet.load(tmp_path / "rules.txt", at=10)
    with pytest.raises(RunError, match=r"is not a run folder: it has no options\.json"):
        RuleSet.load(tmp_path)


def test_a_part_that_does_not_fit_the_run_is_named(folder: Path, rules: RuleSet) -> None:
    run_folder.write_part(folder, rules)
    run_folder.write_vocabulary(folder, Vocabulary.from_labels(["c0"], ["b", "h"]))
    with pytest.raises(RunError, match=r"000001\.columns cannot be read: .* in the column 'head_constant', got 9"):
        RuleSet.load(folder)
    (folder / "parts" / "000001.columns").write_bytes(b"junk")
    with pytest.raises(RunError, match=r"000001\.columns cannot be read"):
        RuleSet.load(folder)
