"""A span that someone holds while learning goes on keeps telling its own rules."""

from __future__ import annotations

import pytest
from learned import make_learner

from anyburl.base.errors import RunError
from kernels import random_graph

GRAPH = random_graph(5, 300, 6, 1500)
OPTIONS = {"paths": 100_000, "min_support": 3, "max_cyclic": 3, "max_acyclic": 1}


def test_an_old_span_gives_its_own_rules() -> None:
    learner = make_learner(GRAPH, **OPTIONS)
    spans, then = [], []
    for span in learner.spans():
        spans.append(span)
        then.append(list(span.rules))
    assert len({span.n_rules for span in spans}) > 2
    assert [len(rules) for rules in then] == [span.n_rules for span in spans]
    assert [list(span.rules) for span in spans] == then


def test_rules_known_before_are_among_those_of_every_span() -> None:
    known = next(iter(make_learner(GRAPH, **OPTIONS).spans())).rules
    spans = list(make_learner(GRAPH, known=known, **OPTIONS).spans())
    assert all(list(span.rules)[: len(known)] == list(known) for span in spans)


def test_an_old_span_whose_rules_were_dropped_refuses() -> None:
    learner = make_learner(GRAPH, **OPTIONS, max_rules=150)
    spans = list(learner.spans())
    assert spans[0].n_dropped < learner.store.n_dropped
    with pytest.raises(RunError, match=r"the rules of span 1 are gone, because max_rules has dropped some since"):
        spans[0].rules  # noqa: B018
    assert len(learner.rules()) == 150


def test_a_capped_run_tells_the_rules_of_the_span_under_way() -> None:
    for span in make_learner(GRAPH, **OPTIONS, max_rules=150).spans():
        assert len(span.rules) == span.n_rules
