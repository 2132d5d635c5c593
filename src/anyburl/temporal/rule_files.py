"""Read the Parquet files of temporal rules back into the tables that answer questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import RuleError
from anyburl.base.sealed import scan_parquet
from anyburl.data.vocabulary import Vocabulary
from anyburl.temporal.arrays import N_CELLS, N_FADES, N_RECENCY, ConstantArrays, HopArrays
from anyburl.temporal.clock import Clock
from anyburl.temporal.options import FORMS, TemporalOptions
from anyburl.temporal.rules import SCHEMA, PairRules, TemporalRules

Ints = NDArray[np.int64]


def read_temporal_rules(path: Path, vocabulary: Vocabulary, clock: Clock, options: TemporalOptions) -> TemporalRules:
    """Read what `TemporalRules.save` wrote, with the ids of a vocabulary that has all its labels.

    How forms are mixed, vectors and the model are not in the file: a run folder has them.
    """
    frame = scan_parquet(path).collect()
    if missing := [name for name in SCHEMA if name not in frame.columns]:
        raise RuleError(f"{path} holds no temporal rules: it has no column {missing[0]}")
    read = _Rows(frame, vocabulary)
    constants, constant_counts = read.constants()
    hops, hop_counts = read.hops()
    nothing = np.zeros((vocabulary.n_entities, 0), np.float32)
    return TemporalRules(
        vocabulary,
        clock,
        options,
        read.pairs(),
        read.favour(),
        constants,
        constant_counts,
        hops,
        hop_counts,
        np.zeros(0),
        nothing,
    )


class _Rows:
    """The rows of a file, with ids."""

    def __init__(self, frame: pl.DataFrame, vocabulary: Vocabulary) -> None:
        self.frame, self.vocabulary = frame, vocabulary
        self.n = n = vocabulary.n_relations
        self.heads = vocabulary.encode_relations(frame["head"]) + n * (frame["asks"] == "subject").to_numpy()
        self.bodies = [self._directed(place) for place in (0, 1)]
        forms = frame["form"].to_numpy()
        self.at = {form: np.flatnonzero(forms == form) for form in FORMS}
        self.counts = np.stack([frame["right"].to_numpy(), frame["cases"].to_numpy()]).astype(np.int64)
        self.confidences = frame["confidence"].to_numpy().astype(np.float32)

    def _directed(self, place: int) -> Ints:
        """Return the directed relations at a place of bodies, -1 where there is none."""
        labels, forward = (self.frame[name].list.get(place, null_on_oob=True) for name in ("body", "forward"))
        ids = self.vocabulary.encode_relations(labels.fill_null("")).astype(np.int64)
        backward = ~forward.fill_null(True).to_numpy()
        return np.where(labels.is_null().to_numpy(), -1, ids + self.n * backward)

    def _table(self, name: str, rows: Ints, width: int, kind: Any) -> NDArray[Any]:
        """Return a column of lists, all of the same length, as a table."""
        values = self.frame[name].gather(rows).explode().to_numpy() if len(rows) else np.empty(0)
        return np.array(values.reshape(len(rows), width), kind)  # writable: kernels are compiled again for read-only

    def pairs(self) -> PairRules:
        """Return the rules about what two entities did before."""
        rows = self.at["pair"]
        return PairRules(
            self.heads[rows].astype(np.int32),
            self.bodies[0][rows].astype(np.int32),
            self._table("right_cells", rows, N_CELLS, np.int64),
            self._table("case_cells", rows, N_CELLS, np.int64),
            self._table("cells", rows, N_CELLS, np.float32),
            self._table("alone", rows, N_CELLS, np.float32),
            self._table("curve", rows, N_RECENCY, np.float32),
        )

    def constants(self) -> tuple[ConstantArrays, Ints]:
        """Return the rules with constants, and their counts."""
        rows, words = self.at["constant"], self.vocabulary
        labels, answers = self.frame["constant"].gather(rows), self.frame["answer"].gather(rows)
        width = words.n_entities + 1
        ids = words.encode_entities(labels.fill_null(""))
        keys = (self.bodies[0][rows] + 1) * width + np.where(labels.is_null().to_numpy(), width - 1, ids)
        given = words.encode_entities(answers)
        order = np.lexsort((given, keys, self.heads[rows]))
        rows, keys, given = rows[order], keys[order], given[order]
        heads = self.heads[rows]
        changed = np.ones(len(rows), np.bool_)
        changed[1:] = (np.diff(heads) != 0) | (np.diff(keys) != 0)
        firsts = np.flatnonzero(changed)
        made = ConstantArrays(
            np.searchsorted(heads[firsts], np.arange(2 * self.n + 1)).astype(np.int64),
            keys[firsts].astype(np.int64),
            np.append(firsts, len(rows)).astype(np.int64),
            given.astype(np.int32),
            self.confidences[rows],
        )
        return made, self.counts[:, rows]

    def hops(self) -> tuple[HopArrays, Ints]:
        """Return the rules of two hops, and their counts."""
        rows = self.at["hops"]
        bodies = self.bodies[0][rows] * 2 * self.n + self.bodies[1][rows]
        order = np.lexsort((bodies, self.heads[rows]))
        rows, bodies = rows[order], bodies[order]
        offsets = np.searchsorted(self.heads[rows], np.arange(2 * self.n + 1)).astype(np.int64)
        return HopArrays(offsets, bodies.astype(np.int32), self.confidences[rows]), self.counts[:, rows]

    def favour(self) -> NDArray[np.float64]:
        """Return the intensity of popularity of every relation."""
        rows = self.at["popular"]
        favour = np.zeros((2 * self.n, N_FADES))
        favour[self.heads[rows]] = self._table("cells", rows, N_FADES, np.float64)
        return favour
