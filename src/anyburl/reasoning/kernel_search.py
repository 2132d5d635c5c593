"""The index of labels by groups of three characters, and the matching of texts with typing errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel

BLOCK = 16
"""Texts per block; the posting lists of groups list blocks, which keeps them short."""

GRAM_BITS = 17
"""Bits of the hash of a group of three characters."""

SPACE, END_OF_TEXT = 32, 10


class LabelIndex(NamedTuple):
    """Texts, sorted, each ended by a line break, and for each group of characters the blocks that contain it.

    A group at the start of a text begins with a space.
    """

    texts: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # text -> its first byte in `texts`; one more for the end
    owners: NDArray[np.int32]  # text -> the row of the label that it is, or that it is a name of
    gram_offsets: NDArray[np.int64]  # group -> its first row in `gram_blocks`
    gram_blocks: NDArray[np.int32]  # blocks, sorted within a group


def index_bytes(index: LabelIndex) -> int:
    """Return how many bytes the arrays take."""
    return sum(array.nbytes for array in index)


ASCII_END, LEAD_OF_TWO, LEAD_OF_THREE, LEAD_OF_FOUR = 0x80, 0xC0, 0xE0, 0xF0


@inlined
def code_point(given: NDArray[np.uint8], i: int) -> int:
    """Return the character whose first byte (of several) stands at `i`."""
    lead = int(given[i])
    if lead < LEAD_OF_THREE:
        return (lead & 0x1F) << 6 | int(given[i + 1]) & 0x3F
    if lead < LEAD_OF_FOUR:
        return (lead & 0x0F) << 12 | (int(given[i + 1]) & 0x3F) << 6 | int(given[i + 2]) & 0x3F
    high = (lead & 0x07) << 18 | (int(given[i + 1]) & 0x3F) << 12
    return high | (int(given[i + 2]) & 0x3F) << 6 | int(given[i + 3]) & 0x3F


@kernel
def fold_texts(given: NDArray[np.uint8], symbols: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Write texts (UTF-8, each ended by a line break) in lower case, with one space between words; return the size.

    Anything but letters and digits separates words. A character beyond ASCII becomes two of the `symbols`. `out` has
    room for as many bytes as are given.
    """
    n, start, parted = 0, 0, False
    for i in range(len(given)):
        byte = int(given[i])
        if byte == END_OF_TEXT:
            out[n] = byte
            n += 1
            start, parted = n, False
            continue
        if ord("A") <= byte <= ord("Z"):
            byte += SPACE
        is_word = ord("a") <= byte <= ord("z") or ord("0") <= byte <= ord("9") or byte >= LEAD_OF_TWO
        if byte < ASCII_END and not is_word:
            parted = True
        if not is_word:
            continue
        if parted and n > start:
            out[n] = SPACE
            n += 1
        parted = False
        if byte < ASCII_END:
            out[n] = byte
            n += 1
        else:
            code = code_point(given, i)
            out[n], out[n + 1] = symbols[code // len(symbols) % len(symbols)], symbols[code % len(symbols)]
            n += 2
    return n


@inlined
def gram_at(texts: NDArray[np.uint8], start: int, i: int) -> int:
    """Return the number of the group around `i`, in a text that starts at `start`."""
    before = SPACE if i == start else int(texts[i - 1])
    code = before << 14 | int(texts[i]) << 7 | int(texts[i + 1])
    return ((code * 0x9E3779B1) & 0xFFFFFFFF) >> (32 - GRAM_BITS)


@kernel
def count_grams(
    texts: NDArray[np.uint8], offsets: NDArray[np.int64], last_blocks: NDArray[np.int32], counts: NDArray[np.int64]
) -> None:
    """Add to `counts` in how many blocks each group occurs. `last_blocks` is scratch, all -1."""
    for text in range(len(offsets) - 1):
        start, end = int(offsets[text]), int(offsets[text + 1]) - 1
        for i in range(start, end - 1):
            gram = gram_at(texts, start, i)
            if last_blocks[gram] != text // BLOCK:
                last_blocks[gram] = text // BLOCK
                counts[gram] += 1


@kernel
def list_grams(
    texts: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    last_blocks: NDArray[np.int32],
    next_rows: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the blocks of each group, from its row in `next_rows` on. `last_blocks` is scratch, all -1."""
    for text in range(len(offsets) - 1):
        start, end = int(offsets[text]), int(offsets[text + 1]) - 1
        for i in range(start, end - 1):
            gram = gram_at(texts, start, i)
            if last_blocks[gram] != text // BLOCK:
                last_blocks[gram] = text // BLOCK
                out[next_rows[gram]] = text // BLOCK
                next_rows[gram] += 1


@kernel
def write_grams(query: NDArray[np.uint8], anchored: bool, out: NDArray[np.int64]) -> int:
    """Write the groups of a query, with its start or only within; return how many. Some may be equal."""
    n, first = 0, 0 if anchored else 1
    for i in range(first, len(query) - 1):
        out[n] = gram_at(query, 0, i)
        n += 1
    return n


EXACT, PREFIX, WORD_PREFIX, INFIX, TYPO = 0, 1, 2, 3, 4
FAR = 99  # edits, more than any limit


@inlined
def compare_start(index: LabelIndex, text: int, query: NDArray[np.uint8]) -> int:
    """Return -1, 0 or 1: how the start of a text, as long as the query, compares with it."""
    start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
    for i in range(len(query)):
        if start + i == end:
            return -1
        if index.texts[start + i] != query[i]:
            return -1 if index.texts[start + i] < query[i] else 1
    return 0


@kernel
def find_starts(index: LabelIndex, query: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the first text that starts with the query, and the first one after those that do."""
    bounds = (0, 0)
    for side in range(2):
        low, high = bounds[0], len(index.owners)
        while low < high:
            middle = (low + high) >> 1
            if compare_start(index, middle, query) < side:
                low = middle + 1
            else:
                high = middle
        bounds = (low, low) if side == 0 else (bounds[0], low)
    return bounds


@kernel
def count_blocks(index: LabelIndex, grams: NDArray[np.int64], counts: NDArray[np.uint8]) -> None:
    """Add to `counts` how many of the groups, at most 255 different ones, each block of texts holds."""
    for gram in grams:
        for i in range(index.gram_offsets[gram], index.gram_offsets[gram + 1]):
            counts[index.gram_blocks[i]] += np.uint8(1)


@inlined
def match_text(index: LabelIndex, text: int, query: NDArray[np.uint8]) -> int:
    """Return how a text contains the query: at its start, at that of a word, elsewhere, or not at all (TYPO)."""
    start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
    rank = TYPO
    for first in range(start, end - len(query) + 1):
        is_equal = True
        for i in range(len(query)):
            if index.texts[first + i] != query[i]:
                is_equal = False
                break
        if not is_equal:
            continue
        if first == start:
            return EXACT if end - start == len(query) else PREFIX
        if index.texts[first - 1] == SPACE:
            return WORD_PREFIX
        rank = INFIX
    return rank


@kernel
def match_blocks(
    index: LabelIndex,
    blocks: NDArray[np.int64],
    query: NDArray[np.uint8],
    out: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> int:
    """Write the texts of some blocks that contain the query, and how; return how many. `out` has room for all texts."""
    n = 0
    for block in blocks:
        for text in range(block * BLOCK, min((block + 1) * BLOCK, len(index.owners))):
            rank = match_text(index, text, query)
            if rank != TYPO:
                out[n], ranks[n] = text, rank
                n += 1
    return n


@inlined
def edits_from(
    texts: NDArray[np.uint8], start: int, end: int, query: NDArray[np.uint8], most: int, rows: NDArray[np.int64]
) -> int:
    """Return the fewest edits between the query and a beginning of `texts[start:end]`; FAR if more than `most`.

    An edit adds, drops or changes a character, or swaps two neighbours (optimal string alignment). `rows` is scratch:
    three rows, two longer than the query; only the columns within `most` of the diagonal are filled.
    """
    length = len(query)
    for i in range(min(length, most) + 1):
        rows[1, i] = i
    rows[1, min(length, most) + 1] = FAR
    best = length if length <= most else FAR
    for j in range(1, min(end - start, length + most) + 1):
        before, last, row = rows[(j - 1) % 3], rows[j % 3], rows[(j + 1) % 3]
        low, high = max(1, j - most), min(length, j + most)
        row[low - 1] = j if low == 1 and j <= most else FAR
        least = row[low - 1]
        character = texts[start + j - 1]
        for i in range(low, high + 1):
            edits = min(last[i] + 1, row[i - 1] + 1, last[i - 1] + (query[i - 1] != character))
            if i > 1 and j > 1 and query[i - 2] == character and query[i - 1] == texts[start + j - 2]:
                edits = min(edits, before[i - 2] + 1)
            row[i] = edits
            least = min(least, edits)
        row[high + 1] = FAR
        if high == length:
            best = min(best, row[length])
        if least > most:
            break
    return best if best <= most else FAR


@kernel
def near_blocks(
    index: LabelIndex,
    blocks: NDArray[np.int64],
    query: NDArray[np.uint8],
    most: int,
    rows: NDArray[np.int64],
    out: NDArray[np.int64],
    edits: NDArray[np.int64],
) -> int:
    """Write the texts of some blocks with a word from which on they start with the query but for at most `most` edits.

    Writes the `edits`, too, and returns how many texts there are. `out` has room for all texts of the blocks; see
    `edits_from` for `rows`.
    """
    n = 0
    for block in blocks:
        for text in range(block * BLOCK, min((block + 1) * BLOCK, len(index.owners))):
            start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
            best = FAR
            for i in range(start, end):
                if i == start or index.texts[i - 1] == SPACE:
                    best = min(best, edits_from(index.texts, i, end, query, most, rows))
            if best <= most:
                out[n], edits[n] = text, best
                n += 1
    return n
