"""`LabelSearch`: find entities and relations by label or name, despite case, accents and typing errors.

Not SQLite's trigram index (FTS5): on the names of FB15k-237 it takes 80 to 170 ms a query, and this 2 ms. Not
rapidfuzz: on 14,664 names of FB15k, `partial_ratio`, which finds words within a name as this does, takes 17 ms of CPU,
`WRatio` 34, this 2.5; `ratio`, which compares whole names only, takes 1.3 (`python benchmarks/bench_search.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import InvalidOptionError
from anyburl.data.names import Names
from anyburl.reasoning.kernel_search import (
    BLOCK,
    END_OF_TEXT,
    EXACT,
    GRAM_BITS,
    PREFIX,
    TYPO,
    LabelIndex,
    count_blocks,
    count_grams,
    find_starts,
    fold_texts,
    index_bytes,
    list_grams,
    match_blocks,
    near_blocks,
    write_grams,
)

LONGEST = 200
"""Characters of a text that are indexed."""

SPELT_OUT = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}

_ASCII = np.arange(14, 127, dtype=np.uint8)
SYMBOLS = _ASCII[[not (chr(byte).islower() or chr(byte).isdigit() or byte == ord(" ")) for byte in _ASCII]]
"""ASCII characters that no folded text contains: pairs of them encode characters beyond ASCII."""


def fold(texts: pl.Series) -> NDArray[np.uint8]:
    """Return folded texts, each ended by a line break."""
    if not len(texts):
        return np.empty(0, np.uint8)
    cut = texts.str.head(LONGEST).str.replace_all("\n", " ", literal=True)
    is_wide = cut.str.len_bytes() != cut.str.len_chars()
    if is_wide.any():
        cut = cut.scatter(is_wide.arg_true(), _without_accents(cut.filter(is_wide)))
    joined = cut.str.join("\n").item().encode() + b"\n"
    given = np.frombuffer(joined, np.uint8)
    out = np.empty(len(given), np.uint8)
    return out[: fold_texts(given, SYMBOLS, out)]


def _without_accents(texts: pl.Series) -> pl.Series:
    spelt = texts.str.to_lowercase().str.normalize("NFKD").str.replace_all(r"\p{M}", "")
    letters = spelt.str.replace_many(list(SPELT_OUT), list(SPELT_OUT.values()))
    return letters.str.replace_all(r"[^\p{L}\p{N}]", " ")


def split_texts(folded: NDArray[np.uint8]) -> pl.Series:
    """Return folded texts as a Series."""
    text = folded[:-1].tobytes().decode("ascii")
    return (
        pl.Series([text], dtype=pl.String).str.split("\n").explode() if len(folded) else pl.Series([], dtype=pl.String)
    )


def text_offsets(folded: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return where each text starts, and where the last one ends."""
    return np.concatenate([[0], np.flatnonzero(folded == END_OF_TEXT) + 1]).astype(np.int64)


LABELS_AT_A_TIME = 1 << 18
MOST_BLOCKS = 2048  # read in one search
GRAMS_OF_AN_EDIT = 4  # groups that differ where two characters are swapped; fewer, if one is changed
RAREST = 4  # of a query's groups select the blocks to read
COMMON = 8  # groups in more than one in this many blocks are ignored

Ints = NDArray[np.int64]


class Hit(NamedTuple):
    """A matching label: how it matches (EXACT to TYPO), with how many edits, and the length of its text."""

    rank: int
    edits: int
    length: int
    owner: int


def index_labels(labels: pl.Series, names: Names | None) -> LabelIndex:
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
        named = [(start + i, names[label]) for i, label in enumerate(some) if names and label in names]
        if named:
            rows, texts = zip(*named, strict=True)
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

    Infixes and typing errors are searched in the `MOST_BLOCKS` likeliest blocks only.
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
    """Return texts that contain the query; of two characters, those with a word that starts with it."""
    grams = _grams(query, anchored=len(query) == 2)
    sizes = index.gram_offsets[grams + 1] - index.gram_offsets[grams]
    rarest = grams[np.argsort(sizes, kind="stable")[:RAREST]]
    blocks = np.flatnonzero(_counts(index, rarest) == len(rarest))[:MOST_BLOCKS]
    texts, ranks = np.empty(len(blocks) * BLOCK, np.int64), np.empty(len(blocks) * BLOCK, np.int64)
    n = match_blocks(index, blocks, query, texts, ranks)
    return _hits(index, texts[:n], ranks[:n], np.zeros(n, np.int64), top)


def _misspelt(index: LabelIndex, query: NDArray[np.uint8], top: int) -> list[Hit]:
    """Return texts with a word that starts with the query but for some typing errors."""
    grams = _grams(query, anchored=True)
    sizes = index.gram_offsets[grams + 1] - index.gram_offsets[grams]
    is_rare = sizes <= max(MOST_BLOCKS, len(index.owners) // BLOCK // COMMON)
    chosen = grams[is_rare] if sizes[is_rare].any() else grams
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


Kind = Literal["entity", "relation"]
LABEL_KINDS: tuple[Kind, ...] = ("entity", "relation")


@dataclass(frozen=True)
class Match:
    """A matching label and its name (itself, if it has none); `distance` counts typing errors."""

    label: str
    name: str
    kind: Kind
    distance: int


@dataclass(frozen=True)
class LabelSearch:
    """An index of labels and names; safe to use from several threads."""

    labels: dict[Kind, pl.Series]
    names: Names
    indexes: dict[Kind, LabelIndex]

    @classmethod
    def build(cls, entities: pl.Series, relations: pl.Series, names: Names | None = None) -> Self:
        """Index the labels of a vocabulary, and their names."""
        labels: dict[Kind, pl.Series] = {"entity": entities, "relation": relations}
        return cls(labels, names or Names(), {kind: index_labels(labels[kind], names) for kind in LABEL_KINDS})

    @property
    def n_bytes(self) -> int:
        """The size of the index, without labels and names."""
        return sum(index_bytes(index) for index in self.indexes.values())

    def find(self, text: str, *, kind: Kind | None = None, top: int = 20) -> list[Match]:
        """Return the `top` labels that fit `text` best, in either kind or in one of them.

        Case, accents and punctuation do not matter. First come labels and names that are equal to the text, then those
        that start with it, those with a word that does, those that contain it, and at last those with a word that
        starts with it but for a typing error, two from five letters on. Among equals, shorter ones come first.
        """
        checking.whole("top", top, 1, checking.MOST_KEPT)
        if kind is not None and kind not in LABEL_KINDS:
            raise InvalidOptionError("kind", f"one of {', '.join(LABEL_KINDS)}", kind)
        query = fold(pl.Series([text], dtype=pl.String))[:-1]
        matches = []
        for chosen in LABEL_KINDS if kind is None else (kind,):
            for hit in find(self.indexes[chosen], query, top):
                label = str(self.labels[chosen][hit.owner])
                match = Match(label, str(self.names.get(label)), chosen, hit.edits)
                is_other = text not in (label, match.name)
                matches.append(((hit.rank, hit.edits, is_other, hit.length, match.name, label), match))
        return [match for _, match in sorted(matches, key=lambda pair: pair[0])[:top]]
