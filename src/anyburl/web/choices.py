"""The rule filters of an address, shared by pages and the API."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Annotated

from fastapi import Depends

from anyburl.errors import UnknownLabelError
from anyburl.web.explorer import Explorer
from anyburl.web.parameters import Length, MinConfidence, MinSupport, OptionalLabel, Order, RuleType
from anyburl.web.rule_list import Chosen, RuleChoice


async def _choice(
    relation: OptionalLabel = None,
    type: RuleType = None,
    length: Length = None,
    min_confidence: MinConfidence = None,
    min_support: MinSupport = None,
    contains: OptionalLabel = None,
    sort: Order = "confidence",
) -> RuleChoice:
    return RuleChoice(
        relation=relation,
        type=type,
        length=length,
        min_confidence=min_confidence,
        min_support=min_support,
        contains=contains,
        sort=sort,
    )


AskedRules = Annotated[RuleChoice, Depends(_choice)]
"""What was asked for; labels may be names."""


def choose_rules(explorer: Explorer, asked: RuleChoice) -> tuple[RuleChoice, Chosen]:
    """Return the choice with labels, and the rules that it means."""
    choice = replace(
        asked,
        relation=asked.relation and explorer.relation(asked.relation),
        contains=asked.contains and _term(explorer, asked.contains),
    )
    return choice, explorer.rule_list.choose(choice)


def _term(explorer: Explorer, text: str) -> str:
    """Return the label of a relation or, if there is none of that name, of an entity."""
    with suppress(UnknownLabelError):
        return explorer.relation(text)
    return explorer.entity(text)
