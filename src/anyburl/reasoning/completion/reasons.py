"""The facts behind each fact: those of the first grounding of its best rule."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.reasoning.explanation.kernel import empty_search, find_first_walks
from anyburl.reasoning.explanation.rule_examples import body_ends, find_groundings

Ints = NDArray[np.int32]

TRIPLES = pl.List(pl.List(pl.String))


def reasons_of(ranker: Ranker, facts: FactColumns) -> pl.Series:
    """Return for each fact the triples (subject, relation, object) that make its best rule predict it."""
    rules, n_relations = ranker.rules, ranker.graph.n_relations
    bodies = np.ascontiguousarray(rules.bodies[rules.body[facts.rules]])
    lengths = (bodies >= 0).sum(axis=1).astype(np.int32)
    lengths[conditional := rules.has_condition[facts.rules]] = 0
    walks = _walks(ranker, facts, bodies, lengths)
    steps = np.arange(bodies.shape[1])[None, :] < lengths[:, None]
    rows, positions = np.nonzero(steps)
    here, there, directed = walks[rows, positions], walks[rows, positions + 1], bodies[rows, positions]
    self_id = rules.vocabulary.self_id
    here, there = np.where(here == self_id, there, here), np.where(there == self_id, here, there)
    backward = directed >= n_relations
    subjects, objects = np.where(backward, there, here), np.where(backward, here, there)
    triples = np.column_stack([subjects, directed % n_relations, objects])
    frame = rules.vocabulary.decode_triples(triples).with_columns(fact=pl.Series(rows))
    reasons = frame.group_by("fact", maintain_order=True).agg(facts=pl.concat_list("subject", "relation", "object"))
    every = pl.DataFrame({"fact": np.arange(len(facts))}).join(reasons, on="fact", how="left", maintain_order="left")
    found = every["facts"].fill_null(pl.lit([], dtype=TRIPLES)).cast(TRIPLES)
    if not conditional.any():
        return found
    listed = found.to_list()
    for place in np.flatnonzero(conditional):
        one = find_groundings(ranker, int(facts.rules[place]), tuple(facts.triples[place].tolist()), 1)
        listed[place] = [list(fact) for fact in one[0]] if one else []
    return pl.Series(found.name, listed, dtype=TRIPLES)


def _walks(ranker: Ranker, facts: FactColumns, bodies: Ints, lengths: Ints) -> Ints:
    """Return the entities along each body, from the head's variable on."""
    subjects, _, objects = facts.triples.T
    starts, ends, avoided = body_ends(ranker.rules, facts.rules, subjects, objects)
    walks = np.full((len(facts), bodies.shape[1] + 1), -1, np.int32)
    search = empty_search(bodies.shape[1])
    identity = ranker.options.object_identity
    find_first_walks(ranker.ready.graph, bodies, lengths, starts, ends, avoided, identity, search, walks)
    return walks
