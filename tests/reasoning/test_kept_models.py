"""A tuned model stays in the run folder: used while rules, data, options and seed are the same."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import Heard, copy_run, make_run, open_run, told, write_data

import anyburl
from anyburl import RankOptions, Reasoner, RuleSet
from anyburl.base.errors import RunError
from anyburl.base.writing import damaged
from anyburl.models.embedding import Embedding, save_embedding
from anyburl.models.tuned.observations import rule_groups
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import Tuning, tuning_key
from anyburl.reasoning import opening
from anyburl.reasoning.metrics import METRICS, keep_metrics, read_metrics
from anyburl.reasoning.opening import Feedback
from anyburl.reasoning.prepared import CARD, PREPARED, Prepared
from anyburl.rules.run_folder import RULES

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

    monkeypatch.setattr("anyburl.models.tuned.train.tune", refuse)


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


OTHER_VALUES: dict[str, Any] = {
    "aggregation": "noisy-or",
    "smoothing": 1.0,
    "weights": {"Ud": 0.5},
    "block_connected": "on",
    "object_identity": False,
    "fallback": True,
    "top_k": 7,
    "threads": 3,
}
NO_EFFECT = {
    "scores": {"top_k", "threads"},
    "model": {"top_k", "threads", "aggregation", "fallback"},
}
"""The options that kept results do not depend on: a new option is in every key until it is listed here."""


@pytest.mark.parametrize("name", [field.name for field in fields(RankOptions)])
def test_every_option_is_in_the_keys_of_kept_results_unless_it_has_no_effect(original: Path, name: str) -> None:
    """Of calibrations, tuned models and metrics."""
    run, heard = original, Heard()
    keys: dict[str, list[Any]] = {"scores": [], "model": [], "metrics": []}
    for chosen in ({}, {name: OTHER_VALUES[name]}):
        reasoner, heard = open_run(run, **chosen)
        ranker, data = reasoner.ranker, reasoner.dataset
        keys["scores"].append(opening.make_calibration_key(ranker, data, 0, run).name)
        options = opening.tuning_options(ranker.options, ranker.block_connected, 0)
        keys["model"].append(tuning_key("rules", "data", options).name)
        keep_metrics(run, reasoner.evaluate("valid"), None)
        keys["metrics"].append(len(read_metrics(run)))
        assert heard.notes == []
    (run / METRICS).unlink()
    for result in ("scores", "model"):
        assert (keys[result][0] == keys[result][1]) == (name in NO_EFFECT[result]), result
    assert keys["metrics"] == ([1, 1] if name in NO_EFFECT["scores"] else [1, 2])


def test_the_seed_is_in_the_keys_of_kept_results(run: Path) -> None:
    reasoner, _ = open_run(run)
    first, second = (opening.make_calibration_key(reasoner.ranker, reasoner.dataset, seed, run).name for seed in (0, 1))
    assert first != second
    one, other = (opening.tuning_options(reasoner.options, False, seed) for seed in (0, 1))
    assert tuning_key("rules", "data", one).name != tuning_key("rules", "data", other).name


@pytest.fixture
def few_facts_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run be calibrated on the few facts that it has."""
    monkeypatch.setattr("anyburl.reasoning.completion.promises.FEWEST_BACK", 5)


@pytest.mark.usefixtures("few_facts_will_do")
def test_a_calibration_without_fallback_is_not_used_with_it(run: Path) -> None:
    open_run(run)[0].calibrate()
    assert open_run(run)[0].calibration is not None
    assert open_run(run, fallback=True)[0].calibration is None


def own_data(run: Path) -> Path:
    return run.parent / "data"


OPENINGS: dict[str, Callable[[Path, Feedback], Reasoner]] = {
    "its data by name": lambda run, feedback: Reasoner.open(run, own_data(run), feedback=feedback, aggregation="tuned"),
    "not prepared": lambda run, feedback: Reasoner.open(run, prepare=False, feedback=feedback, aggregation="tuned"),
    "a reasoner of the folder": lambda run, feedback: Reasoner(run, own_data(run), aggregation="tuned"),
}


