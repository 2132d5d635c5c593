"""Updates B rules: compares their bodies in the old and the new graph, and harvests few again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BINARY, BodyArrays, HarvestArrays, SupportChanges
from anyburl.bodies.generalisation import canonical, make_bodies, with_keys
from anyburl.bodies.sweep import sequences
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.learning.compared import Compared, Graphs, compare, supports_of
from anyburl.learning.harvested import to_rules
from anyburl.learning.options import LearnOptions
from anyburl.learning.reharvest import Harvester
from anyburl.ruleset.counting import rule_bodies
from anyburl.ruleset.ruleset import RuleSet

MOST_COMPARED = 1_000_000  # edges visited to compare a body; one that takes more is harvested again
CAUTION = 10  # divides that where learning anew must give the same: it might have to estimate such a body


def update_binary(
    rules: RuleSet, length: int, graphs: Graphs, options: LearnOptions, harvester: Harvester, *, exhausted: bool
) -> tuple[NDArray[np.bool_], list[RuleSet]]:
    """Return which of `rules` (all B rules of one length) are to be replaced, and by what.

    If the run was `exhausted`, it had harvested every body of that length: those without rules are looked at, too.
    """
    wanted = rule_bodies(graphs.new, rules, length)
    plain = with_keys(graphs.new, _for_all_heads(wanted))
    keys, firsts, places = np.unique(plain.keys, return_index=True, return_inverse=True)
    bodies = plain.take(firsts)
    if exhausted:
        unknown = _unknown_bodies(graphs.new, length, keys)
        bodies = _joined(bodies, unknown) if len(rules) else unknown
    if not len(bodies.kinds):
        return np.zeros(len(rules), np.bool_), []
    budget = min(options.budget, MOST_COMPARED) // (CAUTION if exhausted else 1)
    compared = compare(bodies, graphs, options, budget, harvester.threads)
    known = _Known(rules, places.reshape(-1), wanted.heads, firsts, compared)
    update = _BinaryUpdate(known, compared, graphs.new, options, harvester)
    again = update.to_harvest(exhausted=exhausted)
    replaced, changed = update.changed(again)
    fresh = harvester.harvest([bodies.take(np.flatnonzero(again))]) if again.any() else []
    return replaced, [*changed, *update.lifted(again), *fresh]


class _Known:
    """The rules of a run, by body and by head as the body runs; `firsts` is one row of each body."""

    def __init__(
        self,
        rules: RuleSet,
        places: NDArray[np.int64],
        heads: NDArray[np.int32],
        firsts: NDArray[np.int64],
        compared: Compared,
    ) -> None:
        self.rules, self.places, self.firsts = rules, places, firsts
        self._n_directed = 2 * rules.vocabulary.n_relations
        keys = places * self._n_directed + heads
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self.rows = self._rows(compared.supports)  # of the rule that each change of a support belongs to, or -1

    def _rows(self, supports: SupportChanges) -> NDArray[np.int64]:
        wanted = supports.bodies.astype(np.int64) * self._n_directed + supports.heads
        found = np.searchsorted(self._keys, wanted)
        is_there = np.append(self._keys, -1)[found] == wanted
        return np.where(is_there, np.append(self._order, -1)[found], -1)


class _BinaryUpdate:
    """What is to be done about bodies that have changed."""

    def __init__(
        self, known: _Known, compared: Compared, graph: GraphArrays, options: LearnOptions, harvester: Harvester
    ) -> None:
        self._known, self._compared, self._graph = known, compared, graph
        self._options, self._harvester = options, harvester
        self._growth = compared.pairs.gained - compared.pairs.lost
        self._estimated = np.zeros(len(self._growth), np.bool_)
        self._estimated[known.places[~known.rules.exact]] = True
        rising = (known.rows < 0) & (compared.supports.supports > 0)
        self._rising = np.flatnonzero(rising & self._may_be_heads())  # supports of rules that were none before

    def to_harvest(self, *, exhausted: bool) -> NDArray[np.bool_]:
        """Mark the bodies that have to be harvested again.

        Those are bodies without rules before, or with estimated counts, where a head has more support now; bodies where
        fewer predictions may lift a head's confidence above the threshold; and, if the profile was exhausted, all whose
        counts were estimated.
        """
        pairs, options = self._compared.pairs, self._options
        again = pairs.unfinished.copy()
        again[self._compared.supports.bodies[self._rising]] = True
        again[: len(self._known.firsts)] &= (self._estimated | pairs.unfinished)[: len(self._known.firsts)]
        if options.min_confidence > 0:
            again |= (pairs.lost > 0) & (self._most_predictions() >= options.min_support / options.min_confidence)
        return again | (self._estimated & self._compared.touched) if exhausted else again

    def changed(self, again: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], list[RuleSet]]:
        """Return which rules are to be replaced, and those that remain of them, with their new counts."""
        known, rules, options = self._known, self._known.rules, self._options
        replaced = again[known.places]
        support = rules.support.astype(np.int64)
        is_known = known.rows >= 0
        np.add.at(support, known.rows[is_known], self._compared.supports.supports[is_known])
        predictions = rules.predictions + self._growth[known.places]
        differs = ~replaced & ((support != rules.support) | (predictions != rules.predictions))
        counts = rules.replace(
            predictions=np.maximum(predictions, 0), support=np.maximum(support, 0).astype(np.int32)
        ).take(differs)
        passes = (counts.support >= options.min_support) & (counts.confidence() > options.min_confidence)
        return replaced | differs, [counts.take(passes)]

    def lifted(self, again: NDArray[np.bool_]) -> list[RuleSet]:
        """Return the new rules of bodies that are not harvested again: heads with more support than before."""
        supports, bodies = self._compared.supports, self._compared.bodies
        rows = self._rising[~again[supports.bodies[self._rising]]]
        numbers, heads = supports.bodies[rows], supports.heads[rows]
        counts = supports_of(self._graph, bodies.relations[numbers], heads, self._options, self._harvester.threads)
        before = self._known.rules.predictions[self._known.firsts[numbers]]
        predictions = before + self._growth[numbers]
        passes = np.flatnonzero(
            (counts >= self._options.min_support) & (counts / predictions > self._options.min_confidence)
        )
        chosen = bodies.take(numbers[passes].astype(np.int64))
        backward = heads[passes] >= self._graph.n_relations
        harvest = HarvestArrays(
            (np.arange(len(passes)) + np.where(backward, len(passes), 0)).astype(np.int32),
            np.where(backward, heads[passes] - self._graph.n_relations, heads[passes]).astype(np.int32),
            np.full(len(passes), -1, np.int32),
            predictions[passes],
            counts[passes].astype(np.int32),
            np.ones(len(passes), np.bool_),
            np.zeros(len(passes), np.float32),
            np.empty(0, np.int64),
        )
        return [to_rules(self._known.rules.vocabulary, chosen, harvest, len(passes))] if len(passes) else []

    def _may_be_heads(self) -> NDArray[np.bool_]:
        """Mark the changes of supports that belong to rules: a wanted head, not the body itself, and not the same rule
        read backward.
        """
        supports = self._compared.supports
        relations = self._compared.bodies.relations[supports.bodies]
        mirrored = (relations == inverses(relations[:, ::-1], self._graph.n_relations)).all(axis=1)
        itself = (relations.shape[1] == 1) & (relations[:, 0] == supports.heads)
        backward = supports.heads >= self._graph.n_relations
        wanted: NDArray[np.bool_] = self._harvester.search.heads.wanted[supports.heads]
        wanted &= ~itself & ~(mirrored & backward)
        return wanted

    def _most_predictions(self) -> NDArray[np.int64]:
        """Return the predictions of each body before; of one without rules, as many as it can have."""
        relations = self._compared.bodies.relations
        sizes = np.diff(self._graph.domain_offsets)
        ends = inverses(relations[:, -1], self._graph.n_relations)
        lost = self._compared.pairs.lost
        most = sizes[relations[:, 0]] * sizes[ends] + lost
        most[: len(self._known.firsts)] = self._known.rules.predictions[self._known.firsts]
        return most


def _for_all_heads(bodies: BodyArrays) -> BodyArrays:
    return bodies._replace(heads=np.full_like(bodies.heads, -1), head_constants=np.full_like(bodies.heads, -1))


def _unknown_bodies(graph: GraphArrays, length: int, known: NDArray[np.uint64]) -> BodyArrays:
    """Return all B bodies of this length (few enough to list), except those whose keys are known."""
    listed = sequences(graph, length)
    if listed is None:
        listed = np.empty((0, length), np.int32)
    bodies = make_bodies(graph, BINARY, np.unique(canonical(graph, listed)[0], axis=0))
    return bodies.take(np.flatnonzero(~np.isin(bodies.keys, known)))


def _joined(*parts: BodyArrays) -> BodyArrays:
    return BodyArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
