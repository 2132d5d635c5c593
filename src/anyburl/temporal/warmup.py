"""Compile the kernels of temporal rules before anyone waits for them."""

from __future__ import annotations

from anyburl.temporal.facts import load_temporal_dataset
from anyburl.temporal.learner import TemporalLearner
from anyburl.temporal.reasoner import TemporalReasoner

TINY = [("a", "r", "b", "1"), ("b", "r", "a", "2"), ("a", "r", "b", "3"), ("b", "r", "c", "4"), ("a", "r", "b", "5")]


def warm_up_temporal() -> None:
    """Learn from five facts and ask one question, which compiles all kernels, or loads them from the cache."""
    dataset = load_temporal_dataset(TINY, split=(0.6, 0.2, 0.2))
    rules = TemporalLearner(dataset, model="logit", threads=1, min_support=1).learn()
    reasoner = TemporalReasoner(rules, dataset, threads_used=1)
    reasoner.evaluate("test")
    reasoner.predict("a", "r", None, "5")