@pytest.mark.usefixtures("no_training")
@pytest.mark.parametrize("opened", OPENINGS)
def test_a_kept_model_is_used_however_the_run_is_opened(run: Path, opened: str) -> None:
    shutil.rmtree(run / PREPARED)
    heard = Heard()
    assert tuning_of(OPENINGS[opened](run, heard.feedback)).stored
    assert heard.notes == []
    assert not (run / PREPARED).exists()


@pytest.mark.usefixtures("no_training")
def test_a_kept_model_is_used_where_nothing_can_be_written(run: Path) -> None:
    (run / PREPARED / CARD).unlink()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opening, "make_prepared", refuse_to_write)
        reasoner, heard = open_tuned(run)
    assert tuning_of(reasoner).stored
    assert [note for note in heard.notes if "unprepared" not in note] == []


def refuse_to_write(*arguments: Any, **keywords: Any) -> Prepared:
    raise RunError("the folder cannot be written")


def test_hybrid_finds_the_embedding_of_the_run_however_it_is_opened(run: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed: pip install 'anyburl[embed]'")
    data = anyburl.load_dataset(own_data(run))
    rng, sizes = np.random.default_rng(0), (data.vocabulary.n_entities, 2 * data.vocabulary.n_relations)
    save_embedding(run, Embedding(*(rng.standard_normal((n, 4), np.float32) for n in sizes)), data, {})
    first, _ = open_run(run, aggregation="hybrid")
    assert not tuning_of(first).stored
    for again in (
        Reasoner(run, data, aggregation="hybrid", threads=1),
        Reasoner.open(run, own_data(run), aggregation="hybrid", threads=1),
        Reasoner.open(run, prepare=False, aggregation="hybrid", threads=1),
    ):
        assert tuning_of(again).stored
        assert told(again) == told(first)


@pytest.mark.usefixtures("few_facts_will_do")
def test_a_calibration_is_used_however_the_run_is_opened(run: Path) -> None:
    open_run(run)[0].calibrate()
    assert Reasoner(run, own_data(run)).calibration is not None
    assert Reasoner.open(run, own_data(run)).calibration is not None
    assert open_run(run, aggregation="noisy-or")[0].with_aggregation("max").calibration is not None
    other = write_data(run.parent / "other", seed=3)
    elsewhere = Reasoner(run, other)
    assert elsewhere.calibration is None
    elsewhere.calibrate()
    assert open_run(run)[0].calibration is not None, "that of the run's own data stays"


def test_another_aggregation_keeps_the_other_options(run: Path) -> None:
    reasoner = Reasoner.open(run, fallback=True, seed=3, threads=1)
    question = ("city0", "knows", None)
    assert reasoner.predict(*question), "no rule predicts anything, the fallback does"
    other = reasoner.with_aggregation("noisy-or")
    assert other.predict(*question)
    sampled = [one.evaluate(protocol="sampled").protocol["seed"] for one in (reasoner, other)]
    assert sampled == [3, 3]


def test_a_model_that_cannot_be_kept_is_used_all_the_same(run: Path) -> None:
    shutil.rmtree(run / "tuned")
    (run / "tuned").write_text("in the way")
    reasoner, heard = open_tuned(run)
    assert len(heard.notes) == 1
    assert heard.notes[0].startswith("the tuned model was not saved: ")
    assert reasoner.predict("p00", "speaks", None) is not None
    with pytest.raises(RunError, match="cannot be written"):
        opening.tuning_of(
            reasoner.ranker, reasoner.dataset, rule_groups(reasoner.rules), heard.feedback, 0, run, again=True
        )


def test_a_model_of_trees_comes_back_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On geo there is enough to learn from, if only from a few questions."""
    for name in ("MOST_QUESTIONS", "MORE_QUESTIONS"):
        monkeypatch.setattr(f"anyburl.models.tuned.train.{name}", 500)
    anyburl.learn("geo", paths=3000, seed=1, out=tmp_path / "run")
    first, _ = open_tuned(tmp_path / "run", threads=2)
    monkeypatch.setattr("anyburl.models.tuned.train.tune", None)
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
