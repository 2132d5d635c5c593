"""Turns a kernel's harvest into rules."""

from __future__ import annotations

import numpy as np

from anyburl.bodies.arrays import BodyArrays, HarvestArrays, types_of
from anyburl.graph.arrays import inverses
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.vocabulary import Vocabulary


def to_rules(vocabulary: Vocabulary, bodies: BodyArrays, harvest: HarvestArrays, n_rows: int) -> RuleSet:
    """Copy the first `n_rows` of `harvest` (a buffer to be used again) into a rule set."""
    reversals = inverses(bodies.relations[:, ::-1], vocabulary.n_relations)
    table, places = np.unique(np.vstack([bodies.relations, reversals]), axis=0, return_inverse=True)
    rows = harvest.bodies[:n_rows]
    numbers = rows % len(bodies.kinds)
    exact = harvest.exact[:n_rows].copy()
    return RuleSet(
        vocabulary=vocabulary,
        bodies=table.astype(np.int32),
        type=types_of(bodies.kinds)[numbers],
        head=harvest.heads[:n_rows].copy(),
        body=places.ravel().astype(np.int32)[rows],
        head_constant=harvest.head_constants[:n_rows].copy(),
        body_constant=bodies.constants[numbers],
        predictions=harvest.predictions[:n_rows].copy(),
        support=harvest.supports[:n_rows].copy(),
        exact=exact,
        margin=None if exact.all() else harvest.margins[:n_rows].copy(),
    )
