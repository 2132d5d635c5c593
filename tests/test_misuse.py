"""Calls of the public interface with wrong values: each is answered by an error of ours, never by anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import anyburl
from anyburl import Dataset, Reasoner, RuleSet, TripleTable, Vocabulary
from anyburl.base.errors import AnyburlError, DataError, OptionError
from anyburl.learning.options import LearnOptions
from anyburl.rules.rule import Constant, Variable

NAN, INFINITE, HUGE = float("nan"), float("inf"), 2**70
VAST = 10**5000  # more than a float holds, and more digits than Python prints
NUMBERS = np.array([1, 2])
TRAIN = [("ed", "lives", "nl"), ("lisa", "lives", "nl"), ("nl", "lang", "dutch"), ("ed", "speaks", "dutch")]
TRIPLE = ("lisa", "speaks", "dutch")


class Something:
    """Neither rules nor data; its name is the same in every process that runs tests."""

    def __repr__(self) -> str:
        return "something"


class World(NamedTuple):
    """What is misused."""

    data: Dataset
    rules: RuleSet
    reasoner: Reasoner


@pytest.fixture(scope="module")
def world() -> World:
    data = Dataset.from_triples(TRAIN, test=[TRIPLE], name="speakers")
    rules = anyburl.learn(data, paths=500, min_support=1, threads=1, seed=1)
    return World(data, rules, Reasoner(rules, data))


Wrong = dict[str, list[Any]]

LEARN: Wrong = {
    "threads": [VAST, 10**6, 0, -1, 1.5, "2", True, NAN],
    "seed": [1.5, "1", -1, HUGE, None],
    "seconds": [VAST, "3", INFINITE, NAN, -1, True, 1e12],
    "paths": [HUGE, 0, "5", 1.5],
    "snapshots": [b"x", [VAST], 5, "10", [None], [INFINITE], [0], None],
    "budget": [HUGE, 0, 1.5, None],
    "relations": ["accusation", [], [1], 5],
    "object_identity": ["no", 1, None],
    "min_support": [HUGE, 1.5, 0],
    "min_confidence": [2, "x", NAN],
    "max_rules": [0, HUGE, 1.5],
    "epsilon": [2, None, -1],
    "saturation": [2, "x"],
    "span": [0, INFINITE, "1"],
    "policy": [None, 3, ["weighted"], "best"],
    "reward": [None, "gold"],
    "heads": [None, 1],
    "engine": [None, "steam"],
    "address": [5, "10.0.0.1:6379"],
    "max_cyclic": [99, 1.5, None, -1],
    "second": [3],
}
RANK: Wrong = {
    "aggregation": ["noisy-or-top:99999999999999999999", "noisy-or-top:0", None, 5, "noisy-or-top:" + "9" * 5000, ""],
    "smoothing": [VAST, INFINITE, NAN, -1, "5", None, True],
    "weights": [None, {"Q": 1}, {"B": "x"}, {"B": 2}, {"B": NAN}, ["B"]],
    "block_connected": [True, None, "maybe"],
    "object_identity": ["no", None, 1],
    "top_k": [0, 1.5, "5", HUGE, None],
    "threads": [10**6, 0, "2", 1.5],
    "fallback": ["no", None, 1],
    "aggregate": ["max"],
}
COUNT: Wrong = {
    "budget": [0, -5, HUGE, 1.5, "x"],
    "threads": [0, 10**6, "x"],
    "object_identity": ["no", None],
}
COMPLETE: Wrong = {
    "min_score": [VAST, True, "x", 2, NAN],
    "min_probability": [2, -1],
    "top": [1.5, 0, "x"],
    "per": [None, "year"],
    "relations": [NUMBERS, "abc", 5, [1]],
    "subjects": [5, "ed"],
    "functional": [5, "ed", NUMBERS],
    "exempt": [5, "ed", NUMBERS],
    "conflicts": ["no", 1],
    "missing": ["much", 1, -1, NAN, {"lives": 2}, {1: 0.5}, [0.5], True],
    "types": [5, ["lives"]],
    "reasons": ["no"],
    "score": [1],
}
EXAMINE: Wrong = {
    "seconds": ["x", NAN, -1, INFINITE],
    "top": [1.5, 0],
    "seed": ["a", -1],
    "threads": [10**6, 0],
    "types": [5],
    "second": [1],
}
READ: Wrong = {
    "columns": [5, "abc", ("a", "b"), ("a", "a", "b"), (1, 2, 3)],
    "split": ["x", (1, 2, 3), 5, ("a", "b", "c")],
    "literals": [None, "all"],
    "split_seed": ["x", -1, 1.5],
    "page_size": ["x", 0],
    "timeout": ["x", 0, INFINITE, NAN, VAST, 1e12],
    "language": [5, ""],
    "graphs": [5, "g"],
    "prefixes": [5, {"a": 1}],
    "query": [5, " "],
}
PUBLISH: Wrong = {"graph": [5, "no iri"], "batch_size": ["x", 0], "timeout": ["x", 0, NAN, 1e12]}
EXPORT: Wrong = {"to": [5, "basic"], "object_identity_": [True], "columns": ["abc", ("a", "b")]}
SEED: Wrong = {"seed": [1.5, "1", -1, None, True, HUGE]}
PROFILE: Wrong = {"cyclic": ["no", 1, None], "rule_length": [0, -1, 1.5, "2", None, True]}
TOP = [-1, 1.5, "x", None, HUGE, VAST]
TOP_K = [0, -1, 1.5, "x", HUGE]
FLAG = ["no", 1, None]
FILTER: Wrong = {
    "min_confidence": ["x", NAN, -1],
    "min_support": ["x", 1.5, -1],
    "type": [5, "Q", ["Q"]],
    "relation": [5, "nope"],
    "length": ["x", 1.5],
    "contains": [5, "nope"],
    "min_lift": [1, "x"],
}
NO_RULES: list[Any] = [None, 5, "nowhere", [], {}, Something(), [1, 2], b"rules"]
NO_DATA: list[Any] = [None, 5, "nowhere", [], [("a", "b")], {}, Something(), [1, 2, 3], [(None, "r", "b")]]

Call = Callable[[World], Any]


def named(value: object) -> str:
    """Return a value as the name of a test shows it."""
    try:
        return f"{value!r:.40}"
    except ValueError:  # too long
        return f"vast {type(value).__name__}"


def per_value(what: str, wrong: Wrong, call: Callable[[World, dict[str, Any]], Any]) -> Iterator[tuple[str, Call]]:
    for name, values in wrong.items():
        for value in values:
            yield f"{what} {name}={named(value)}", lambda world, name=name, value=value: call(world, {name: value})


def options() -> Iterator[tuple[str, Call]]:
    yield from per_value("learn", LEARN, lambda world, wrong: anyburl.learn(world.data, **wrong))
    yield from per_value("rank", RANK, lambda world, wrong: anyburl.evaluate(world.rules, world.data, **wrong))
    yield from per_value("reasoner", RANK, lambda world, wrong: Reasoner(world.rules, world.data, **wrong))
    yield from per_value("reasoner", SEED, lambda world, wrong: Reasoner(world.rules, world.data, **wrong))
    yield from per_value("open", SEED, lambda world, wrong: Reasoner.open("run", **wrong))
    yield from per_value(
        "profile", PROFILE, lambda world, wrong: anyburl.PathProfile(**{"cyclic": True, "rule_length": 2, **wrong})
    )
    yield from per_value("rescore", COUNT, lambda world, wrong: anyburl.rescore(world.rules, world.data.train, **wrong))
    yield from per_value("measure", COUNT, lambda world, wrong: anyburl.measure(world.rules, world.data.train, **wrong))
    yield from per_value("complete", COMPLETE, lambda world, wrong: list(world.reasoner.complete(**wrong)))
    yield from per_value("examine", EXAMINE, lambda world, wrong: anyburl.examine(world.data, **wrong))
    yield from per_value("read", READ, lambda world, wrong: anyburl.ReadOptions(**wrong))
    yield from per_value("publish", PUBLISH, lambda world, wrong: anyburl.PublishOptions(**wrong))
    yield from per_value("filter", FILTER, lambda world, wrong: world.rules.filter(**wrong))
    yield from per_value(
        "export", EXPORT, lambda world, wrong: anyburl.export_rules(world.rules, "x", **{"to": "sql", **wrong})
    )


def arguments() -> Iterator[tuple[str, Call]]:
    for top in (0, *TOP):
        yield (
            f"predict top={named(top)}",
            lambda world, top=top: world.reasoner.predict("lisa", "speaks", None, top=top),
        )
        yield f"explain top={named(top)}", lambda world, top=top: world.reasoner.explain(TRIPLE, top=top)
    for top in TOP:
        yield f"groundings={named(top)}", lambda world, top=top: world.reasoner.explain(TRIPLE, groundings=top)
        yield f"best rules={named(top)}", lambda world, top=top: world.rules.top(top)
        yield f"hits at {named(top)}", lambda world, top=top: world.reasoner.evaluate().hits(top)
        if top is not None:
            yield f"changed {named(top)}", lambda world, top=top: anyburl.diff(world.rules, world.rules).changed(top)
    for top_k in TOP_K:
        yield f"rank top_k={top_k!r}", lambda world, top_k=top_k: world.reasoner.rank(top_k=top_k)
        yield f"rankings top_k={top_k!r}", lambda world, top_k=top_k: world.reasoner.save_rankings("x", top_k=top_k)
    for flag in FLAG:
        yield (
            f"predict include_known={flag!r}",
            lambda world, flag=flag: world.reasoner.predict("lisa", "speaks", None, include_known=flag),
        )
        yield f"open prepare={flag!r}", lambda world, flag=flag: Reasoner.open("run", prepare=flag)
        yield f"save escaped={flag!r}", lambda world, flag=flag: world.rules.save("x.txt", escaped=flag)
    for query in ((None, None, None), ("lisa", None, None), (5, "speaks", None), ("lisa", "no", None), TRIPLE):
        yield f"predict {query}", lambda world, query=query: world.reasoner.predict(*query)
    for triple in (None, ("a",), TRIPLE[:2], (*TRIPLE[:2], None), 5, "abc", (*TRIPLE[:2], "nobody")):
        yield f"explain {triple}", lambda world, triple=triple: world.reasoner.explain(triple)
    for split in (None, "all", 5):
        yield f"split {split}", lambda world, split=split: world.reasoner.evaluate(split)
    for wrong in (5, "show", []):
        told: dict[str, Any] = {"progress": wrong}
        yield f"predict progress={wrong!r}", lambda world, told=told: list(world.reasoner.predict_frames([], **told))
        yield f"rank progress={wrong!r}", lambda world, told=told: list(world.reasoner.rank_frames(**told))
        yield f"rankings progress={wrong!r}", lambda world, told=told: world.reasoner.save_rankings("x", **told)
        yield f"evaluate progress={wrong!r}", lambda world, told=told: world.reasoner.evaluate(**told)
        yield f"complete progress={wrong!r}", lambda world, told=told: list(world.reasoner.complete(**told))
        yield f"export progress={wrong!r}", lambda world, told=told: anyburl.export_rules(world.rules, "x.sql", **told)
        yield f"index progress={wrong!r}", lambda world, told=told: anyburl.build_index("geo", "index", **told)
        yield f"learn on_span={wrong!r}", lambda world, wrong=wrong: anyburl.learn(world.data, on_span=wrong)
    yield "sorted by luck", lambda world: world.rules.top(3, by="luck")
    yield "sorted by a list", lambda world: world.rules.top(3, by=[])
    for smoothing in ("x", INFINITE, NAN, -1, None, VAST):
        yield f"confidence {named(smoothing)}", lambda world, value=smoothing: world.rules.confidence(value)
        yield f"smoothing {named(smoothing)}", lambda world, value=smoothing: world.rules.top(3, smoothing=value)
    for only in ("lift", [3], 5):
        yield f"measure {only}", lambda world, only=only: anyburl.measure(world.rules, world.data.train, only=only)


def objects() -> Iterator[tuple[str, Call]]:
    for wrong in NO_RULES:
        name = f"{wrong!r:.30}"
        yield f"load {name}", lambda world, wrong=wrong: RuleSet.load(wrong)
        yield f"reason with {name}", lambda world, wrong=wrong: Reasoner(wrong, world.data)
        yield f"rescore {name}", lambda world, wrong=wrong: anyburl.rescore(wrong, world.data.train)
        yield f"diff {name}", lambda world, wrong=wrong: anyburl.diff(world.rules, wrong)
        yield f"parse {name}", lambda world, wrong=wrong: anyburl.parse_rule(wrong)
        yield f"frame {name}", lambda world, wrong=wrong: RuleSet.from_polars(wrong)
        yield f"save to {name}", lambda world, wrong=wrong: world.rules.save(wrong)
    for wrong in NO_DATA:
        name = f"{wrong!r:.30}"
        yield f"load data {name}", lambda world, wrong=wrong: anyburl.load_dataset(wrong)
        yield f"learn from {name}", lambda world, wrong=wrong: anyburl.learn(wrong, paths=1)
        yield f"reason on {name}", lambda world, wrong=wrong: Reasoner(world.rules, wrong)
        yield f"count on {name}", lambda world, wrong=wrong: anyburl.rescore(world.rules, wrong)
        yield f"examine {name}", lambda world, wrong=wrong: anyburl.examine(wrong)
    for wrong in (5, [1, 2], Something()):
        name = f"{wrong!r}"
        yield f"options {name}", lambda world, wrong=wrong: Reasoner(world.rules, world.data, wrong)
        yield f"names {name}", lambda world, wrong=wrong: Reasoner(world.rules, world.data, names=wrong)
        yield f"other {name}", lambda world, wrong=wrong: Reasoner(world.rules, world.data, other=wrong)
        yield f"complete {name}", lambda world, wrong=wrong: list(world.reasoner.complete(wrong))
        yield f"reasoner {name}", lambda world, wrong=wrong: anyburl.evaluate(world.rules, world.data, reasoner=wrong)
        yield f"read with {name}", lambda world, wrong=wrong: world.rules.with_vocabulary(wrong)
        yield f"merge with {name}", lambda world, wrong=wrong: world.rules.merge(wrong)
        yield f"join {name}", lambda world, wrong=wrong: RuleSet.concat(wrong)
        yield f"format {name}", lambda world, wrong=wrong: anyburl.format_rule(wrong)
        yield f"table over {name}", lambda world, wrong=wrong: TripleTable(wrong, world.data.train.triples)
        yield f"queries {name}", lambda world, wrong=wrong: world.reasoner.predict([wrong])
        yield f"data set called {name}", lambda world, wrong=wrong: Dataset.from_triples(TRAIN, name=wrong)
        yield f"data set of {name}", lambda world, wrong=wrong: Dataset("x", wrong, world.data.valid, world.data.test)
    for wrong in (5, "abc", None):
        yield f"labels {wrong!r}", lambda world, wrong=wrong: Vocabulary.from_labels(wrong, ["r"])
        yield f"columns {wrong!r}", lambda world, wrong=wrong: TripleTable.from_labels(wrong, ["r"], ["b"])
    for wrong in (5, b"run", [], "", "a\0b"):
        name = f"{wrong!r}"
        yield f"open {name}", lambda world, wrong=wrong: Reasoner.open(wrong)
        yield f"learn into {name}", lambda world, wrong=wrong: anyburl.learn(world.data, paths=1, out=wrong)
        yield f"run folder {name}", lambda world, wrong=wrong: anyburl.RunDirectory(wrong)
        yield f"export to {name}", lambda world, wrong=wrong: anyburl.export_rules(world.rules, wrong, to="sql")
        yield f"index into {name}", lambda world, wrong=wrong: anyburl.build_index(TRAIN, wrong)
        yield f"review in {name}", lambda world, wrong=wrong: anyburl.ReviewLog(wrong)
        yield f"rankings into {name}", lambda world, wrong=wrong: world.reasoner.save_rankings(wrong)
    atom = anyburl.Atom("speaks", Variable("X"), Variable("Y"))
    for wrong in (5, None, [1]):
        name = f"{wrong!r}"
        yield f"variable {name}", lambda world, wrong=wrong: Variable(wrong)
        yield f"constant {name}", lambda world, wrong=wrong: Constant(wrong)
        yield f"atom about {name}", lambda world, wrong=wrong: anyburl.Atom(wrong, atom.subject, atom.object)
        yield f"atom with {name}", lambda world, wrong=wrong: anyburl.Atom("speaks", atom.subject, wrong)
        yield f"rule with the head {name}", lambda world, wrong=wrong: anyburl.Rule(wrong, (atom,))
        yield f"rule with the body {name}", lambda world, wrong=wrong: anyburl.Rule(atom, wrong)
    for at in ([], b"10", -1, NAN):
        yield f"snapshot at {at!r}", lambda world, at=at: at_snapshot(world, at)


def at_snapshot(world: World, at: Any) -> RuleSet:
    anyburl.learn(world.data, paths=10, out="run", threads=1)
    return RuleSet.load("run", at=at)


MISUSES = dict((*options(), *arguments(), *objects()))


def test_there_are_many() -> None:
    assert len(MISUSES) >= 300


@pytest.mark.parametrize("name", MISUSES)
def test_a_misuse_is_told_in_one_sentence(world: World, name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AnyburlError) as caught:
        MISUSES[name](world)
    assert "\n" not in str(caught.value).strip()


def test_an_unknown_option_is_told_with_one_that_is_like_it(world: World) -> None:
    with pytest.raises(OptionError, match=r"unknown option 'second'; did you mean 'seconds'\?"):
        anyburl.learn(world.data, second=3)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match=r"unknown option 'telepathy'$"):
        Reasoner(world.rules, world.data, telepathy=True)  # type: ignore[call-arg]


def test_numbers_of_numpy_are_plain_numbers_in_options() -> None:
    options = LearnOptions(seed=np.int64(3), seconds=np.float32(2), snapshots=(np.float64(1),), threads=np.int32(1))  # type: ignore[arg-type]
    assert json.loads(json.dumps(options.to_json()))["seed"] == 3
    assert [type(value) for value in (options.seed, options.seconds, *options.snapshots)] == [int, float, float]


def test_what_is_quoted_is_short_and_in_one_line() -> None:
    assert str(DataError("a\nb\x1b[2J: no such file")) == "a\\nb\\x1b[2J: no such file"
    with pytest.raises(OptionError, match=r"^top must be a whole number, got \[0, 0, .{180,200}\.\.\.$"):
        anyburl.DoctorOptions(top=[0] * 10_000)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="got a value of type int that cannot be printed"):
        anyburl.DoctorOptions(top=VAST)


def test_a_folder_in_the_home_is_the_same_for_whoever_writes_and_reads(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    anyburl.learn(world.data, paths=10, threads=1, out="~/run")
    world.rules.save("~/rules.txt")
    world.reasoner.save_rankings("~/ranked.txt")
    assert {path.name for path in tmp_path.iterdir()} >= {"run", "rules.txt", "ranked.txt"}
    assert len(RuleSet.load("~/rules.txt")) == len(world.rules)
