"""Builds an index of labels and names, and looks up texts in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.search.arrays import BLOCK, GRAM_BITS, LabelIndex
from anyburl.search.folding import fold, split_texts, text_offsets
from anyburl.search.kernel_grams import count_grams, list_grams, write_grams
from anyburl.search.kernel_match import EXACT, PREFIX, TYPO, count_blocks, find_starts, match_blocks, near_blocks
from anyburl.triples.names import Names

LABELS_AT_A_TIME = 1 << 18
MOST_BLOCKS = 2048  # read in one search
GRAMS_OF_AN_EDIT = 4  # groups that differ where two characters are swapped; fewer, if one is changed
RAREST = 4  # of a query's groups are enough to find texts that hold all of them
COMMON = 8  # groups in more than one in this many blocks say little

Ints = NDArray[np.int64]


class Hit(NamedTuple):
    """A label that was found: how (see `kernel_match`), with how many edits, and how long the text is."""

    rank: int
    edits: int
    length: int
    owner: int


def build_index(labels: pl.Series, names: Names | None) -> LabelIndex:
    """Index labels and, where they have one, their names."""
    parts, owners = [], [np.arange(len(labels), dtype=np.int32)]
    for start in range(0, len(labels), LABELS_AT_A_TIME):
        parts.append(split_texts(fold(labels.slice(start, LABELS_AT_A_TIME))))
    for rows, texts in _named(labels, names):
        parts.append(split_texts(fold(texts)))
        owners.append(rows)
    folded = pl.concat(parts) if parts else pl.Series([], dtype=pl.String)
    order = folded.arg_sort()
    owner = np.concatenate(owners)[order.to_numpy()]
    text = _joined(folded, order)
    offsets = text_offsets(text)
    return LabelIndex(text, offsets, owner, *_list_grams(text, offsets))


def _named(labels: pl.Series, names: Names | None) -> Iterator[tuple[NDArray[np.int32], pl.Series]]:
    """Yield names that differ from their labels, some at a time, with the rows of the labels."""
    for start in range(0, len(labels) if names else 0, LABELS_AT_A_TIME):
        some = labels.slice(start, LABELS_AT_A_TIME).to_list()
        found = [(start + i, names[label]) for i, label in enumerate(some) if names and label in names]
        if found:
            rows, texts = zip(*found, strict=True)
            yield np.array(rows, np.int32), pl.Series(texts, dtype=pl.String)


def _joined(folded: pl.Series, order: pl.Series) -> NDArray[np.uint8]:
    """Return texts in order, each ended by a line break."""
    parts = []
    for start in range(0, len(order), LABELS_AT_A_TIME):
        some = folded.gather(order.slice(start, LABELS_AT_A_TIME)).str.join("\n").item()
        parts.append(np.frombuffer(some.encode() + b"\n", np.uint8))
    return np.concatenate(parts) if parts else np.empty(0, np.uint8)


def _list_grams(texts: NDArray[np.uint8], offsets: Ints) -> tuple[Ints, NDArray[np.int32]]:
    last_blocks, counts = np.full(1 << GRAM_BITS, -1, np.int32), np.zeros(1 << GRAM_BITS, np.int64)
    count_grams(texts, offsets, last_blocks, counts)
    gram_offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    blocks = np.empty(gram_offsets[-1], np.int32)
    last_blocks.fill(-1)
    list_grams(texts, offsets, last_blocks, gram_offsets[:-1].copy(), blocks)
    return gram_offsets, blocks


def find(index: LabelIndex, query: NDArray[np.uint8], top: int) -> list[Hit]:
    """Return about `top` hits or more, each owner once, the best first.

    Of parts of texts and of typing errors, those are found that stand in the `MOST_BLOCKS` likeliest blocks.
    """
    if not len(query):
        return []
    hits = _starting(index, query, top)
    if len(hits) < top and len(query) > 1:
        hits += _holding(index, query, top)
    if len({hit.owner for hit in hits}) < top and most_edits(len(query)):
        hits += _misspelt(index, query, top)
    best: dict[int, Hit] = {}
    for hit in sorted(hits):
        best.setdefault(hit.owner, hit)
    return list(best.values())


def most_edits(length: int) -> int:
    """Return how many typing errors a query of some length may have."""
    return 0 if length < 3 else 1 if length < 5 else 2


def _lengths(index: LabelIndex, texts: Ints) -> Ints:
    return index.offsets[texts + 1] - index.offsets[texts] - 1


def _hits(index: LabelIndex, texts: Ints, ranks: Ints, edits: Ints, top: int) -> list[Hit]:
    """Return the best hits; a label and its name may be two of them."""
    lengths = _lengths(index, texts)
    best = np.lexsort((texts, lengths, edits, ranks))[: 2 * top]
    columns = (ranks, edits, lengths, index.owners[texts])
    return [Hit(*row) for row in zip(*(column[best].tolist() for column in columns), strict=True)]


def _starting(index: LabelIndex, query: NDArray[np.uint8], top: int) -> list[Hit]:
    """Return the shortest texts that start with the query."""
    first, last = find_starts(index, query)
    texts = np.arange(first, last)
    lengths = _lengths(index, texts)
    if len(texts) > 2 * top:
        shortest = np.argpartition(lengths, 2 * top)[: 2 * top]
        texts, lengths = texts[shortest], lengths[shortest]
    return _hits(index, texts, np.where(lengths == len(query), EXACT, PREFIX), np.zeros(len(texts), np.int64), top)


def _holding(index: LabelIndex, query: NDArray[np.uint8], top: int) -> list[Hit]:
    """Return texts with the query anywhere; with two characters, those with a word that starts so."""
    grams = _grams(query, anchored=len(query) == 2)
    sizes = index.gram_offsets[grams + 1] - index.gram_offsets[grams]
    rarest = grams[np.argsort(sizes, kind="stable")[:RAREST]]
    blocks = np.flatnonzero(_counts(index, rarest) == len(rarest))[:MOST_BLOCKS]
    texts, ranks = np.empty(len(blocks) * BLOCK, np.int64), np.empty(len(blocks) * BLOCK, np.int64)
    n = match_blocks(index, blocks, query, texts, ranks)
    return _hits(index, texts[:n], ranks[:n], np.zeros(n, np.int64), top)


def _misspelt(index: LabelIndex, query: NDArray[np.uint8], top: int) -> list[Hit]:
    """Return texts with a word that starts like the query, but for some typing errors."""
    grams = _grams(query, anchored=True)
    sizes = index.gram_offsets[grams + 1] - index.gram_offsets[grams]
    is_telling = sizes <= max(MOST_BLOCKS, len(index.owners) // BLOCK // COMMON)
    chosen = grams[is_telling] if sizes[is_telling].any() else grams
    least = max(1, len(chosen) - GRAMS_OF_AN_EDIT * most_edits(len(query)))
    blocks = _likeliest(_counts(index, chosen), least)
    room = len(blocks) * BLOCK
    texts, edits = np.empty(room, np.int64), np.empty(room, np.int64)
    rows = np.empty((3, len(query) + 2), np.int64)
    n = near_blocks(index, blocks, query, most_edits(len(query)), rows, texts, edits)
    return _hits(index, texts[:n], np.full(n, TYPO), edits[:n], top)


def _grams(query: NDArray[np.uint8], *, anchored: bool) -> Ints:
    out = np.empty(len(query), np.int64)
    return np.unique(out[: write_grams(query, anchored, out)])


def _counts(index: LabelIndex, grams: Ints) -> NDArray[np.uint8]:
    counts = np.zeros(-(-len(index.owners) // BLOCK), np.uint8)
    count_blocks(index, grams, counts)
    return counts


def _likeliest(counts: NDArray[np.uint8], least: int) -> Ints:
    """Return the blocks with the most groups of the query, at least `least` of them."""
    held = np.bincount(counts, minlength=least + 1)
    while least < len(held) - 1 and held[least:].sum() > MOST_BLOCKS:
        least += 1
    return np.flatnonzero(counts >= least)[:MOST_BLOCKS]
