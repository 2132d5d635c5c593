"""The rules found so far: appended span by span, and reduced to the most valuable if there is a cap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.data.vocabulary import Vocabulary
from anyburl.rules import columns as measures
from anyburl.rules.bodytable import joint_keys
from anyburl.rules.columns import IDENTITY_COLUMNS
from anyburl.rules.combine import concatenate, identity_columns
from anyburl.rules.ruleset import RuleSet

MOST_IN_MEMORY = 200_000_000  # rules, of 30 bytes each; more of them go to temporary files
ABOVE_CAP = 1.1  # times the cap are kept, so that rules are not dropped all the time,
FAR_ABOVE_CAP = 1.5  # but not more than that
TRIMMED_AT_A_TIME = 3_000_000  # rules: some tenths of a second


class RuleStore:
    """Rules in the order in which they were found.

    With a cap (`max_rules`), those with the least support x confidence are dropped, `n_dropped` of them so far. `floor`
    is what a rule must be worth at least to be kept. It rises, and rules below it are dropped little by little.
    """

    def __init__(self, vocabulary: Vocabulary, max_rules: int | None) -> None:
        self.vocabulary, self._max_rules = vocabulary, max_rules
        self._chunks: list[RuleSet] = []
        self._floors: list[float] = []  # of each chunk: what its rules are worth at least
        self._values = ValueCounts()
        self._n_in_memory = 0
        self._snapshots: dict[str, int] = {}
        self.floor = 0.0
        self.n_rules = 0
        self.n_dropped = 0

    def add(self, chunks: list[RuleSet]) -> None:
        """Append rules; where there are too many, raise the floor and drop some of those below."""
        self._chunks += chunks
        self._floors += [0.0] * len(chunks)
        n_rules = sum(len(chunk) for chunk in chunks)
        self.n_rules += n_rules
        self._n_in_memory += n_rules
        if self._n_in_memory > MOST_IN_MEMORY:
            self._join(on_disk=True)
        if self._max_rules is not None:
            for chunk in chunks:
                self._values.add(chunk)
            self._keep_to_cap(self._max_rules)

    def _keep_to_cap(self, max_rules: int) -> None:
        if self._values.n_rules > ABOVE_CAP * max_rules:
            self.floor = self._values.raise_floor(max_rules)
        self._trim(TRIMMED_AT_A_TIME)
        if self.n_rules > FAR_ABOVE_CAP * max_rules:
            self._trim(self.n_rules)
        if self.n_rules > FAR_ABOVE_CAP * max_rules:  # many rules are worth as much as the floor
            self.cut_to_cap()

    def _trim(self, n_rules: int) -> None:
        """Drop rules below the floor, from chunks of about `n_rules` together."""
        start = 0
        for number, chunk in enumerate(self._chunks):
            if n_rules <= 0:
                break
            if self._floors[number] < self.floor:
                kept = measures.value(chunk.support, chunk.predictions) >= self.floor
                self._chunks[number], self._floors[number] = chunk.take(kept), self.floor
                self._note_dropped(kept, start)
                n_rules -= len(chunk)
            start += len(self._chunks[number])

    def _note_dropped(self, kept: NDArray[np.bool_], start: int) -> None:
        """Count the rules dropped from a chunk, whose first one was rule `start`."""
        for name, n_taken in self._snapshots.items():
            self._snapshots[name] -= int(np.count_nonzero(~kept[: max(n_taken - start, 0)]))
        n_dropped = int(np.count_nonzero(~kept))
        self.n_dropped += n_dropped
        self.n_rules -= n_dropped
        self._n_in_memory -= n_dropped

    def rules(self) -> RuleSet:
        """Return all rules found so far."""
        if len(self._chunks) != 1:
            self._join(on_disk=self.n_rules > MOST_IN_MEMORY)
        return self._chunks[0]

    def _join(self, *, on_disk: bool) -> None:
        whole = concatenate(self._chunks, on_disk=on_disk) if self._chunks else RuleSet.empty(self.vocabulary)
        self._chunks, self._floors = [whole], [min(self._floors, default=0.0)]
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
        self._values = ValueCounts()
        self._values.add(self._chunks[0])
        self.floor = float(measures.value(self._chunks[0].support, self._chunks[0].predictions).min())
        self._floors = [self.floor]

    def mark_snapshot(self, name: str) -> None:
        """Remember the current rules under `name`."""
        self._snapshots[name] = self.n_rules

    def snapshots(self) -> dict[str, int]:
        """Return for each snapshot how many of the first rules it holds."""
        return dict(self._snapshots)


class ValueCounts:
    """How many rules are worth how much: counts by the leading bits of support x confidence, a positive number."""

    BITS = 44  # that are left out of the 64 of a number: values in one bin differ by less than 1/256

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros(1 << (63 - self.BITS), np.int64)
        self.n_rules = 0

    def add(self, rules: RuleSet) -> None:
        """Count rules."""
        values = measures.value(rules.support, rules.predictions)
        self._counts += np.bincount(values.view(np.int64) >> self.BITS, minlength=len(self._counts))
        self.n_rules += len(rules)

    def raise_floor(self, n_rules: int) -> float:
        """Return the highest floor that leaves at least `n_rules`, and forget what is below."""
        from_above = np.cumsum(self._counts[::-1])[::-1]
        least = int(np.flatnonzero(from_above >= n_rules)[-1])
        self._counts[:least] = 0
        self.n_rules = int(from_above[least])
        return float(np.int64(least << self.BITS).view(np.float64))


def most_valuable(rules: RuleSet, n_rules: int) -> NDArray[np.int64]:
    """Return the rows of the rules with the most support x confidence, in their order; ties are settled."""
    values = measures.value(rules.support, rules.predictions)
    least = np.partition(values, len(values) - n_rules)[len(values) - n_rules]
    above, ties = np.flatnonzero(values > least), np.flatnonzero(values == least)
    order = np.argsort(canonical_keys(rules.take(ties)), kind="stable")
    return np.sort(np.concatenate([above, ties[order[: n_rules - len(above)]]]))


def canonical_keys(rules: RuleSet) -> NDArray[np.int64]:
    """Return a number for each rule, no two the same, whose order depends on nothing but the rules.

    Bodies are compared by their relations, not by their row: the table's order depends on what was found first.
    """
    ranks = np.empty(len(rules.bodies), np.int32)
    ranks[np.lexsort(rules.bodies.T[::-1])] = np.arange(len(rules.bodies), dtype=np.int32)
    columns = dict(zip(IDENTITY_COLUMNS, identity_columns(rules, ranks), strict=True))
    first = [columns.pop(name) for name in ("type", "body")]
    return joint_keys([*first, *columns.values()])


def sort_rules(rules: RuleSet) -> RuleSet:
    """Return the rules in an order that depends on nothing but the rules."""
    return rules.take(np.argsort(canonical_keys(rules), kind="stable"))
