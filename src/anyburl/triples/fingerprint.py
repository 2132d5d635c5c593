"""The fingerprint that identifies a data set."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl

from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary

PIECE = 1 << 18  # labels or triples at a time


def fingerprint(vocabulary: Vocabulary, tables: Sequence[TripleTable]) -> str:
    """Return a digest of the labels and the triples, which are read in pieces."""
    labels = (vocabulary.entities, vocabulary.relations)
    slices = [(piece.to_series() for piece in series.to_frame().iter_slices(PIECE)) for series in labels]
    return fingerprint_of(list(zip(map(len, labels), slices, strict=True)), tables)


def fingerprint_of(labels: Sequence[tuple[int, Iterable[pl.Series]]], tables: Sequence[TripleTable]) -> str:
    """Return the digest, given how many entities and relations there are and their labels, in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    for n_labels, pieces in labels:
        digest.update(str(n_labels).encode())
        for piece in pieces:
            digest.update(f"\0{piece.str.join(chr(0)).item()}".encode())
    for table in tables:
        digest.update(f"\0{len(table)}\0".encode())
        for start in range(0, len(table), PIECE):
            digest.update(table.triples[start : start + PIECE].astype("<i4", copy=False).tobytes())
    return digest.hexdigest()
