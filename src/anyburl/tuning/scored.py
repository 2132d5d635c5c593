"""`ScoredAnswers`: another model's scores, from a table of questions, candidates and scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.polars_unstable import UNREADABLE
from anyburl.sealed import scan_parquet
from anyburl.triples.dataset import Dataset

COLUMNS = ("entity", "relation", "asked", "candidate", "score")
ASKED = ("object", "subject")
UNSCORED = np.float32(10.0)  # how far a candidate without a score is below the lowest of its question

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ScoredAnswers:
    """The scores of some candidates of some questions, question by question."""

    n_entities: int
    n_directed: int
    keys: NDArray[np.int64]  # of the questions, sorted
    offsets: NDArray[np.int64]
    candidates: Ints
    values: Floats

    @classmethod
    def read(cls, path: str | Path, dataset: Dataset) -> ScoredAnswers:
        """Read a Parquet file with the columns entity, relation, asked ("object" or "subject"), candidate and score.

        A row of (France, capital, object, Paris) scores Paris as the answer to (France, capital, ?), one of (Paris,
        capital, subject, France) scores France as that to (?, capital, Paris).
        """
        try:
            table = scan_parquet(path).select(COLUMNS).collect()
        except UNREADABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"{path}: expected a Parquet file with the columns {', '.join(COLUMNS)} ({reason})"
            ) from error
        return cls.of(table, dataset, str(path))

    @classmethod
    def of(cls, table: pl.DataFrame, dataset: Dataset, source: str = "the table") -> ScoredAnswers:
        """Take a table with these columns."""
        words = dataset.vocabulary
        values = _numbers(table, source)
        entities, candidates = (_ids(words.encode_entities, table, name, source) for name in ("entity", "candidate"))
        relations = _ids(words.encode_relations, table, "relation", source).astype(np.int64)
        asked = _texts(table, "asked", source).to_list()
        if not set(asked) <= set(ASKED):
            row = next(row for row, text in enumerate(asked) if text not in ASKED)
            raise DataError(f"{source}, row {row + 1}: expected {' or '.join(ASKED)} as asked, got {asked[row]!r}")
        relations += np.fromiter((text == ASKED[1] for text in asked), np.int64, len(asked)) * words.n_relations
        keys = entities.astype(np.int64) * (2 * words.n_relations) + relations
        order = np.argsort(keys, kind="stable")
        questions, firsts = np.unique(keys[order], return_index=True)
        offsets = np.append(firsts, len(order)).astype(np.int64)
        return cls(words.n_entities, 2 * words.n_relations, questions, offsets, candidates[order], values[order])

    @cached_property
    def digest(self) -> str:
        """What tells one table from another."""
        told = hashlib.blake2b(digest_size=16)
        for array in (self.keys, self.offsets, self.candidates, self.values):
            told.update(array.tobytes())
        return told.hexdigest()

    def scores(self, entities: Ints, relations: Ints) -> Floats:
        """Return a score for each question and entity; without a score, a low one; a question without any, zeros."""
        found = np.zeros((len(entities), self.n_entities), np.float32)
        wanted = entities.astype(np.int64) * self.n_directed + relations
        places = np.minimum(np.searchsorted(self.keys, wanted), max(0, len(self.keys) - 1))
        for row, place in enumerate(places.tolist()):
            if len(self.keys) and self.keys[place] == wanted[row]:
                own = slice(self.offsets[place], self.offsets[place + 1])
                found[row] = self.values[own].min() - UNSCORED
                found[row, self.candidates[own]] = self.values[own]
        return found


def _numbers(table: pl.DataFrame, source: str) -> Floats:
    column = table["score"]
    numbers = column.cast(pl.Float32) if column.dtype.is_numeric() else None
    if numbers is None or numbers.null_count() or not numbers.is_finite().all():
        raise DataError(f"{source}: expected finite numbers in the column 'score', got {column.dtype}")
    return numbers.to_numpy().copy()


def _ids(encode: Callable[[pl.Series], Ints], table: pl.DataFrame, name: str, source: str) -> Ints:
    labels = _texts(table, name, source)
    ids = encode(labels)
    if (ids < 0).any():
        row = int((ids < 0).argmax())
        raise DataError(f"{source}, row {row + 1}: the data has no {name} {labels[row]!r}")
    return ids


def _texts(table: pl.DataFrame, name: str, source: str) -> pl.Series:
    column = table[name]
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Duration):
        raise DataError(f"{source}: expected labels in the column {name!r}, got {column.dtype}")
    return column.cast(pl.String)
