"""The rules found so far, appended span by span, and what a resumed run knows of an earlier one.

The bodies of rules are known from the rules. Those without rules are in files of their keys: one for each part of a run
folder, and `bodies.keys` of a run that has ended. How far lists of bodies had come is in the trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.errors import RunError
from anyburl.base.sealed import is_sealed, seal
from anyburl.base.writing import replacing
from anyburl.bodies.paths import with_keys
from anyburl.bodies.rescore import rule_bodies
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.kernel import GraphArrays
from anyburl.learning.options import LearnOptions
from anyburl.learning.policy import complete_in, listed_in
from anyburl.rules import columns as measures
from anyburl.rules.combine import concatenate, rule_keys
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import KEY_SUFFIX, KEYS, next_part, part_files
from anyburl.rules.types import PathProfile

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
    order = np.argsort(rule_keys(rules.take(ties))[0], kind="stable")
    return np.sort(np.concatenate([above, ties[order[: n_rules - len(above)]]]))


def sort_rules(rules: RuleSet) -> RuleSet:
    """Return the rules in an order that depends on nothing but the rules."""
    return rules.take(np.argsort(rule_keys(rules)[0], kind="stable"))


THRESHOLDS = (
    "min_support",
    "min_confidence",
    "max_grounded",
    "relations",
    "heads",
    "object_identity",
    "budget",
    "precision",
)
"""Options that decide which rules a body gives, and which bodies a profile has."""

Keys = NDArray[np.uint64]
NO_KEYS: Keys = np.empty(0, np.uint64)


def known_keys(graph: GraphArrays, rules: RuleSet, options: LearnOptions) -> Iterator[tuple[Keys, NDArray[np.int64]]]:
    """Yield, length by length, the keys of the bodies behind `rules` and how many rules each gave."""
    if rules.low is not None:
        rules = rules.take(~rules.has_condition)  # which are not found by their bodies
    for length in np.unique(rules.lengths):
        if length == 0:
            continue
        bodies = rule_bodies(graph, rules.take(rules.lengths == length), int(length))
        if options.heads == "all":
            bodies.heads[:] = -1
            bodies.head_constants[:] = -1
        keys, counts = np.unique(with_keys(graph, bodies).keys, return_counts=True)
        yield keys, counts


def is_same_search(before: LearnOptions, options: LearnOptions) -> bool:
    """Whether what a run with options `before` did counts for one with `options`, too."""
    return all(getattr(before, name) == getattr(options, name) for name in (*THRESHOLDS, "reward"))


@dataclass(frozen=True)
class Earlier:
    """Where an earlier run ended: the `keys` of harvested bodies without rules and, at the end of the last `span` that
    is wholly recorded (-1: none), how many bodies of each list were harvested and which profiles had no body left.
    """

    keys: Keys
    span: int = -1
    listed: Mapping[PathProfile, int] = field(default_factory=dict)
    finished: frozenset[PathProfile] = frozenset()


NOTHING = Earlier(NO_KEYS)


@dataclass(frozen=True)
class KeyFiles:
    """The files of keys in a run folder.

    Each begins with what its keys depend on (`search`), the last span whose bodies are in it or in the files before,
    and how many rules the folder held then.
    """

    folder: Path
    search: Mapping[str, Any]
    seed: int

    @classmethod
    def of(cls, folder: Path, fingerprint: str | None, options: LearnOptions) -> KeyFiles:
        """Return the files of a run with `options` on the data with this fingerprint."""
        search = {
            "anyburl": __version__,
            "numpy": version("numpy"),  # lists of bodies are in its random order
            "data": fingerprint,
            **{name: getattr(options, name) for name in (*THRESHOLDS, "max_rules", "keep")},
        }
        return cls(folder, json.loads(json.dumps(search)), options.seed)

    def write_part(self, keys: Keys, *, span: int, n_rules: int) -> None:
        """Add a file beside the parts of the run; the rules of its spans must be there already."""
        self._write(next_part(self.folder, KEY_SUFFIX), keys, span, n_rules)

    def write_all(self, keys: Keys, *, span: int, n_rules: int, gave_rules: bool) -> None:
        """Write the only file of a run that has ended. If some of the bodies `gave_rules`, which a cap has dropped, it
        holds as long as the rules are there that were kept.
        """
        self._write(self.folder / KEYS, np.unique(keys), span, n_rules, gave_rules=gave_rules)

    def read(self, n_rules: int, trace: Iterable[Mapping[str, Any]]) -> Earlier:
        """Return where the run with this trace ended, whose folder holds `n_rules`.

        Rules that were lost or removed must be found again, so with fewer rules than there were, lists of bodies begin
        anew. A damaged file is left out, since it spares nothing but work.
        """
        keys = [NO_KEYS]
        last: dict[str, Any] = {"span": -1}
        for file in (self.folder / KEYS, *part_files(self.folder, KEY_SUFFIX)):
            try:
                head, stored = _read(file)
            except (OSError, ValueError):
                continue
            if head["search"] == self.search and not (head["gave_rules"] and head["rules"] > n_rules):
                keys.append(stored)
                last = max(last, head, key=itemgetter("span"))
        every = np.unique(np.concatenate(keys))
        line = next((line for line in trace if line["number"] == last["span"]), None)
        if line is None or last["rules"] > n_rules:
            return Earlier(every)
        same_order = last["seed"] == self.seed
        listed = {profile: progress.done for profile, progress in listed_in(line).items()} if same_order else {}
        return Earlier(every, int(last["span"]), listed, complete_in(line))

    def _write(self, path: Path, keys: Keys, span: int, n_rules: int, *, gave_rules: bool = False) -> None:
        head = {"search": self.search, "seed": self.seed, "span": span, "rules": n_rules, "gave_rules": gave_rules}
        with replacing(path, RunError) as unfinished, open(unfinished, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            np.save(file, keys)
            file.flush()
            seal(unfinished)


def _read(path: Path) -> tuple[dict[str, Any], Keys]:
    """Return the head and the keys of a file."""
    if not is_sealed(path):
        raise ValueError("it has no checksum")
    with open(path, "rb") as file:
        return json.loads(file.readline()), np.lib.format.read_array(file, allow_pickle=False)
