"""Updates the rules of a run to a changed graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BINARY, CONSTANT, BodyArrays
from anyburl.bodies.generalisation import with_keys
from anyburl.bodies.kernel_changes import LONGEST_COMPARED
from anyburl.bodies.sweep import sequences, sweep
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import with_loops
from anyburl.graph.stored import graph_of
from anyburl.learning.changes import GraphChange, changed_facts
from anyburl.learning.compared import Graphs
from anyburl.learning.engines.search import search_arrays
from anyburl.learning.options import LearnOptions
from anyburl.learning.reharvest import Harvester
from anyburl.learning.update_binary import update_binary
from anyburl.learning.update_unary import UnaryUpdate
from anyburl.paths.profile import PathProfile
from anyburl.ruleset.combine import replace_rows
from anyburl.ruleset.counting import rule_bodies
from anyburl.ruleset.difference import changed_pairs, match_rules
from anyburl.ruleset.ruleset import RuleSet

MOST_MARKS = 1 << 28  # changed facts times directed relations: beyond that, all bodies are harvested again

Replacement = tuple[NDArray[np.int64], list[RuleSet]]
"""Rows of rules, and what takes their place."""


@dataclass(frozen=True)
class Update:
    """What became of the rules of a run. `rose` and `fell` count the rules by what their confidence did."""

    gone: int
    new: int
    changed: int
    unchanged: int
    rose: int
    fell: int
    triples_added: int
    triples_removed: int
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what `learn --json` prints under "update"."""
        return {**vars(self), "seconds": round(self.seconds, 3)}


def update_rules(
    rules: RuleSet, change: GraphChange, options: LearnOptions, exhausted: frozenset[PathProfile]
) -> tuple[RuleSet, Update, frozenset[PathProfile]]:
    """Return `rules` (of the change's vocabulary) as they are on the new graph, with those that are new; what became of
    them; and the profiles of which these are all rules.

    Every rule has the counts that learning anew would give it. Of the profiles that were `exhausted`, all rules are
    found, unless there are now too many bodies to list; of the others, all rules whose bodies had rules before.
    """
    if not len(change.added) and not len(change.removed):
        return rules, Update(0, 0, 0, len(rules), 0, 0, 0, 0), exhausted
    updater = _Updater(rules, change, covering(options, rules), exhausted)
    replaced: list[NDArray[np.int64]] = []
    fresh: list[RuleSet] = []
    for rows, found in updater.parts():
        replaced.append(rows)
        fresh += [part for part in found if len(part)]
    rows = np.concatenate([np.empty(0, np.int64), *replaced])
    added = RuleSet.concat(fresh) if fresh else RuleSet.empty(change.vocabulary)
    update = _described(rules.take(rows), added, len(rules) - len(rows), change)
    return replace_rows(rules, rows, added), update, updater.finished


def covering(options: LearnOptions, rules: RuleSet) -> LearnOptions:
    """Return the options with limits on the length raised to what the rules have."""
    lengths, is_binary = rules.lengths, rules.type == BINARY
    is_grounded = (rules.type == CONSTANT) & (rules.head_constant == rules.body_constant)
    return options.changed(
        max_cyclic=int(lengths[is_binary | is_grounded].max(initial=options.max_cyclic)),
        max_grounded=int(lengths[is_grounded].max(initial=options.max_grounded)),
        max_acyclic=int(lengths[~is_binary & ~is_grounded].max(initial=options.max_acyclic)),
    )


