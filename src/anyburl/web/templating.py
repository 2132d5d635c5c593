"""Pages from templates; labels are always text."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from anyburl import __version__
from anyburl.explanation.words import contribution_text, no_rule_text
from anyburl.rules.types import RuleType
from anyburl.web.explorer import Explorer
from anyburl.web.fragments import Fragments
from anyburl.web.wording import TYPES, entity_name, relation_name

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
        type_of=lambda code: str(list(RuleType)[code]),
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
