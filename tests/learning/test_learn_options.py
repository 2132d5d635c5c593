"""Options are checked when made, and say what was wrong, what was given and what would do."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from anyburl import LearnOptions, PathProfile
from anyburl.base.errors import InvalidOptionError
from anyburl.learning.options import POLICIES


def test_the_defaults_are_the_papers() -> None:
    """Section 4.1: cyclic rules to length 3, acyclic to 1, support 2, confidence above 0.0001, weighted by R_sxc."""
    options = LearnOptions()
    assert (options.max_cyclic, options.max_acyclic, options.max_grounded) == (3, 1, 1)
    assert (options.min_support, options.min_confidence) == (2, 0.0001)
    assert (options.policy, options.reward, options.epsilon) == ("weighted", "support-confidence", 0.1)
    assert (options.saturation, options.span, options.heads) == (0.99, 1.0, "all")
    assert options.object_identity


def test_profiles_go_from_short_to_long_and_cyclic_before_acyclic() -> None:
    expected = [(True, 1), (False, 1), (True, 2), (False, 2), (True, 3)]
    assert LearnOptions(max_cyclic=3, max_acyclic=2).profiles == tuple(PathProfile(*pair) for pair in expected)
    assert LearnOptions(max_cyclic=0, max_acyclic=1).profiles == (PathProfile(False, 1),)


def test_a_path_budget_takes_the_place_of_seconds() -> None:
    assert (LearnOptions().seconds, LearnOptions().paths) == (100.0, None)
    assert (LearnOptions(paths=10).seconds, LearnOptions(paths=10).paths) == (None, 10)
    assert (LearnOptions(seconds=5).seconds, LearnOptions(seconds=5).paths) == (5, None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": 5, "paths": 100}, "paths must be left out when seconds is given, got 100"),
        ({"seconds": "5"}, "seconds must be a number, got '5'"),
        ({"paths": 1.5}, "paths must be a whole number, got 1.5"),
        ({"max_cyclic": None}, "max_cyclic must be a whole number, got None"),
        ({"threads": True}, "threads must be a whole number, got True"),
        ({"seconds": -1}, "seconds must be at least 0, got -1"),
        ({"seconds": float("nan")}, "seconds must be at least 0, got nan"),
        ({"paths": 0}, "paths must be at least 1, got 0"),
        ({"max_cyclic": -1}, "max_cyclic must be at least 0, got -1"),
        ({"max_cyclic": 8}, "max_cyclic must be at most 7, got 8"),
        ({"max_acyclic": 99}, "max_acyclic must be at most 7, got 99"),
        ({"min_support": 0}, "min_support must be at least 1, got 0"),
        ({"min_confidence": 1.5}, "min_confidence must be at most 1, got 1.5"),
        ({"epsilon": -0.1}, "epsilon must be at least 0, got -0.1"),
        ({"saturation": 2}, "saturation must be at most 1, got 2"),
        ({"span": 0}, "span must be at least 0.01, got 0"),
        ({"budget": 0}, "budget must be at least 1, got 0"),
        ({"max_rules": 0}, "max_rules must be at least 1, got 0"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"snapshots": (10.0, 0.0)}, r"snapshots must be seconds above 0, got \(10.0, 0.0\)"),
        ({"snapshots": 10.0}, "snapshots must be seconds above 0, got 10.0"),
        ({"snapshots": ("soon",)}, r"snapshots must be seconds above 0, got \('soon',\)"),
        ({"max_cyclic": 0, "max_acyclic": 0}, "max_cyclic must be at least 1 when max_acyclic is 0, got 0"),
        ({"object_identity": "no"}, "object_identity must be True or False, got 'no'"),
        ({"address": "auto"}, "address must be left out unless engine is ray, got 'auto'"),
        ({"policy": "best"}, f"policy must be one of {', '.join(POLICIES)}, got 'best'"),
        ({"reward": "gold"}, "reward must be one of support, .*, got 'gold'"),
        ({"heads": "some"}, "heads must be one of all, sampled, got 'some'"),
        ({"engine": "steam"}, "engine must be one of threads.*, got 'steam'"),
        ({"relations": ()}, r"relations must be at least one relation, got \(\)"),
        ({"relations": "borders"}, "relations must be a list of relations, got 'borders'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=f"^{message}$"):
        LearnOptions(**changes)


@pytest.mark.parametrize(
    ("before", "changes", "budget"),
    [
        ({}, {}, (100.0, None)),
        ({"seconds": 5}, {"paths": 10}, (None, 10)),
        ({"paths": 10}, {"seconds": 5}, (5, None)),
        ({"paths": 10}, {"seed": 1}, (None, 10)),
        ({"paths": 10}, {"paths": 20}, (None, 20)),
    ],
)
def test_a_new_budget_replaces_the_old_one(
    before: dict[str, Any], changes: dict[str, Any], budget: tuple[float | None, int | None]
) -> None:
    options = LearnOptions(**before).changed(**changes)
    assert (options.seconds, options.paths) == budget


def test_two_new_budgets_are_one_too_many() -> None:
    with pytest.raises(InvalidOptionError, match="paths must be left out when seconds is given, got 9"):
        LearnOptions().changed(seconds=1, paths=9)


def test_a_run_that_leaves_the_cluster_forgets_its_address() -> None:
    on_cluster = LearnOptions(engine="ray", address="auto")
    assert on_cluster.changed(seed=1).address == "auto"
    assert on_cluster.changed(engine="threads").address is None


def test_lists_are_kept_as_tuples() -> None:
    options = LearnOptions(snapshots=[1, 2.5], relations=["borders"])  # type: ignore[arg-type]
    assert (options.snapshots, options.relations) == ((1, 2.5), ("borders",))


def test_options_survive_json() -> None:
    options = LearnOptions(paths=7, relations=("a", "b"), snapshots=(1.5, 2.0), max_rules=3, threads=2)
    stored = json.loads(json.dumps(options.to_json()))
    stored["relations"], stored["snapshots"] = tuple(stored["relations"]), tuple(stored["snapshots"])
    assert LearnOptions(**stored) == options


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        LearnOptions().seed = 1  # type: ignore[misc]