class _Updater:
    """The parts of an update: rules of one kind and length each."""

    def __init__(
        self, rules: RuleSet, change: GraphChange, options: LearnOptions, exhausted: frozenset[PathProfile]
    ) -> None:
        self._rules, self._change, self._options = rules, change, options
        self._search = search_arrays(change.new, options)
        self._harvester = Harvester(self._search, change.vocabulary, options)
        self._lengths = rules.lengths
        n_changed = 2 * (len(change.added) + len(change.removed))
        self.finished = frozenset(
            profile for profile in exhausted if sequences(self._search.graph, profile.rule_length) is not None
        )
        self._compares = options.heads == "all" and n_changed * 2 * change.vocabulary.n_relations <= MOST_MARKS

    def parts(self) -> Iterator[Replacement]:
        """Yield the rows of rules to be replaced, with what replaces them."""
        is_binary = self._rules.type == BINARY
        longest = max(self._options.max_cyclic, self._options.max_acyclic, self._options.max_grounded)
        graphs = self._graphs() if self._compares else None
        for length in range(1, longest + 1):
            binary = np.flatnonzero(is_binary & (self._lengths == length))
            unary = np.flatnonzero(~is_binary & (self._lengths == length))
            if graphs is None or length > LONGEST_COMPARED:
                yield self._again(binary, length, is_binary=True)
            else:
                yield self._compared(binary, length, graphs)
            if graphs is None or length > 1:
                yield self._again(unary, length, is_binary=False)
            elif self._options.max_acyclic or self._options.max_grounded:
                yield self._unary(unary)

    def _graphs(self) -> Graphs:
        old, new, identity = graph_of(self._change.old), self._search.graph, self._options.object_identity
        facts = changed_facts(self._change, new, object_identity=identity)
        return Graphs(old if identity else with_loops(old), new, facts)

    def _compared(self, rows: NDArray[np.int64], length: int, graphs: Graphs) -> Replacement:
        replaced, found = update_binary(
            self._rules.take(rows),
            length,
            graphs,
            self._options,
            self._harvester,
            exhausted=self._was_exhausted(cyclic=True, length=length),
        )
        return rows[replaced], found

    def _unary(self, rows: NDArray[np.int64]) -> Replacement:
        unary = UnaryUpdate(self._change, self._options, self._harvester)
        return unary.run(self._rules, rows, exhausted=self._was_exhausted(cyclic=False, length=1))

    def _again(self, rows: NDArray[np.int64], length: int, *, is_binary: bool) -> Replacement:
        """Harvest all bodies again: those of the rules, and those of exhausted profiles that have none."""
        graph = self._search.graph
        bodies = rule_bodies(graph, self._rules.take(rows), length)
        if self._options.heads == "all":
            bodies.heads[:] = -1
            bodies.head_constants[:] = -1
        bodies = with_keys(graph, bodies)
        bodies = bodies.take(np.unique(bodies.keys, return_index=True)[1])
        rest = self._listed(graph, length, bodies, is_binary=is_binary)
        return rows, self._harvester.harvest([bodies, *rest])

    def _listed(self, graph: GraphArrays, length: int, known: BodyArrays, *, is_binary: bool) -> Iterator[BodyArrays]:
        """Yield the bodies of exhausted profiles that are not among the known ones."""
        for cyclic in (True, False):
            if not self._was_exhausted(cyclic=cyclic, length=length):
                continue
            profile = PathProfile(cyclic, length)
            grounded = cyclic and length <= self._options.max_grounded
            for bodies in sweep(graph, profile, grounded=grounded, seed=self._options.seed) or ():
                wanted = ((bodies.kinds == BINARY) == is_binary) & ~np.isin(bodies.keys, known.keys)
                yield bodies.take(np.flatnonzero(wanted))

    def _was_exhausted(self, *, cyclic: bool, length: int) -> bool:
        return PathProfile(cyclic, length) in self.finished


def _described(before: RuleSet, after: RuleSet, n_kept: int, change: GraphChange) -> Update:
    """Tell what became of the rules that were replaced, and count the rest as unchanged."""
    matched = match_rules(before, after)
    differs = changed_pairs(before, after, matched)
    growth = after.confidence()[matched.second] - before.confidence()[matched.first]
    return Update(
        gone=len(matched.gone),
        new=len(matched.new),
        changed=int(differs.sum()),
        unchanged=n_kept + int((~differs).sum()),
        rose=int((growth > 0).sum()),
        fell=int((growth < 0).sum()),
        triples_added=len(change.added),
        triples_removed=len(change.removed),
    )
