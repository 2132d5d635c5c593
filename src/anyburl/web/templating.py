"""Jinja templates, and the pieces of HTML that pages repeat: links to labels, facts and rules, all escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from anyburl import __version__
from anyburl.data.names import Names, entity_name, relation_name
from anyburl.reasoning.drawing import shorten
from anyburl.reasoning.explanation.record import Fact, OpenFact
from anyburl.reasoning.explanation.render import contribution_text, no_rule_text
from anyburl.rules.rule import SELF, Constant, Part, Rule, Term
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS

FOLDER = Path(__file__).parent
TYPES = {str(kind): f"{kind.form.title}: {kind.form.meaning}" for kind in KINDS}
MOST_CACHED = 1 << 14
LONGEST_CACHED = 300
LONGEST_SHOWN = 80  # characters of a label in a sentence; its title has all of it
BAR = 72
SOMETHING = Markup("<var>something</var>")


class Fragments:
    """Turns labels, facts and rules into HTML.

    The results are cached, which template macros cannot do: a page of answers has hundreds of these pieces.
    """

    def __init__(self, rules: RuleSet | None, names: Names) -> None:
        self._names = names
        self._cached_link = lru_cache(2 * MOST_CACHED)(self._link)
        self._name = lru_cache(MOST_CACHED)(self._relation_name)
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
        return Markup(f"{ends[0]} {self.relation(relation)} {ends[1]}")

    def facts(self, facts: Iterable[Fact]) -> Markup:
        """Return facts joined by "and"."""
        return Markup(
            '<span class="glue"> and </span>'.join(f'<span class="fact">{self.fact(fact)}</span>' for fact in facts)
        )

    def rule(self, rule: Rule) -> Markup:
        """Return a rule as a sentence."""
        said = [self._part(part) for part in rule.parts]
        body = "".join(f' <span class="glue">{"and" if i else "if"}</span> {part}' for i, part in enumerate(said))
        always = "" if said else ' <span class="glue">always</span>'
        return Markup(f'<span class="rule"><span class="head">{self._part(rule.head)}</span>{body}{always}</span>')

    def _part(self, part: Part) -> Markup:
        """Return an atom, "X section games", or a condition, "installed_size of X is at least 102400"."""
        subject, *rest = (self._piece(piece, part) for piece in (part.subject, *part.object_words))
        name, object = self._name(part.relation), "".join(rest)
        said = f"{name}of {subject} is {object}" if part.is_value else f"{subject}{name}{object}"
        return Markup(f'<span class="atom">{said}</span>')

    def _piece(self, piece: str | Term, part: Part) -> Markup:
        """Return words, or a term; `self` is written as the other argument, which it stands for."""
        if isinstance(piece, str):
            return escape(piece)
        term = next(other for other in part.terms if other != SELF) if piece == SELF else piece
        return self.entity(term.label) if isinstance(term, Constant) else Markup(f"<var>{escape(str(term))}</var>")

    def _relation_name(self, label: str) -> Markup:
        name = escape(shorten(relation_name(label, self._names), LONGEST_SHOWN))
        return Markup(f' <span class="relation" title="{escape(label)}"><bdi>{name}</bdi></span> ')

    def _link(self, kind: str, label: str) -> Markup:
        text = shorten((entity_name if kind == "entity" else relation_name)(label, self._names), LONGEST_SHOWN)
        address = escape(url(f"/{kind}", label=label))
        return Markup(f'<a class="{kind}" href="{address}" title="{escape(label)}"><bdi>{escape(text)}</bdi></a>')


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
        bar=bar,
        known_in=known_in,
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
    given = [
        f"{name}={_quoted(value if isinstance(value, str) else str(value))}"
        for name, value in parameters.items()
        if value is not None and value != ""
    ]
    return f"{path}?{'&'.join(given)}" if given else path


_cached_quoted = lru_cache(MOST_CACHED)(quote_plus)


def _quoted(text: str) -> str:
    """Return text as a value in an address; a page of answers has the same few labels in hundreds of addresses."""
    return (_cached_quoted if len(text) <= LONGEST_CACHED else quote_plus)(text)


@lru_cache(MOST_CACHED)
def bar(value: float) -> Markup:
    """Return a bar that is as full as the value, from 0 to 1."""
    width = round(BAR * min(max(value, 0.0), 1.0), 1)
    return Markup(
        f'<svg class="bar" width="{BAR}" height="6" viewBox="0 0 {BAR} 6" aria-hidden="true"><rect class="track" '
        f'width="{BAR}" height="6" rx="3"/><rect class="fill" width="{width}" height="6" rx="3"/></svg>'
    )


@lru_cache
def known_in(splits: tuple[str, ...]) -> Markup:
    """Return the badge of a fact: the splits that state it, or that it is new."""
    if not splits:
        return Markup('<span class="badge new">new</span>')
    return Markup('<span class="badge">known: {}</span>').format(", ".join(splits))


def percent(value: float) -> str:
    """Return a probability for people: never 0% or 100% where it is not."""
    if 0 < value < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= value < 1 else f"{value:.0%}"
