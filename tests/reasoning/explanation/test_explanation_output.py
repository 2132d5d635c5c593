"""Explanations for the eye: the tree and the page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from anyburl import explain
from anyburl.base.errors import DataError
from anyburl.data import Dataset
from anyburl.data.names import Names
from anyburl.reasoning.drawing import shorten
from anyburl.reasoning.explanation.explain import Explanation
from anyburl.reasoning.explanation.render import to_html, to_tree, write_html
from anyburl.rules.rule import Atom, Constant, Rule, Variable
from kernels import examples
from rules.samples import make_rules

EVIL = "<script>alert('x')</script>"
TEXT_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "div",
    "h1",
    "h2",
    "i",
    "b",
    "p",
    "code",
    "ol",
    "ul",
    "li",
}
TAGS = TEXT_TAGS | {"section", "figure", "svg", "g", "path", "polygon", "rect", "text"}


class Reader(HTMLParser):
    """Collects what a browser would show, and what it would do."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.items: list[str] = []
        self.in_item = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "li":
            self.items.append("")
            self.in_item = True

    def handle_endtag(self, tag: str) -> None:
        self.in_item = self.in_item and tag != "li"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.in_item:
            self.items[-1] += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def explained(a: str, b: str, c: str, r: str) -> Explanation:
    """a r b, b r c: so a r c."""
    x, y, z = Variable("X"), Variable("Y"), Variable("A")
    rule = Rule(Atom(r, x, y), (Atom(r, x, z), Atom(r, z, y)))
    unary = Rule(Atom(r, x, Constant(c)), (Atom(r, x, Constant(b)),))
    dataset = Dataset.from_triples([(a, r, b), (b, r, c)])
    return explain(make_rules([(rule, (9, 8)), (unary, (9, 5))]), dataset, (a, r, c))


def shown(explanation: Explanation, names: Names | None = None, width: int = 200) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(to_tree(explanation, names))
    return capture.get()


def test_the_tree_names_triple_rules_and_facts() -> None:
    text = shown(explained("a", "b", "c", "r"))
    assert text.splitlines() == [
        "a ─r→ c",
        "new: in none of train, valid and test",
        "score 0.571 by max of 2 rules; rank 1 of (a, r, ?); rank 1 of (?, r, c)",
        "├── 0.571  r(X,Y) <= r(X,A), r(A,Y)",
        "│          B, right 8 of 9 times, decides the score",
        "│   └── a ─r→ b, b ─r→ c",
        "└── 0.357  r(X,c) <= r(X,b)",
        "           Uc, right 5 of 9 times, breaks ties",
        "    └── a ─r→ b",
    ]


def test_the_tree_uses_names_and_takes_labels_as_they_are() -> None:
    text = shown(explained("a", "[bold]b[/bold]", "c", "r"), Names({"a": "Anna", "r": "is [red]"}))
    assert "Anna ─is [red]→ [bold]b[/bold]" in text
    assert "is [red](X,c) <= is [red](X,[bold]b[/bold])" in text


def test_the_tree_shows_a_near_miss() -> None:
    dataset = Dataset.from_triples([("a", "r", "b"), ("c", "r", "d")])
    rules = make_rules([("r(X,Y) <= r(X,A), r(A,Y)", (9, 8))])
    text = shown(explain(rules, dataset, ("a", "r", "d")))
    assert "no rule predicts it" in text
    assert "holds    a ─r→ b" in text
    assert "missing  b ─r→ d" in text


labels = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40).filter(
    lambda t: t == t.strip()
)


@settings(max_examples=examples(50))
@given(st.lists(st.one_of(labels, st.just(EVIL), st.just("&amp;\"'>")), min_size=4, max_size=4, unique=True))
def test_the_page_holds_every_fact_and_no_label_as_markup(drawn: list[str]) -> None:
    found = explained(*drawn)
    page = read(to_html(found))
    assert page.tags <= TAGS
    assert not any(name.startswith("on") or name in ("href", "src", "style") for name in page.attributes)
    listed = [", ".join(f"{s} {r} {o}" for s, r, o in facts) for reason in found for facts in reason.groundings]
    assert page.items == listed


def test_a_script_in_a_label_stays_text(tmp_path: Path) -> None:
    file = tmp_path / "why.html"
    write_html(explained(EVIL, "b", "c", "r"), file, Names({"b": "<img src=x onerror=alert(1)>"}))
    text = file.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_the_page_draws_one_graph_for_each_reason_with_the_prediction_dashed() -> None:
    page = to_html(explained("a", "b", "c", "r"))
    assert page.count("<svg") == 2
    assert page.count('<g class="edge prediction"><title>predicted: ') == 2
    assert page.count('<g class="edge fact"><title>\u2068') == 3
    assert "prefers-color-scheme: dark" in page


def test_the_page_draws_what_is_missing() -> None:
    dataset = Dataset.from_triples([("a", "r", "b"), ("c", "r", "d"), ("a", "s", "a")])
    rules = make_rules([("r(X,d) <= s(X,A)", (9, 8)), ("s(X,me_myself_i) <= r(X,A)", (9, 8))])
    page = to_html(explain(rules, dataset, ("a", "r", "d")))
    assert page.count('<g class="edge missing"><title>missing: ') == 1
    assert "missing: a <i>s</i> ?" in page
    loop = to_html(explain(rules, dataset, ("c", "s", "c")))
    assert loop.count('<g class="edge prediction"><title>predicted: ') == 1


def test_notebooks_and_consoles_show_it() -> None:
    found = explained("a", "b", "c", "r")
    assert found._repr_html_().startswith('<div class="anyburl">')
    assert "a" in str(found.__rich__().label)


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        write_html(explained("a", "b", "c", "r"), tmp_path / "no" / "folder.html")


@pytest.mark.parametrize(
    ("text", "short"),
    [("short", "short"), ("a" * 40, "a" * 19 + "…"), ("/film/film/release/film_region", "…/film_region")],
)
def test_long_labels_are_shortened_from_the_end_that_says_less(text: str, short: str) -> None:
    assert shorten(text, 20) == short
