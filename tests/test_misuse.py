"""Calls of the public interface with wrong values: each is answered by an error of ours, never by anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import anyburl
from anyburl import Dataset, Reasoner, RuleSet
from anyburl.errors import AnyburlError, OptionError
from anyburl.learning.options import LearnOptions
from anyburl.synthetic.options import GraphOptions

NAN, INFINITE, HUGE = float("nan"), float("inf"), 2**70
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
    "threads": [10**6, 0, -1, 1.5, "2", True, NAN],
    "seed": [1.5, "1", -1, HUGE, None],
    "seconds": ["3", INFINITE, NAN, -1, True, 1e12],
    "paths": [HUGE, 0, "5", 1.5],
    "snapshots": [5, "10", [None], [INFINITE], [0], None],
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
    "smoothing": [INFINITE, NAN, -1, "5", None, True],
    "weights": [None, {"Q": 1}, {"B": "x"}, {"B": 2}, {"B": NAN}, ["B"]],
    "block_connected": [True, None, "maybe"],
    "object_identity": ["no", None, 1],
    "top_k": [0, 1.5, "5", HUGE, None],
    "threads": [10**6, 0, "2", 1.5],
    "aggregate": ["max"],
}
COUNT: Wrong = {
    "budget": [0, -5, HUGE, 1.5, "x"],
    "threads": [0, 10**6, "x"],
    "object_identity": ["no", None],
}
COMPLETE: Wrong = {
    "min_score": ["x", 2, NAN],
    "min_probability": [2, -1],
    "top": [1.5, 0, "x"],
    "per": [None, "year"],
    "relations": ["abc", 5, [1]],
    "subjects": [5, "ed"],
    "functional": [5, "ed"],
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
    "timeout": ["x", 0, INFINITE, NAN],
    "language": [5, ""],
    "graphs": [5, "g"],
    "prefixes": [5],
    "query": [5, " "],
}
PUBLISH: Wrong = {"graph": [5, "no iri"], "batch_size": ["x", 0], "timeout": ["x", 0, NAN]}
GENERATE: Wrong = {"triples": ["x", 1, None, HUGE], "entities": [1.5, 1], "relations": [-1, "x"], "seed": [None, -1]}
EXPORT: Wrong = {"to": [5, "basic"], "object_identity_": [True], "columns": ["abc", ("a", "b")]}
SEED: Wrong = {"seed": [1.5, "1", -1, None, True, HUGE]}
PROFILE: Wrong = {"cyclic": ["no", 1, None], "rule_length": [0, -1, 1.5, "2", None, True]}
TOP = [-1, 1.5, "x", None, HUGE]
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


def per_value(what: str, wrong: Wrong, call: Callable[[World, dict[str, Any]], Any]) -> Iterator[tuple[str, Call]]:
    for name, values in wrong.items():
        for value in values:
            yield f"{what} {name}={value!r:.40}", lambda world, name=name, value=value: call(world, {name: value})


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
    yield from per_value("generate", GENERATE, lambda world, wrong: GraphOptions(**{"triples": 1000, **wrong}))
    yield from per_value("filter", FILTER, lambda world, wrong: world.rules.filter(**wrong))
    yield from per_value(
        "export", EXPORT, lambda world, wrong: anyburl.export_rules(world.rules, "x", **{"to": "sql", **wrong})
    )


def arguments() -> Iterator[tuple[str, Call]]:
    for top in (0, *TOP):
        yield f"predict top={top!r}", lambda world, top=top: world.reasoner.predict("lisa", "speaks", None, top=top)
        yield f"explain top={top!r}", lambda world, top=top: world.reasoner.explain(TRIPLE, top=top)
    for top in TOP:
        yield f"groundings={top!r}", lambda world, top=top: world.reasoner.explain(TRIPLE, groundings=top)
        yield f"best rules={top!r}", lambda world, top=top: world.rules.top(top)
        yield f"hits at {top!r}", lambda world, top=top: world.reasoner.evaluate().hits(top)
    for query in ((None, None, None), ("lisa", None, None), (5, "speaks", None), ("lisa", "no", None), TRIPLE):
        yield f"predict {query}", lambda world, query=query: world.reasoner.predict(*query)
    for triple in (None, ("a",), TRIPLE[:2], (*TRIPLE[:2], None), 5, "abc", (*TRIPLE[:2], "nobody")):
        yield f"explain {triple}", lambda world, triple=triple: world.reasoner.explain(triple)
    for split in (None, "all", 5):
        yield f"split {split}", lambda world, split=split: world.reasoner.evaluate(split)
    yield "sorted by luck", lambda world: world.rules.top(3, by="luck")
    for smoothing in ("x", INFINITE, NAN, -1):
        yield f"smoothing {smoothing}", lambda world, value=smoothing: world.rules.top(3, smoothing=value)
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
    yield "count on a data set", lambda world: anyburl.rescore(world.rules, world.data)  # type: ignore[arg-type]


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
