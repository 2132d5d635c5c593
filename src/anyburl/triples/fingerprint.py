"""What tells one data set from another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary

PIECE = 1 << 18  # labels or triples at a time


def fingerprint(vocabulary: Vocabulary, tables: Sequence[TripleTable]) -> str:
    """Return a digest of the labels and the triples, which are read in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    for labels in (vocabulary.entities, vocabulary.relations):
        digest.update(str(len(labels)).encode())
        for piece in labels.to_frame("label").iter_slices(PIECE):
            digest.update(f"\0{piece['label'].str.join(chr(0)).item()}".encode())
    for table in tables:
        digest.update(f"\0{len(table)}\0".encode())
        for start in range(0, len(table), PIECE):
            digest.update(table.triples[start : start + PIECE].astype("<i4", copy=False).tobytes())
    return digest.hexdigest()
