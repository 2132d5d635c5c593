"""The rules found so far: appended span by span, cut down to the most valuable where there is a cap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ruleset import measures
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.vocabulary import Vocabulary

MOST_IN_MEMORY = 200_000_000  # rules, of 30 bytes each; more of them go to temporary files


class RuleStore:
    """Rules in the order in which they were found.

    `n_dropped` counts the rules dropped by the cap (`max_rules`): those with the least support x confidence.
    """

    def __init__(self, vocabulary: Vocabulary, max_rules: int | None) -> None:
        self.vocabulary, self._max_rules = vocabulary, max_rules
        self._chunks: list[RuleSet] = []
        self._n_in_memory = 0
        self._snapshots: dict[str, int] = {}
        self.n_rules = 0
        self.n_dropped = 0

    def add(self, chunks: list[RuleSet]) -> None:
        """Append rules; past a tenth above the cap, drop the least valuable."""
        self._chunks += chunks
        n_rules = sum(len(chunk) for chunk in chunks)
        self.n_rules += n_rules
        self._n_in_memory += n_rules
        if self._n_in_memory > MOST_IN_MEMORY:
            self._join(on_disk=True)
        if self._max_rules is not None and self.n_rules > 1.1 * self._max_rules:
            self.cut_to_cap()

    def rules(self) -> RuleSet:
        """Return all rules found so far."""
        if len(self._chunks) != 1:
            self._join(on_disk=self.n_rules > MOST_IN_MEMORY)
        return self._chunks[0]

    def _join(self, *, on_disk: bool) -> None:
        whole = concatenate(self._chunks, on_disk=on_disk) if self._chunks else RuleSet.empty(self.vocabulary)
        self._chunks = [whole]
        self._n_in_memory = 0 if on_disk else self.n_rules

    def cut_to_cap(self) -> None:
        """Keep the `max_rules` rules with the most support x confidence, in their order."""
        if self._max_rules is None or self.n_rules <= self._max_rules:
            return
        rules = self.rules()
        kept = most_valuable(rules, self._max_rules)
        self._snapshots = {name: int(np.searchsorted(kept, n)) for name, n in self._snapshots.items()}
        self.n_dropped += self.n_rules - len(kept)
        self._chunks = [rules.take(kept)]
        self.n_rules = self._n_in_memory = len(kept)

    def mark_snapshot(self, name: str) -> None:
        """Remember the current rules under `name`."""
        self._snapshots[name] = self.n_rules

    def snapshots(self) -> dict[str, int]:
        """Return for each snapshot how many of the first rules it holds."""
        return dict(self._snapshots)


def most_valuable(rules: RuleSet, n_rules: int) -> NDArray[np.int64]:
    """Return the rows of the rules with the most support x confidence, in their order; ties are settled."""
    values = measures.value(rules.support, rules.predictions)
    least = np.partition(values, len(values) - n_rules)[len(values) - n_rules]
    above, ties = np.flatnonzero(values > least), np.flatnonzero(values == least)
    order = np.lexsort(canonical_columns(rules.take(ties)))
    return np.sort(np.concatenate([above, ties[order[: n_rules - len(above)]]]))


def canonical_columns(rules: RuleSet) -> tuple[np.ndarray, ...]:
    """Return the columns that tell rules apart, the least important first, as `np.lexsort` takes them.

    Bodies are compared by their relations, not by their row: the table's order depends on what was found first.
    """
    ranks = np.empty(len(rules.bodies), np.int64)
    ranks[np.lexsort(rules.bodies.T[::-1])] = np.arange(len(rules.bodies))
    return (rules.body_constant, rules.head_constant, rules.head, ranks[rules.body], rules.type)


def sort_rules(rules: RuleSet) -> RuleSet:
    """Return the rules in an order that depends on nothing but the rules."""
    return rules.take(np.lexsort(canonical_columns(rules)))
