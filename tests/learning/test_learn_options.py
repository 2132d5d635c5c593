"""Options are checked when made, and say what was wrong, what was given and what would do."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from anyburl import LearnOptions, OptionError, PathProfile
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
    assert LearnOptions(paths=10).seconds is None
    assert LearnOptions(seconds=5).paths is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": None}, "LearnOptions needs a budget: seconds or paths, got neither"),
        ({"seconds": -1}, "LearnOptions.seconds must be at least 0, got -1"),
        ({"seconds": float("nan")}, "LearnOptions.seconds must be at least 0, got nan"),
        ({"paths": 0}, "LearnOptions.paths must be at least 1, got 0"),
        ({"max_cyclic": -1}, "LearnOptions.max_cyclic must be at least 0, got -1"),
        ({"max_cyclic": 8}, "LearnOptions.max_cyclic must be at most 7, got 8"),
        ({"max_acyclic": 99}, "LearnOptions.max_acyclic must be at most 7, got 99"),
        ({"min_support": 0}, "LearnOptions.min_support must be at least 1, got 0"),
        ({"min_confidence": 1.5}, "LearnOptions.min_confidence must be at most 1, got 1.5"),
        ({"epsilon": -0.1}, "LearnOptions.epsilon must be at least 0, got -0.1"),
        ({"saturation": 2}, "LearnOptions.saturation must be at most 1, got 2"),
        ({"span": 0}, "LearnOptions.span must be at least 0.01, got 0"),
        ({"budget": 0}, "LearnOptions.budget must be at least 1, got 0"),
        ({"max_rules": 0}, "LearnOptions.max_rules must be at least 1, got 0"),
        ({"threads": 0}, "LearnOptions.threads must be at least 1, got 0"),
        ({"seed": -1}, "LearnOptions.seed must be at least 0, got -1"),
        ({"snapshots": (10.0, 0.0)}, r"LearnOptions.snapshots must be seconds above 0, got \(10.0, 0.0\)"),
        ({"max_cyclic": 0, "max_acyclic": 0}, "max_cyclic and max_acyclic are both 0: there is no path to sample"),
        ({"policy": "best"}, f"LearnOptions.policy must be one of {', '.join(POLICIES)}, got 'best'"),
        ({"reward": "gold"}, "LearnOptions.reward must be one of support, .*, got 'gold'"),
        ({"heads": "some"}, "LearnOptions.heads must be one of all, sampled, got 'some'"),
        ({"engine": "steam"}, "LearnOptions.engine must be one of threads.*, got 'steam'"),
        ({"relations": ()}, "LearnOptions.relations must name at least one relation, got none"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LearnOptions(**changes)


def test_options_survive_json() -> None:
    options = LearnOptions(paths=7, relations=("a", "b"), snapshots=(1.5, 2.0), max_rules=3, threads=2)
    stored = json.loads(json.dumps(options.to_json()))
    stored["relations"], stored["snapshots"] = tuple(stored["relations"]), tuple(stored["snapshots"])
    assert LearnOptions(**stored) == options


def test_options_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        LearnOptions().seed = 1  # type: ignore[misc]
