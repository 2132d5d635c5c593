"""A tuned model stays in the run folder: used while rules, data, options and seed are the same."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import Heard, copy_run, make_run, open_run, told

import anyburl
from anyburl import Reasoner, RuleSet
from anyburl.errors import RunError
from anyburl.kept import damaged
from anyburl.reasoning import opening
from anyburl.ruleset.files.run_folder import RULES
from anyburl.tuning.evidence import rule_groups
from anyburl.tuning.reranker import TunedReranker
from anyburl.tuning.train import Tuning

USED = "using the tuned model kept in {run}"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, prepared and tuned: no model is better than a fixed aggregation, which is kept all the same."""
    run = make_run(tmp_path_factory.mktemp("original"))
    open_run(run, aggregation="tuned")
    return run


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return copy_run(original, tmp_path / "copy")


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **keywords: Any) -> Tuning:
        raise AssertionError("nothing should be trained")

    monkeypatch.setattr(opening, "tune", refuse)


def tuning_of(reasoner: Reasoner) -> Tuning:
    assert isinstance(reasoner.ranker.reranker, TunedReranker)
    return reasoner.ranker.reranker.tuning


def open_tuned(run: Path, **options: Any) -> tuple[Reasoner, Heard]:
    return open_run(run, aggregation="tuned", **options)


@pytest.mark.usefixtures("no_training")
def test_the_second_opening_trains_nothing(run: Path) -> None:
    reasoner, heard = open_tuned(run)
    assert heard.remarks == [USED.format(run=run)]
    assert tuning_of(reasoner).stored
    assert reasoner.seconds["tune"] == 0.0


@pytest.mark.usefixtures("no_training")
def test_threads_and_weights_that_change_nothing_are_the_same_options(run: Path) -> None:
    _, heard = open_tuned(run, threads=2, top_k=7, weights={"Ud": 1.0})
    assert heard.remarks == [USED.format(run=run)]


def change_rules(run: Path) -> None:
    RuleSet.load(run)[5:].save(run / RULES)


def change_data(run: Path) -> None:
    with (run.parent / "data" / "train.txt").open("a") as file:
        file.write("p00\tknows\tcity0\n")


def kept_file(run: Path) -> Path:
    (file,) = (run / "tuned").iterdir()
    return file


def truncate(run: Path) -> None:
    kept_file(run).write_bytes(kept_file(run).read_bytes()[:-30])


def flip_bytes(run: Path) -> None:
    content = bytearray(kept_file(run).read_bytes())
    content[len(content) // 3] ^= 255
    kept_file(run).write_bytes(content)


def write_garbage(run: Path) -> None:
    kept_file(run).write_bytes(b"garbage")


def empty(run: Path) -> None:
    kept_file(run).write_bytes(b"")


DAMAGES: dict[Callable[[Path], None], str] = {
    change_rules: "tuning again: the rules have changed",
    change_data: "tuning again: the data has changed",
    truncate: "is damaged (",
    flip_bytes: "is damaged (",
    write_garbage: "is damaged (",
    empty: "is damaged (",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_stale_or_damaged_is_trained_again_and_kept(run: Path, damage: Callable[[Path], None]) -> None:
    damage(run)
    reasoner, heard = open_tuned(run)
    assert len(heard.tuned) == 1
    assert DAMAGES[damage] in heard.remarks[-1]
    assert not tuning_of(reasoner).stored
    again, heard = open_tuned(run)
    assert heard.tuned == []
    assert told(again) == told(reasoner)


def test_a_file_that_cannot_be_opened_is_not_called_damaged() -> None:
    told = damaged(Path("model.npz"), OSError(errno.EMFILE, "Too many open files"))
    assert told == "model.npz cannot be read ([Errno 24] Too many open files)"


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1},
        {"smoothing": 1.0},
        {"weights": {"Ud": 0.5}},
        {"object_identity": False},
        {"block_connected": "on"},
    ],
    ids=str,
)
def test_other_options_have_models_of_their_own(run: Path, options: dict[str, Any]) -> None:
    _, heard = open_tuned(run, **options)
    assert heard.tuned == ["tuning on data"]
    for chosen in (options, {}):
        _, heard = open_tuned(run, **chosen)
        assert heard.tuned == []
    assert len(list((run / "tuned").iterdir())) == 2


def test_a_model_that_cannot_be_kept_is_used_all_the_same(run: Path) -> None:
    shutil.rmtree(run / "tuned")
    (run / "tuned").write_text("in the way")
    reasoner, heard = open_tuned(run)
    assert len(heard.notes) == 1
    assert heard.notes[0].startswith("the tuned model was not saved: ")
    assert reasoner.predict("p00", "speaks", None) is not None
    with pytest.raises(RunError, match="cannot be written"):
        opening.tuning_of(
            reasoner.ranker, reasoner.dataset, rule_groups(reasoner.rules), heard.front, 0, run, again=True
        )


def test_a_model_of_trees_comes_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On geo there is enough to learn from, if only from a few questions."""
    for name in ("MOST_QUESTIONS", "MORE_QUESTIONS"):
        monkeypatch.setattr(f"anyburl.tuning.train.{name}", 500)
    anyburl.learn("geo", paths=3000, seed=1, out=tmp_path / "run")
    first, _ = open_tuned(tmp_path / "run", threads=2)
    monkeypatch.setattr(opening, "tune", None)
    second, heard = open_tuned(tmp_path / "run", threads=2)
    assert heard.tuned == []
    forests = [tuning_of(reasoner).model for reasoner in (first, second)]
    assert forests[0] is not None
    assert forests[1] is not None
    for name, column in forests[0].forest._asdict().items():
        assert np.array_equal(column, getattr(forests[1].forest, name)), name
    question = ("France", "official_language", None)
    left, right = (one.predict([question, (None, "located_in", "Denmark")]).rows() for one in (first, second))
    assert left == right
    assert first.evaluate().metrics == second.evaluate().metrics
    triple = ("Bangladesh", "time_zone", "Asia/Dhaka")
    assert first.explain(triple).to_json() == second.explain(triple).to_json()
