"""Tables of rules."""

from __future__ import annotations

import io

from rich.console import Console

from rules.samples import make_rules


def test_the_console_shows_the_first_rules_and_how_many_more() -> None:
    rules = make_rules([(f"h(X,[b]c{n}[/b]) <= b(X,A)", (4, 3)) for n in range(12)])
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(rules)
    shown = console.export_text()
    assert "12 rules (12 Ud)" in shown
    assert shown.count("<= b(X,A)") == 10
    assert "c9[" not in shown  # of equals, the first by label
    assert "0.7500" in shown
    assert "3/4" in shown
    assert "and 2 more" in shown


def test_sampled_scores_are_marked() -> None:
    rules = make_rules([("h(X,c) <= ", (4, 3))], exact=False)
    assert "3/~4" in rules._repr_html_()


def test_notebooks_show_labels_as_text() -> None:
    rules = make_rules([("h(X,<b>) <= b(X,A)", (4, 3))])
    assert "h(X,&lt;b&gt;) &lt;= b(X,A)" in rules._repr_html_()
    assert "<b>" not in rules._repr_html_()


def test_repr_is_one_line() -> None:
    rules = make_rules([("h(X,c) <= ", (4, 3)), ("h(X,Y) <= b(X,Y)", (4, 3))])
    assert repr(rules) == "RuleSet(2 rules: 1 B, 1 Z)"
