"""Metrics as a line and as a table."""

from __future__ import annotations

from anyburl import Dataset, evaluate
from rules.samples import make_rules

TRAIN = [("ed", "lives", "holland"), ("lisa", "lives", "holland"), ("holland", "<lang>", "dutch")]
TEST = [("lisa", "<lang>", "dutch")]


def test_metrics_are_one_line_with_their_protocol() -> None:
    metrics = evaluate(make_rules([("<lang>(X,dutch) <= lives(X,A)", (2, 2))]), Dataset.from_triples(TRAIN, test=TEST))
    assert repr(metrics) == f"Metrics({metrics})"
    assert "hits@1 0.5000" in repr(metrics)  # ed and lisa tie for (?, <lang>, dutch)
    assert "\n" not in repr(metrics)


def test_notebooks_show_metrics_as_a_table() -> None:
    metrics = evaluate(make_rules([("<lang>(X,dutch) <= lives(X,A)", (2, 2))]), Dataset.from_triples(TRAIN, test=TEST))
    shown = metrics._repr_html_()
    assert shown.count("<tr>") == 9
    assert "(subject, &lt;lang&gt;, ?)" in shown
    assert "&lt;lang&gt;" in shown
    assert "<lang>" not in shown
    assert "realistic ties, max" in shown
