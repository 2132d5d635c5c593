"""Questions about the past, where facts after the moment count as well."""

from __future__ import annotations

import pytest

from anyburl.base.errors import DataError
from anyburl.temporal.facts import load_temporal_dataset
from anyburl.temporal.interpolation import TemporalInterpolator, mirror_facts
from anyburl.temporal.learner import learn_temporal
from anyburl.temporal.reasoner import TemporalReasoner


def reasoner() -> TemporalReasoner:
    """A member of one club until day 9, of another from day 11 on; day 10 is missing."""
    facts = [("ann", "member", "chess" if day < 10 else "rowing", str(day)) for day in range(20) if day != 10]
    facts += [(f"p{i}", "member", "chess" if i % 2 else "rowing", str(day)) for i in range(4) for day in range(20)]
    dataset = load_temporal_dataset(facts)
    return TemporalReasoner(learn_temporal(dataset, model="none", threads=1), dataset, threads_used=1)


def test_facts_after_the_moment_count_as_well() -> None:
    back = reasoner()
    both = TemporalInterpolator.of(back)
    found = {answer.entity: answer.score for answer in both.predict("ann", "member", None, "10")}
    before = {answer.entity: answer.score for answer in back.predict("ann", "member", None, "10")}
    assert set(found) == {"chess", "rowing"}
    assert before["chess"] > 5 * before["rowing"]
    assert found["rowing"] > 5 * before["rowing"]
    with pytest.raises(DataError, match="expected a moment of the history, from 0 to 19"):
        both.predict("ann", "member", None, "30")


def test_mirrored_facts_run_the_other_way() -> None:
    dataset = load_temporal_dataset([("a", "r", "b", "0", "2"), ("a", "r", "c", "5", "8")], time=("4", "5"))
    turned = mirror_facts(dataset.train, 8)
    assert turned.times.tolist() == [0, 6]
    assert turned.ends is not None
    assert turned.ends.tolist() == [3, 8]
    assert mirror_facts(turned, 8).triples.tolist() == dataset.train.triples.tolist()
