"""Bringing the parts of a file under one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from anyburl.ruleset.combine import join_vocabularies

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.vocabulary import Vocabulary


class Parts(NamedTuple):
    """Rule sets over one vocabulary, and how many rules had labels that it has not."""

    sets: list[RuleSet]
    n_unknown: int

    @property
    def n_rules(self) -> int:
        return sum(map(len, self.sets))


def unify(sets: Iterable[RuleSet], vocabulary: Vocabulary | None) -> Parts:
    """Re-encode sets as they come, to `vocabulary` or, when all are there, to that of all their labels."""
    if vocabulary is not None:
        moved = [rules.with_vocabulary(vocabulary) for rules in sets]
        return Parts([rules for rules, _ in moved], sum(dropped for _, dropped in moved))
    parts = list(sets)
    joint = join_vocabularies([rules.vocabulary for rules in parts]) if parts else None
    return Parts([rules.with_vocabulary(joint)[0] for rules in parts] if joint else [], 0)
