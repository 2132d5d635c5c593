"""The engine protocol: run one time span on some cores; and what every worker reads: the graph, options and heads.

The arrays are flat and frozen, so threads and an object store can share them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.bodies.arrays import HeadArrays, HeadTriples, head_arrays
from anyburl.bodies.paths import Harvested, can_list, followers, heads_of_graph, listed_heads
from anyburl.data.table import TripleTable
from anyburl.graph.build import with_loops
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of, graph_to_walk
from anyburl.learning.options import LearnOptions
from anyburl.learning.policy import ProfileSpan
from anyburl.learning.source import Listed, is_large
from anyburl.learning.store import Earlier, most_valuable
from anyburl.rules.combine import concatenate
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile, RuleType


@dataclass
class CoreSpan:
    """The results of one core for one profile in one time span."""

    profile: PathProfile
    attempts: int = 0
    paths: int = 0
    entered: int = 0  # new bodies found
    new_bodies: int = 0  # new bodies harvested
    known_rules: int = 0
    reward: float = 0.0
    rules: list[RuleSet] = field(default_factory=list)
    cut: Counter[RuleType] = field(default_factory=Counter)  # rules found that a cap has dropped again

    @property
    def n_held(self) -> int:
        """How many rules are in memory."""
        return sum(len(rules) for rules in self.rules)

    @property
    def new_rules(self) -> int:
        """How many rules were found."""
        return self.n_held + self.cut.total()

    def count_type(self, kind: RuleType) -> int:
        """Return how many rules of a type were found."""
        return self.cut[kind] + sum(_count(rules, kind) for rules in self.rules)

    def cut_to(self, n_rules: int) -> None:
        """Keep the most valuable rules, in their order: a long span may find more than fit into memory."""
        rules = concatenate(self.rules)
        kept = rules.take(most_valuable(rules, n_rules))
        self.cut.update({kind: _count(rules, kind) - _count(kept, kind) for kind in RuleType})
        self.rules = [kept]


def _count(rules: RuleSet, kind: RuleType) -> int:
    return int(np.count_nonzero(rules.type == kind.code))


class Engine(Protocol):
    """Runs time spans. `workers` is the number of cores that it can run them on now."""

    floor: float  # support x confidence: rules that are worth less need not be found

    @property
    def workers(self) -> int: ...

    def run_span(self, number: int, allocation: Sequence[PathProfile], deadline: float | None) -> list[CoreSpan]:
        """Run each core on its profile until `deadline` (on time.monotonic), or for its share of paths if None."""
        ...

    def after_span(self, entries: Sequence[ProfileSpan]) -> None:
        """Learn what the span yielded, by profile."""
        ...

    def exhausted(self) -> set[PathProfile]:
        """Return the profiles that have no body left."""
        ...

    def listed(self) -> dict[PathProfile, Listed]:
        """Return how far the profiles have come whose bodies are listed, without those that have no body left."""
        ...

    def take_harvested(self) -> Harvested:
        """Return the bodies harvested since the last call."""
        ...

    def go_on(self, rules: RuleSet, earlier: Earlier) -> None:
        """Go on where an earlier run ended, before the first span; its `rules` are those that may be met again."""
        ...

    def take_notes(self) -> list[str]:
        """Return what happened to the workers since the last call, in words."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether the run should end: because of `stop`, or of Ctrl-C during a span."""
        ...

    def stop(self) -> None:
        """End the current span soon, from another thread or a signal handler."""
        ...

    def close(self) -> None:
        """Release threads and memory."""
        ...


class Stoppable:
    """The part of an engine that ends a run."""

    floor = 0.0

    def __init__(self) -> None:
        self._stop = Event()

    @property
    def stopped(self) -> bool:
        """Whether the run should end."""
        return self._stop.is_set()

    def stop(self) -> None:
        """End the current span soon."""
        self._stop.set()


def by_profile(cores: Sequence[CoreSpan], allocation: Sequence[PathProfile]) -> list[ProfileSpan]:
    """Add up the results of the cores by profile; cores are counted as the policy allocated them."""
    profiles = dict.fromkeys([*allocation, *(core.profile for core in cores)])
    return [_add_up(profile, [core for core in cores if core.profile == profile], allocation) for profile in profiles]


def _add_up(profile: PathProfile, cores: list[CoreSpan], allocation: Sequence[PathProfile]) -> ProfileSpan:
    return ProfileSpan(
        profile,
        cores=sum(given == profile for given in allocation),
        attempts=sum(core.attempts for core in cores),
        paths=sum(core.paths for core in cores),
        new_bodies=sum(core.new_bodies for core in cores),
        entered=sum(core.entered for core in cores),
        new_rules=sum(core.new_rules for core in cores),
        known_rules=sum(core.known_rules for core in cores),
        reward=sum(core.reward for core in cores),
        new_by_type=tuple(sum(core.count_type(kind) for core in cores) for kind in RuleType),
    )


def target_relations(table: TripleTable, options: LearnOptions) -> NDArray[np.int64] | None:
    """Return the ids of `options.relations`, or None for all; a relation without triples cannot be learned."""
    if options.relations is None:
        if len(table) == 0:
            raise DataError("no triples to learn from")
        return None
    ids = np.array([table.vocabulary.relation_id(label) for label in options.relations], np.int64)
    for label, relation in zip(options.relations, ids, strict=True):
        if not (table.triples[:, 1] == relation).any():
            raise DataError(f"relation {label!r} has no triples to learn from")
    return ids


class LearningArrays(NamedTuple):
    """The graph, the heads to learn rules for and the triples that paths start from.

    On a large graph these are drawn from the graph itself: a list of them would take a third as much memory again.

    On a large graph, finding out which relations can follow each other takes a second or more: that is done here, not
    in the time span that asks for it.
    """

    graph: GraphArrays
    heads: HeadArrays
    triples: HeadTriples
    follows: NDArray[np.bool_] | None


def search_arrays(table: TripleTable, options: LearnOptions) -> LearningArrays:
    """Index `table` for a run with `options`."""
    graph = graph_to_walk(table) if is_large(2 * len(table), options) else graph_of(table)
    if not options.object_identity:
        graph = with_loops(graph)
    relations = target_relations(table, options)
    heads = head_arrays(graph, relations)
    lists_more = any(profile.rule_length > 1 for profile in options.profiles)
    is_listed = lists_more and is_large(len(graph.targets), options) and can_list(graph)
    return LearningArrays(
        graph, heads, _head_triples(table, graph, heads, options), followers(graph) if is_listed else None
    )


def _head_triples(table: TripleTable, graph: GraphArrays, heads: HeadArrays, options: LearnOptions) -> HeadTriples:
    if heads.selected.all():
        return heads_of_graph(graph) if is_large(2 * len(table), options) else listed_heads(table.triples)
    return listed_heads(table.triples[heads.selected[table.triples[:, 1]]])
