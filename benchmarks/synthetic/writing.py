"""Writing a graph, relation by relation.

All lines of a relation are equally long, so that they are a matrix of bytes, filled by columns.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from anyburl.base.writing import replacing
from synthetic.background import Relation
from synthetic.draws import Pairs
from synthetic.entities import EntityType

ROWS_AT_A_TIME = 1 << 18


class GraphWriter:
    """Writes train.tsv, holds a few triples of every relation out, and writes these to valid.tsv and test.tsv.

    A folder with train.tsv is a graph, so that file takes its place last.
    """

    def __init__(
        self,
        folder: Path,
        n_triples: int,
        n_held_out: int,
        rng: np.random.Generator,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._folder, self._rng, self._progress = folder, rng, progress
        self._share = 2 * n_held_out / n_triples
        self._held_out: list[bytes] = []
        self._seen: dict[EntityType, NDArray[np.bool_]] = {}
        self._stack = ExitStack()
        unfinished = self._stack.enter_context(replacing(folder / "train.tsv"))
        self._file = self._stack.enter_context(unfinished.open("wb"))
        self.n_triples = 0
        self.relations: list[str] = []
        self.counts = {"train": 0, "valid": 0, "test": 0}

    def __enter__(self) -> GraphWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def n_entities(self) -> int:
        """How many entities occur so far."""
        return sum(int(seen.sum()) for seen in self._seen.values())

    def add(self, relation: Relation, pairs: Pairs) -> Pairs:
        """Write distinct pairs of a relation in random order; return those in train."""
        shuffled = pairs.copy()
        self._rng.shuffle(shuffled)
        self.n_triples += len(pairs)
        self.relations.append(relation.name)
        n_held_out = max(0, int(self._share * self.n_triples) - len(self._held_out))
        held_out, train = shuffled[:n_held_out], shuffled[n_held_out:]
        for first in range(0, len(train), ROWS_AT_A_TIME):
            rows = train[first : first + ROWS_AT_A_TIME]
            self._file.write(self._lines(relation, rows).tobytes())
            if self._progress:
                self._progress(len(rows))
        self._held_out += self._lines(relation, held_out).tobytes().splitlines(keepends=True)
        self.counts["train"] += len(train)
        return train

    def write_held_out(self) -> None:
        """Divide what was held out: every other triple is for valid."""
        for split, lines in (("valid", self._held_out[::2]), ("test", self._held_out[1::2])):
            with replacing(self._folder / f"{split}.tsv") as unfinished:
                unfinished.write_bytes(b"".join(lines))
            self.counts[split] = len(lines)

    def _lines(self, relation: Relation, pairs: Pairs) -> NDArray[np.uint8]:
        """Return the lines of some triples as the rows of a matrix."""
        entities = np.divmod(pairs, relation.object.size)
        parts = [(f"{relation.subject.name}", entities[0]), (f"\t{relation.name}\t{relation.object.name}", entities[1])]
        n_digits = [relation.subject.n_digits, relation.object.n_digits]
        width = sum(len(text) for text, _ in parts) + sum(n_digits) + 1
        lines = np.full((len(pairs), width), ord("\n"), np.uint8)
        start = 0
        for (text, numbers), digits, kind in zip(parts, n_digits, (relation.subject, relation.object), strict=True):
            lines[:, start : start + len(text)] = np.frombuffer(text.encode(), np.uint8)
            start += len(text) + digits
            _write_digits(lines[:, start - digits : start], numbers)
            self._mark(kind, numbers)
        return lines

    def _mark(self, kind: EntityType, entities: NDArray[np.int64]) -> None:
        if kind not in self._seen:
            self._seen[kind] = np.zeros(kind.size, np.bool_)
        self._seen[kind][entities] = True


def _write_digits(columns: NDArray[np.uint8], numbers: NDArray[np.int64]) -> None:
    """Write numbers as decimal digits, the last one into the last column."""
    rest = numbers.astype(np.uint32)
    for place in range(columns.shape[1] - 1, -1, -1):
        quotient = rest // np.uint32(10)
        columns[:, place] = rest - quotient * np.uint32(10) + np.uint32(ord("0"))
        rest = quotient
