"""Labels and rules in words; whatever a label holds, it is shown as text."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.data.names import Names
from anyburl.reasoning.reasoner import Reasoner
from anyburl.rules.rule import SELF, Atom, Constant, Rule, X, Y
from anyburl.web.site import Fragments, relation_name

LABELS = st.text(min_size=1, max_size=400)


class Page(HTMLParser):
    """What a browser makes of HTML: text, and the values of attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags, self.links = "", [], []
        self.feed(html.encode().decode())  # a plain string: parts of Markup would be escaped again
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def fragments(reasoner: Reasoner) -> Fragments:
    return Fragments(reasoner.rules, Names())


@given(LABELS)
def test_a_label_is_text_and_its_link_leads_to_it(fragments: Fragments, label: str) -> None:
    page = Page(fragments.entity(label))
    assert page.tags == ["a", "bdi"]
    assert page.text == label
    assert parse_qs(urlsplit(page.links[0]).query, keep_blank_values=True) == {"label": [label]}


@given(LABELS, LABELS, LABELS)
def test_a_fact_holds_its_three_labels_and_no_other_markup(fragments: Fragments, s: str, r: str, o: str) -> None:
    page = Page(fragments.fact((s, r, o)))
    assert page.tags == ["a", "bdi"] * 3


def test_a_rule_reads_as_a_sentence(fragments: Fragments) -> None:
    rule = Rule(Atom("speaks", X, Constant("Dutch")), (Atom("lives_in", X, Constant("<b>")),))
    assert Page(fragments.rule(rule)).text == "X speaks Dutch if X lives in <b>"


def test_self_is_written_as_what_it_stands_for(fragments: Fragments) -> None:
    rule = Rule(Atom("knows", X, SELF), (Atom("likes", X, SELF),))
    assert Page(fragments.rule(rule)).text == "X knows X if X likes X"


def test_a_rule_without_a_body_holds_always(fragments: Fragments) -> None:
    assert Page(fragments.rule(Rule(Atom("knows", Constant("c"), Y), ()))).text == "c knows Y always"


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("official_language", "official language"),
        ("/location/location/time_zones", "time zones"),
        ("/a/b/award_nominations./c/d/award", "award nominations, award"),
        ("/a/b/country./c/d/country", "country"),
        ("http://example.org/ns#bornIn", "bornIn"),
        ("http://example.org/bornIn", "bornIn"),
        ("/", "/"),
        ("_", "_"),
    ],
)
def test_a_relation_is_called_by_its_last_word(label: str, shown: str) -> None:
    assert relation_name(label, Names()) == shown
    assert relation_name(label, Names({label: "a name"})) == "a name"
