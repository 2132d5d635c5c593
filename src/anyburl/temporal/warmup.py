"""Compiles the kernels of temporal rules before a clock starts, by learning from a tiny history."""

from __future__ import annotations

from tempfile import TemporaryDirectory

from anyburl.temporal.facts import load_temporal_dataset
from anyburl.temporal.learner import TemporalLearner
from anyburl.temporal.reasoner import TemporalReasoner

N_ENTITIES, N_STEPS, N_FACTS = 20, 8, 12  # enough for a forest


def warm_up_temporal() -> None:
    """Compile all kernels of learning, answering, evaluating and explaining, or load them."""
    facts = [
        (f"e{(step + i) % N_ENTITIES}", f"r{i % 2}", f"e{(step + 2 * i) % N_ENTITIES}", step)
        for step in range(N_STEPS)
        for i in range(N_FACTS)
    ]
    data = load_temporal_dataset(facts, split=(0.5, 0.25, 0.25))
    for model in ("none", "logit", "forest"):
        rules = TemporalLearner(data, model=model, three_hops=2, threads=1).learn()
        reasoner = TemporalReasoner(rules, data, threads_used=1)
        reasoner.evaluate()
    with TemporaryDirectory() as folder:  # arrays from files are read-only, which is another type for the compiler
        reasoner.save(folder)
        reasoner = TemporalReasoner.open(folder, data, threads_used=1)
    reasoner.evaluate(steps="multi", filter="static")
    reasoner.explain("e0", "r0", "e1", N_STEPS)
    reasoner.complete(N_STEPS)
