"""Turns labels into ids, batch by batch: besides the distinct labels, only one batch is in memory."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.triples.frames import COLUMNS
from anyburl.triples.vocabulary import Vocabulary, check_labels

Codes = NDArray[np.uint32]


class LabelCoder:
    """Gives every label a code, in the order of their coming, and in the end the ids that belong to the codes.

    Polars' categories collect the labels and encode them in one pass; only the distinct ones are then sorted.
    """

    def __init__(self) -> None:
        entities, relations = (pl.Categorical(pl.Categories.random()) for _ in range(2))
        self._types = {"subject": entities, "relation": relations, "object": entities}
        # Polars forgets categories that no Series has any more.
        self._kept = [pl.Series([], dtype=kind) for kind in (entities, relations)]

    def encode(self, labels: pl.DataFrame) -> list[Codes]:
        """Return the codes of the columns subject, relation and object."""
        coded = labels.select(pl.col(name).cast(kind) for name, kind in self._types.items())
        return [coded[name].to_physical().to_numpy() for name in COLUMNS]

    def finish(self) -> tuple[Vocabulary, list[NDArray[np.int32]]]:
        """Return all labels and, for each of the three columns, the array that turns a code into an id.

        The coder is empty then: what it holds besides the labels is no longer needed.
        """
        found = [self._types[name].categories.to_series() for name in ("subject", "relation")]
        self._kept.clear()
        entities, entity_ids = _sorted_labels(found[0], "entity")
        relations, relation_ids = _sorted_labels(found[1], "relation")
        return Vocabulary(entities, relations), [entity_ids, relation_ids, entity_ids]


def _sorted_labels(labels: pl.Series, kind: str) -> tuple[pl.Series, NDArray[np.int32]]:
    """Return labels in order, and the place of each among them."""
    order = labels.arg_sort()
    ids = np.empty(len(labels), np.int32)
    ids[order.to_numpy()] = np.arange(len(labels), dtype=np.int32)
    return check_labels(labels.gather(order).rename(""), kind), ids
