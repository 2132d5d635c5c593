"""Prepared runs: the same answers as in memory; what is stale or damaged is noticed, and made again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import copy_run, make_run, open_run, people, told, write_data

import anyburl
from anyburl import Reasoner, RuleSet, RunDirectory
from anyburl.base.errors import RunError
from anyburl.base.sealed import TAG
from anyburl.reasoning.opening import Feedback, make_prepared
from anyburl.reasoning.prepared import CARD, NotPreparedError, open_prepared
from anyburl.rules.run_folder import is_finished


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is prepared, with its data beside it."""
    run = make_run(tmp_path_factory.mktemp("original"))
    open_run(run)
    return run


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    """A copy of it, with its times, on a copy of the data."""
    return copy_run(original, tmp_path / "copy")


def is_used(run: Path) -> bool:
    """Whether what was prepared is used as it is: nothing is made again, and nothing is said."""
    reasoner, heard = open_run(run)
    assert heard.notes == []
    assert bool(heard.prepared) == any("reading" in doing for doing in heard.doing)
    assert len(reasoner.rules) > 50
    return not heard.prepared


OPTIONS: list[dict[str, Any]] = [
    {},
    {"aggregation": "noisy-or", "smoothing": 0.0, "block_connected": "on"},
    {"aggregation": "noisy-or-top:2", "weights": {"Ud": 0.1}, "object_identity": False},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_prepared_run_says_the_same_as_rules_in_memory(run: Path, options: dict[str, Any]) -> None:
    prepared, heard = open_run(run, **options)
    assert not heard.prepared
    in_memory = Reasoner(RuleSet.load(run), run.parent / "data", **{"threads": 1, **options})
    assert told(prepared) == told(in_memory)


def test_a_run_is_prepared_when_it_is_first_opened_and_never_again(run: Path) -> None:
    shutil.rmtree(run / "prepared")
    _, heard = open_run(run)
    assert heard.prepared == [f"preparing {run}, so that it opens at once in future: it is not prepared yet"]
    assert is_used(run)


def test_a_run_can_be_opened_without_preparing_it(run: Path) -> None:
    expected = told(open_run(run)[0])
    shutil.rmtree(run / "prepared")
    reasoner, heard = open_run(run, prepare=False)
    assert not heard.prepared
    assert not (run / "prepared").exists()
    assert told(reasoner) == expected


def test_on_other_data_nothing_is_kept(run: Path, tmp_path: Path) -> None:
    shutil.rmtree(run / "prepared")
    reasoner, heard = open_run(run, data=write_data(tmp_path / "other", seed=3))
    assert reasoner.dataset.name == "other"
    assert not heard.prepared
    assert not (run / "prepared").exists()


# What does not make it stale.


def test_a_copied_folder_is_used_and_its_times_are_remembered(run: Path) -> None:
    for file in run.rglob("*"):
        os.utime(file, (1, 1))
    assert is_used(run)
    card = json.loads((run / "prepared" / CARD).read_text())
    assert {time for _, time, *_ in card["files"].values()} == {10**9}
    assert card["rules"]["stamp"][1] == 10**9


def test_data_that_were_only_touched_are_used(run: Path) -> None:
    os.utime(run.parent / "data" / "train.txt", (1, 1))
    assert is_used(run)


def test_data_that_are_gone_are_not_needed(run: Path) -> None:
    expected = told(open_run(run)[0])
    shutil.rmtree(run.parent / "data")
    assert is_used(run)
    assert told(open_run(run)[0]) == expected


# What does.


def change_rules(run: Path) -> None:
    RuleSet.load(run)[5:].save(run / "rules.parquet")


def change_data(run: Path) -> None:
    with (run.parent / "data" / "train.txt").open("a") as file:
        file.write("p00\tknows\tcity0\n")


def remove_a_split(run: Path) -> None:
    (run.parent / "data" / "valid.txt").unlink()


def add_values(run: Path) -> None:
    (run.parent / "data" / "attributes.tsv").write_text("p00\tage\t41\np01\tage\t42\n")


def truncate(run: Path) -> None:
    file = run / "prepared" / "rules" / "head.npy"
    file.write_bytes(file.read_bytes()[:-4])


def flip_bytes(run: Path) -> None:
    file = run / "prepared" / "index" / "short" / "codes.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 255
    file.write_bytes(content)
    os.utime(file, (1, 1))  # whatever the clock says


def exchange(file: Path, change: Callable[[bytes], bytes]) -> None:
    """Put other contents into a file, which keeps its size and its time."""
    before, content = file.stat(), file.read_bytes()
    file.write_bytes(change(content))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert file.read_bytes() != content


def use_arrays_of_other_rules(run: Path) -> None:
    heads = np.load(run / "prepared" / "rules" / "head.npy")
    other = BytesIO()
    np.save(other, heads[::-1])
    exchange(run / "prepared" / "rules" / "head.npy", lambda content: other.getvalue())


def use_rules_of_another_run(run: Path) -> None:
    """Other rules of the same size have another seal; where that is all that differs, it is enough."""
    place = (run / "rules.parquet").read_bytes().index(TAG) + len(TAG)
    exchange(run / "rules.parquet", lambda content: content[:place] + b"seal" + content[place + 4 :])


def use_other_data(run: Path) -> None:
    exchange(run.parent / "data" / "train.txt", lambda content: content.replace(b"p00", b"q00"))


def delete_a_file(run: Path) -> None:
    (run / "prepared" / "groups.npy").unlink()


def delete_the_data(run: Path) -> None:
    shutil.rmtree(run / "prepared" / "data")


def write_garbage(run: Path) -> None:
    (run / "prepared" / CARD).write_bytes(b"\xff{]")


def write_another_card(run: Path) -> None:
    (run / "prepared" / CARD).write_text("[1, 2]")


def nest_the_card(run: Path) -> None:
    (run / "prepared" / CARD).write_text("[" * 3000)


def count_without_end(run: Path) -> None:
    card = json.loads((run / "prepared" / CARD).read_text())
    (run / "prepared" / CARD).write_text(json.dumps({**card, "rules": {**card["rules"], "left_out": float("inf")}}))


def change_format(run: Path) -> None:
    card = json.loads((run / "prepared" / CARD).read_text())
    (run / "prepared" / CARD).write_text(json.dumps({**card, "format": 0, "anyburl": "0.0.1"}))


def change_layout(run: Path) -> None:
    card = json.loads((run / "prepared" / CARD).read_text())
    (run / "prepared" / CARD).write_text(json.dumps({**card, "layout": "pairs,trie"}))


DAMAGES: dict[Callable[[Path], None], str] = {
    change_rules: "the rules have changed since",
    change_data: "the data has changed since",
    remove_a_split: "the data has changed since",
    add_values: "the data has changed since",
    truncate: "are damaged (rules/head.npy has",
    flip_bytes: "are damaged (index/short/codes.npy has changed)",
    use_arrays_of_other_rules: "are damaged (rules/head.npy has changed)",
    use_other_data: "the data has changed since",
    delete_a_file: "cannot be read (",
    delete_the_data: "cannot be read (",
    write_garbage: "are damaged (",
    write_another_card: "are damaged (",
    nest_the_card: "are damaged (",
    count_without_end: "are damaged (",
    change_format: "it was prepared by anyburl 0.0.1 in another format",
    change_layout: "in another format",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_stale_or_damaged_is_noticed_and_made_again(run: Path, damage: Callable[[Path], None]) -> None:
    damage(run)
    with pytest.raises(NotPreparedError):
        open_prepared(run)
    reasoner, heard = open_run(run)
    assert len(heard.prepared) == 1
    assert DAMAGES[damage] in heard.prepared[0]
    assert told(reasoner) == told(Reasoner(RuleSet.load(run), run.parent / "data", threads=1))
    assert is_used(run)


def test_values_in_a_file_elsewhere_are_noticed(tmp_path: Path) -> None:
    values = tmp_path / "ages.tsv"
    values.write_text("p00\tage\t41\np01\tage\t42\n")
    data = anyburl.load_dataset(write_data(tmp_path / "data"), anyburl.ReadOptions(attribute_file=str(values)))
    anyburl.learn(data, paths=2000, max_cyclic=2, seed=1, threads=1, out=tmp_path / "run")
    open_run(tmp_path / "run")
    assert is_used(tmp_path / "run")
    values.write_text("p00\tage\t41\np01\tage\t43\n")
    with pytest.raises(NotPreparedError, match="the data has changed since"):
        open_prepared(tmp_path / "run")
    values.unlink()
    assert open_prepared(tmp_path / "run").dataset.fingerprint == data.fingerprint


def test_rules_of_the_same_size_and_time_are_noticed(run: Path) -> None:
    use_rules_of_another_run(run)
    with pytest.raises(NotPreparedError, match="the rules have changed since"):
        open_prepared(run)


def test_what_was_prepared_and_cannot_be_opened_is_an_error_of_ours(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with too few file descriptors."""

    def refuse(run: Path) -> None:
        raise NotPreparedError("too many open files")

    monkeypatch.setattr("anyburl.reasoning.opening.open_prepared", refuse)
    data = anyburl.load_dataset(RunDirectory.open(run).described()["data"]["source"])
    with pytest.raises(RunError, match="was prepared, but cannot be opened: too many open files"):
        make_prepared(run, lambda: (RuleSet.load(run), data), Feedback())


def test_every_file_of_a_prepared_run_is_checked(run: Path) -> None:
    """Each one damaged in turn, its size and name the same."""
    files = [file for file in (run / "prepared").rglob("*") if file.is_file() and file.name != CARD]
    assert len(files) > 40
    for file in files:
        content = file.read_bytes()
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        os.utime(file, (1, 1))
        with pytest.raises(NotPreparedError, match="has changed"):
            open_prepared(run)
        file.write_bytes(content)
        os.utime(file, (2, 2))
    assert is_used(run)


# Where nothing can be prepared.


def test_a_run_that_is_still_learned_is_not_prepared_and_what_was_is_not_used(run: Path) -> None:
    rules = RuleSet.load(run)
    expected = told(open_run(run)[0])
    RunDirectory.open(run).write_part([rules[:3]])
    assert not is_finished(run)
    with pytest.raises(NotPreparedError, match="the run was continued since"):
        open_prepared(run)
    reasoner, heard = open_run(run)
    assert not heard.prepared
    assert told(reasoner) == expected


def test_a_folder_that_cannot_be_written_to_is_used_all_the_same(run: Path) -> None:
    """A file stands where the folder should be: a test that runs as root cannot be refused otherwise."""
    expected = told(open_run(run)[0])
    shutil.rmtree(run / "prepared")
    (run / "prepared").write_text("in the way")
    reasoner, heard = open_run(run)
    assert told(reasoner) == expected
    assert len(heard.notes) == 1
    assert heard.notes[0].startswith(f"using {run} unprepared: ")
    assert (run / "prepared").read_text() == "in the way"
    assert [file.name for file in run.iterdir() if file.name.startswith(".") and file.name != ".lock"] == []


def test_a_read_only_folder_that_is_prepared_is_used(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in run.rglob("*"):
        os.utime(file, (1, 1))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    before = (run / "prepared" / CARD).read_bytes()
    assert is_used(run)
    assert (run / "prepared" / CARD).read_bytes() == before


def test_rules_that_were_left_out_are_told_every_time(tmp_path: Path) -> None:
    """The data were replaced by others, where half of the people are not known."""
    run = make_run(tmp_path)
    kept = [triple for triple in people() if triple[0] < "p30"]
    (tmp_path / "data" / "train.txt").write_text("".join(f"{s}\t{r}\t{o}\n" for s, r, o in kept))
    for name in ("valid", "test"):
        (tmp_path / "data" / f"{name}.txt").write_text("p01\tspeaks\tlang1\n")
    first, second = open_run(run), open_run(run)
    assert first[1].notes == second[1].notes
    assert first[1].notes[0].endswith("labels that are not in data: left out")
    assert not second[1].prepared
    assert len(first[0].rules) == len(second[0].rules) < len(anyburl.RuleSet.load(run))


def test_a_full_disk_is_noticed_before_anything_is_written(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(run / "prepared")
    usage = shutil.disk_usage(run)
    monkeypatch.setattr("anyburl.reasoning.opening.shutil.disk_usage", lambda _: usage._replace(free=1000))
    _, heard = open_run(run)
    assert "MB, and 0 MB are free: make room, keep fewer rules" in heard.notes[0]
    assert not (run / "prepared").exists()


def test_the_size_of_what_is_prepared_is_known_before_it_is_written(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.reasoning.opening.MANY_BYTES", 0)
    shutil.rmtree(run / "prepared")
    _, heard = open_run(run)
    written = sum(file.stat().st_size for file in (run / "prepared").rglob("*.npy"))
    (note,) = (note for note in heard.remarks if "--no-prepare" in note)
    assert abs(float(note.split(" MB ")[0].split()[-1]) - written / 1e6) < 1
