"""The relations to learn rules for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.learning.options import LearnOptions
from anyburl.triples.table import TripleTable


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
