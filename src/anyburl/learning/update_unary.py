"""Updates unary rules with bodies of length 1.

A changed fact r(a, c) changes the members of three bodies at most: r(X, c), r(a, Y) and r(X, A), which are harvested
again. Of all other bodies, only the heads that are changed facts themselves are counted again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.bodies.arrays import CONSTANT, DANGLING, GROUNDED, BodyArrays, Limits, empty_harvest
from anyburl.bodies.generalisation import make_bodies
from anyburl.bodies.kernel_short import count_short
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.learning.changes import GraphChange
from anyburl.learning.options import LearnOptions
from anyburl.learning.reharvest import Harvester
from anyburl.ruleset.bodytable import joint_keys
from anyburl.ruleset.ruleset import RuleSet

Ints = NDArray[np.int32]
Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Edges:
    """Directed edges, with the token `self` as the target of reflexive triples."""

    sources: Ints
    relations: Ints
    targets: Ints

    def take(self, rows: NDArray[np.bool_]) -> Edges:
        return Edges(self.sources[rows], self.relations[rows], self.targets[rows])


def changed_edges(change: GraphChange, *, object_identity: bool) -> Edges:
    """Return the changed triples, each read in both directions; r(c, c) is c's edge to `self` along r and, without
    object identity, c's edges to itself.
    """
    subjects, relations, objects = np.concatenate([change.added, change.removed]).T
    is_own = subjects == objects
    backward, loops = ~is_own, is_own & (not object_identity)
    n_relations, ends = change.vocabulary.n_relations, np.where(is_own, change.vocabulary.self_id, objects)
    back = np.concatenate([relations[backward], relations[loops]]) + n_relations
    return Edges(
        np.concatenate([subjects, objects[backward], subjects[loops], subjects[loops]]),
        np.concatenate([relations, back, relations[loops]]).astype(np.int32),
        np.concatenate([ends, subjects[backward], subjects[loops], subjects[loops]]).astype(np.int32),
    )


class UnaryUpdate:
    """What a change does to the unary rules with bodies of length 1."""

    def __init__(self, change: GraphChange, options: LearnOptions, harvester: Harvester) -> None:
        self._graph = harvester.search.graph
        self._edges = changed_edges(change, object_identity=options.object_identity)
        self._options, self._harvester, self._vocabulary = options, harvester, change.vocabulary

    def run(
        self, rules: RuleSet, rows: NDArray[np.int64], *, exhausted: bool
    ) -> tuple[NDArray[np.int64], list[RuleSet]]:
        """Return which of the `rows` of `rules` are to be replaced, and by what.

        If the run was `exhausted`, it had harvested every such body: those without rules are looked at, too.
        """
        touched = self._touched_bodies()
        keys = self._keys_of(rules, rows)
        touched_keys = self._keys(touched.kinds, touched.relations[:, 0], touched.constants)
        heads = self._head_keys(rules.head[rows], rules.head_constant[rows])
        is_touched = _is_in(keys, touched_keys)
        concerned = np.flatnonzero(_is_in(heads, self._head_keys(self._edges.relations, self._edges.targets)))
        concerned = concerned[~is_touched[concerned]]
        pairs = self._affected_pairs(touched_keys, None if exhausted else keys)
        again = _matching(keys[concerned], heads[concerned], *self._pair_keys(pairs))
        is_touched[concerned[again]] = True
        fresh = self._harvester.harvest([touched.take(np.flatnonzero(touched.kinds == kind)) for kind in KINDS])
        return rows[is_touched], [*fresh, *self._counted(pairs)]

    def _touched_bodies(self) -> BodyArrays:
        """Return the bodies whose members changed, and every body with the constant of a changed fact whose heads have
        the same constant: few, and quickly harvested.
        """
        edges, graph, options = self._edges, self._graph, self._options
        parts = []
        if options.max_acyclic:
            forward = (edges.targets < graph.n_entities) | (edges.relations < graph.n_relations)
            ends = _distinct(edges.relations[forward], edges.targets[forward])
            parts.append(make_bodies(graph, CONSTANT, ends[:, :1], ends[:, 1]))
            parts.append(make_bodies(graph, DANGLING, np.unique(edges.relations)[:, None]))
        if options.max_cyclic and options.max_grounded:
            ends = np.concatenate([_distinct(edges.relations, edges.targets), _ways_into(graph, edges.targets)])
            ends = np.unique(ends[(ends[:, 1] < graph.n_entities) | (ends[:, 0] < graph.n_relations)], axis=0)
            parts.append(make_bodies(graph, GROUNDED, ends[:, :1], ends[:, 1]))
        return BodyArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _affected_pairs(self, left_out: Keys, only: Keys | None) -> BodyArrays:
        """Return the bodies that the sources of changed facts satisfy, each with the fact as its one head."""
        graph, edges = self._graph, self._edges
        firsts = graph.segment_starts[graph.segment_offsets[edges.sources]].astype(np.int64)
        lasts = graph.segment_starts[graph.segment_offsets[edges.sources + 1]].astype(np.int64)
        fact, place = _spread(firsts, lasts)
        relations = graph.neighbour_relations[place].astype(np.int32)
        constants = graph.neighbours[place]
        valid = (constants != edges.targets[fact]) & ((constants < graph.n_entities) | (relations < graph.n_relations))
        segment_of, segment = _spread(
            graph.segment_offsets[edges.sources].astype(np.int64),
            graph.segment_offsets[edges.sources + 1].astype(np.int64),
        )
        dangling = graph.segment_relations[segment].astype(np.int32)
        facts = np.concatenate([fact[valid], segment_of])
        bodies = BodyArrays(
            np.repeat(np.array([CONSTANT, DANGLING], np.uint8), [int(valid.sum()), len(segment_of)]),
            np.concatenate([relations[valid], dangling])[:, None],
            np.concatenate([constants[valid], np.full(len(segment_of), -1, np.int32)]),
            edges.relations[facts],
            edges.targets[facts],
            np.zeros(len(facts), np.uint64),
        )
        return self._worth_counting(bodies, left_out, only)

    def _worth_counting(self, bodies: BodyArrays, left_out: Keys, only: Keys | None) -> BodyArrays:
        if not self._options.max_acyclic:
            return bodies.take(np.empty(0, np.int64))
        keys = self._keys(bodies.kinds, bodies.relations[:, 0], bodies.constants)
        kept = self._harvester.search.heads.wanted[bodies.heads] & ~_is_in(keys, left_out)
        if only is not None:
            kept &= _is_in(keys, only)
        numbered = np.unique(keys, return_inverse=True)[1].astype(np.int32)
        numbers = joint_keys([numbered, bodies.heads, bodies.head_constants])
        first = pl.Series(numbers).is_first_distinct().to_numpy()
        return bodies.take(np.flatnonzero(kept & first))

    def _counted(self, pairs: BodyArrays) -> list[RuleSet]:
        options, n = self._options, len(pairs.kinds)
        limits = Limits(options.min_support, options.min_confidence, options.object_identity, 0, 0, 0)
        out = empty_harvest(n)
        n_rows = count_short(self._graph, pairs, limits, out) if n else 0
        chosen = out.bodies[:n_rows]
        return [
            RuleSet(
                vocabulary=self._vocabulary,
                bodies=np.arange(2 * self._graph.n_relations, dtype=np.int32)[:, None],
                type=pairs.kinds[chosen],
                head=out.heads[:n_rows],
                body=pairs.relations[chosen, 0],
                head_constant=out.head_constants[:n_rows],
                body_constant=pairs.constants[chosen],
                predictions=out.predictions[:n_rows],
                support=out.supports[:n_rows],
                exact=out.exact[:n_rows],
            )
        ]

    def _keys_of(self, rules: RuleSet, rows: NDArray[np.int64]) -> Keys:
        kinds = rules.type[rows].copy()
        constants = rules.body_constant[rows]
        kinds[(kinds == CONSTANT) & (constants == rules.head_constant[rows])] = GROUNDED
        return self._keys(kinds, rules.bodies[rules.body[rows], 0], constants)

    def _keys(self, kinds: NDArray[np.uint8], relations: Ints, constants: Ints) -> Keys:
        """Return a number for each body of length 1."""
        keys = kinds.astype(np.int64) * (2 * self._graph.n_relations) + relations
        return keys * (self._graph.n_entities + 2) + constants + 1

    def _head_keys(self, heads: Ints, constants: Ints) -> Keys:
        return heads.astype(np.int64) * (self._graph.n_entities + 2) + constants + 1

    def _pair_keys(self, pairs: BodyArrays) -> tuple[Keys, Keys]:
        keys = self._keys(pairs.kinds, pairs.relations[:, 0], pairs.constants)
        return keys, self._head_keys(pairs.heads, pairs.head_constants)


KINDS = (CONSTANT, DANGLING, GROUNDED)


def _ways_into(graph: GraphArrays, entities: Ints) -> Ints:
    """Return (relation, entity) for every directed relation that leads into one of the entities."""
    distinct = np.unique(entities)
    owner, segment = _spread(
        graph.segment_offsets[distinct].astype(np.int64), graph.segment_offsets[distinct + 1].astype(np.int64)
    )
    relations = inverses(graph.segment_relations[segment].astype(np.int32), graph.n_relations)
    return np.stack([relations, distinct[owner]], axis=1).astype(np.int32)


def _distinct(relations: Ints, entities: Ints) -> Ints:
    return np.unique(np.stack([relations, entities], axis=1), axis=0).astype(np.int32)


def _spread(firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every place of some ranges, and which range it belongs to."""
    lengths = lasts - firsts
    owners = np.repeat(np.arange(len(firsts)), lengths)
    return owners, np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths - firsts, lengths)


def _is_in(keys: Keys, wanted: Keys) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pl.Series(keys).is_in(pl.Series(wanted).unique().implode()).to_numpy()
    return found


def _matching(keys: Keys, heads: Keys, other_keys: Keys, other_heads: Keys) -> NDArray[np.bool_]:
    """Mark the pairs of a key and a head that are among the others."""
    wanted = pl.DataFrame({"key": other_keys, "head": other_heads}).unique()
    mine = pl.DataFrame({"key": keys, "head": heads}).with_row_index()
    found = np.zeros(len(keys), np.bool_)
    found[mine.join(wanted, on=["key", "head"], how="semi")["index"].to_numpy()] = True
    return found
