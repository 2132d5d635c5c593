"""Pages from templates; labels are always text.

Frequent pieces of pages, such as links to labels, facts and rules, rendered once and cached.

Template macros could do the same, but a page of answers has hundreds of these pieces.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from anyburl import __version__
from anyburl.data.names import Names
from anyburl.reasoning.explanation.record import Fact, OpenFact
from anyburl.reasoning.explanation.render import contribution_text, no_rule_text
from anyburl.rules.rule import Rule
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS
from anyburl.web.explorer import Explorer
from anyburl.web.wording import TYPES, AtomTerm, AtomWords, entity_name, relation_name, rule_words

MOST_KEPT = 1 << 14
LONGEST_KEPT = 300
SOMETHING = Markup("<var>something</var>")


class Fragments:
    """Turns labels, facts and rules into HTML; what they hold is escaped."""

    def __init__(self, rules: RuleSet, names: Names) -> None:
        self._rules, self._names = rules, names
        self._kept_entity = lru_cache(MOST_KEPT)(self._entity)
        self._kept_relation = lru_cache(MOST_KEPT)(self._relation)
        self.rule_row = lru_cache(MOST_KEPT)(self._rule_row)

    def entity(self, label: str) -> Markup:
        """Return an entity as a link to its page."""
        return (self._kept_entity if len(label) <= LONGEST_KEPT else self._entity)(label)

    def relation(self, label: str) -> Markup:
        """Return a relation as a link to its page."""
        return (self._kept_relation if len(label) <= LONGEST_KEPT else self._relation)(label)

    def fact(self, fact: Fact) -> Markup:
        """Return a fact: subject, relation, object."""
        return self.open_fact(fact)

    def open_fact(self, fact: OpenFact) -> Markup:
        """Return a fact that may lack an end."""
        subject, relation, object = fact
        ends = [SOMETHING if label is None else self.entity(label) for label in (subject, object)]
        return ends[0] + " " + self.relation(relation) + " " + ends[1]

    def facts(self, facts: Iterable[Fact]) -> Markup:
        """Return facts that hold together."""
        return Markup('<span class="glue"> and </span>').join(
            Markup('<span class="fact">') + self.fact(fact) + Markup("</span>") for fact in facts
        )

    def rule(self, rule: Rule) -> Markup:
        """Return a rule in words."""
        words = rule_words(rule, self._names)
        body = [
            Markup(' <span class="glue">{}</span> ').format("and" if place else "if") + self._atom(atom)
            for place, atom in enumerate(words.body)
        ]
        head = Markup('<span class="rule"><span class="head">') + self._atom(words.head) + Markup("</span>")
        return head + Markup("").join(body or [Markup(' <span class="glue">always</span>')]) + Markup("</span>")

    def _rule_row(self, row: int) -> Markup:
        """Return the rule at a row."""
        return self.rule(self._rules.rule(row))

    def _atom(self, atom: AtomWords) -> Markup:
        relation = Markup(' <span class="relation" title="{}"><bdi>{}</bdi></span> ')
        shown = relation.format(atom.relation_label, atom.relation)
        return Markup('<span class="atom">') + self._term(atom.subject) + shown + self._term(atom.object) + END

    def _term(self, part: AtomTerm) -> Markup:
        return Markup(f"<var>{escape(part.text)}</var>") if part.label is None else self.entity(part.label)

    def _entity(self, label: str) -> Markup:
        return _link("entity", label, entity_name(label, self._names))

    def _relation(self, label: str) -> Markup:
        return _link("relation", label, relation_name(label, self._names))


END = Markup("</span>")


def _link(kind: str, label: str, text: str) -> Markup:
    address = urlencode({"label": label})
    return Markup(
        f'<a class="{kind}" href="/{kind}?{escape(address)}" title="{escape(label)}"><bdi>{escape(text)}</bdi></a>'
    )


FOLDER = Path(__file__).parent
BAR = 72


def make_environment(explorer: Explorer) -> Environment:
    """Return the templates with what all of them use."""
    names, fragments = explorer.names, Fragments(explorer.reasoner.rules, explorer.names)
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
        link_open_fact=fragments.open_fact,
        link_facts=fragments.facts,
        rule_words=fragments.rule,
        rule_row=fragments.rule_row,
        no_rule=no_rule_text(by_embedding=False),  # explorers do not rank by embeddings
        contribution=contribution_text,
        type_of=lambda code: str(KINDS[code]),
        rule_types=TYPES,
        title_of_run=explorer.title,
        has_run=explorer.run is not None,
        version=__version__,
    )
    return environment


def url(path: str, **parameters: Any) -> str:
    """Return an address; what is None is left out."""
    given = {name: value for name, value in parameters.items() if value is not None and value != ""}
    return f"{path}?{urlencode(given)}" if given else path


def percent(value: float) -> str:
    """Return a probability for people: never 0% or 100% where it is not."""
    if 0 < value < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= value < 1 else f"{value:.0%}"
