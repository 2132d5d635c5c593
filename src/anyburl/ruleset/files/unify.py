"""Brings the parts of a file under one vocabulary."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import join_vocabularies, reencode
from anyburl.triples.vocabulary import Vocabulary


class Parts(NamedTuple):
    """Rules over one vocabulary, and how many others use labels that it does not have."""

    sets: list[RuleColumns]
    n_unknown: int

    @property
    def n_rules(self) -> int:
        return sum(map(len, self.sets))


def unify(sets: Iterable[RuleColumns], vocabulary: Vocabulary | None) -> Parts:
    """Re-encode sets as they come, to `vocabulary` or, when all are there, to that of all their labels."""
    if vocabulary is not None:
        moved = [reencode(rules, vocabulary) for rules in sets]
        return Parts([rules for rules, _ in moved], sum(dropped for _, dropped in moved))
    parts = list(sets)
    joint = join_vocabularies([rules.vocabulary for rules in parts]) if parts else None
    return Parts([reencode(rules, joint)[0] for rules in parts] if joint else [], 0)
