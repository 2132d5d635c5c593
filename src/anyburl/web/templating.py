"""Jinja templates, and the pieces of HTML that pages repeat: links to labels, facts and rules, all escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from anyburl import __version__
from anyburl.data.names import Names, entity_name, relation_name
from anyburl.reasoning.explanation.record import Fact, OpenFact
from anyburl.reasoning.explanation.render import contribution_text, no_rule_text
from anyburl.rules.rule import Atom, Constant, Rule, Term
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS

FOLDER = Path(__file__).parent
TYPES = {str(kind): f"{kind.form.title}: {kind.form.meaning}" for kind in KINDS}
MOST_CACHED = 1 << 14
LONGEST_CACHED = 300
BAR = 72
SOMETHING = Markup("<var>something</var>")


class Fragments:
    """Turns labels, facts and rules into HTML.

    The results are cached, which template macros cannot do: a page of answers has hundreds of these pieces.
    """

    def __init__(self, rules: RuleSet | None, names: Names) -> None:
        self._names = names
        self._cached_link = lru_cache(2 * MOST_CACHED)(self._link)
        self.rule_row = lru_cache(MOST_CACHED)(lambda row: Markup() if rules is None else self.rule(rules.rule(row)))

    def entity(self, label: str) -> Markup:
        """Return an entity as a link to its page."""
        return (self._cached_link if len(label) <= LONGEST_CACHED else self._link)("entity", label)

    def relation(self, label: str) -> Markup:
        """Return a relation as a link to its page."""
        return (self._cached_link if len(label) <= LONGEST_CACHED else self._link)("relation", label)

    def fact(self, fact: OpenFact) -> Markup:
        """Return subject, relation and object; an end that is None reads "something"."""
        subject, relation, object = fact
        ends = [SOMETHING if label is None else self.entity(label) for label in (subject, object)]
        return ends[0] + " " + self.relation(relation) + " " + ends[1]

    def facts(self, facts: Iterable[Fact]) -> Markup:
        """Return facts joined by "and"."""
        wrapped = Markup('<span class="fact">{}</span>')
        return Markup('<span class="glue"> and </span>').join(wrapped.format(self.fact(fact)) for fact in facts)

    def rule(self, rule: Rule) -> Markup:
        """Return a rule as a sentence."""
        glue = Markup(' <span class="glue">{}</span>')
        body = [glue.format("and" if i else "if") + " " + self._atom(atom) for i, atom in enumerate(rule.body)]
        head = Markup('<span class="rule"><span class="head">{}</span>').format(self._atom(rule.head))
        return head + Markup("").join(body or [glue.format("always")]) + Markup("</span>")

    def _atom(self, atom: Atom) -> Markup:
        """Return an atom; `self` is written as the other argument, which it stands for."""
        subject, object = (
            self._term(other if isinstance(term, Constant) and term.is_self else term)
            for term, other in ((atom.subject, atom.object), (atom.object, atom.subject))
        )
        relation = Markup(' <span class="relation" title="{}"><bdi>{}</bdi></span> ')
        shown = relation.format(atom.relation, relation_name(atom.relation, self._names))
        return Markup('<span class="atom">') + subject + shown + object + Markup("</span>")

    def _term(self, term: Term) -> Markup:
        return self.entity(term.label) if isinstance(term, Constant) else Markup("<var>{}</var>").format(str(term))

    def _link(self, kind: str, label: str) -> Markup:
        text = (entity_name if kind == "entity" else relation_name)(label, self._names)
        address = urlencode({"label": label})
        return Markup(
            f'<a class="{kind}" href="/{kind}?{escape(address)}" title="{escape(label)}"><bdi>{escape(text)}</bdi></a>'
        )


PAGES = {"/ask": "Ask", "/rules": "Rules", "/run": "Run", "/review": "Review", "/api": "API"}
"""The pages that every page links to."""


def make_environment(
    rules: RuleSet | None, names: Names, *, title: str, has_run: bool, pages: Mapping[str, str] = PAGES
) -> Environment:
    """Return the templates with the filters and functions that they use; `rules` are those that pages name by row."""
    fragments = Fragments(rules, names)
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=lambda n: f"{n:,}",
        score=lambda value: f"{value:.3f}",
        percent=percent,
        entity=lambda label: entity_name(label, names),
        relation=lambda label: relation_name(label, names),
    )
    environment.globals.update(
        url=url,
        bar_width=lambda value: round(BAR * min(max(value, 0.0), 1.0), 1),
        link_entity=fragments.entity,
        link_relation=fragments.relation,
        link_fact=fragments.fact,
        link_facts=fragments.facts,
        rule_words=fragments.rule,
        rule_row=fragments.rule_row,
        no_rule=no_rule_text(by_embedding=False),  # explorers do not rank by embeddings
        contribution=contribution_text,
        verdict_on=lambda triple: None,
        type_of=lambda code: str(KINDS[code]),
        rule_types=TYPES,
        title_of_run=title,
        has_run=has_run,
        navigation={path: text for path, text in pages.items() if path != "/run" or has_run},
        version=__version__,
    )
    return environment


def url(path: str, **parameters: Any) -> str:
    """Return an address with those parameters that are not None or empty."""
    given = {name: value for name, value in parameters.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def percent(value: float) -> str:
    """Return a probability for people: never 0% or 100% where it is not."""
    if 0 < value < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= value < 1 else f"{value:.0%}"
