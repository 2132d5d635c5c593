"""Fold labels, and list which blocks of texts hold which groups of three characters.

Compare a query with texts: as a part of them, or with a few typing errors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel
from anyburl.reasoning.search.arrays import BLOCK, END_OF_TEXT, GRAM_BITS, SPACE, LabelIndex

ASCII_END, LEAD_OF_TWO, LEAD_OF_THREE, LEAD_OF_FOUR = 0x80, 0xC0, 0xE0, 0xF0


@inlined
def code_point(given: NDArray[np.uint8], place: int) -> int:
    """Return the character whose first byte (of several) stands at `place`."""
    lead = int(given[place])
    if lead < LEAD_OF_THREE:
        return (lead & 0x1F) << 6 | int(given[place + 1]) & 0x3F
    if lead < LEAD_OF_FOUR:
        return (lead & 0x0F) << 12 | (int(given[place + 1]) & 0x3F) << 6 | int(given[place + 2]) & 0x3F
    high = (lead & 0x07) << 18 | (int(given[place + 1]) & 0x3F) << 12
    return high | (int(given[place + 2]) & 0x3F) << 6 | int(given[place + 3]) & 0x3F


@kernel
def fold_texts(given: NDArray[np.uint8], symbols: NDArray[np.uint8], out: NDArray[np.uint8]) -> int:
    """Write texts (UTF-8, each ended by a line break) in lower case, with one space between words; return the size.

    What is neither letter nor digit parts words. A character beyond ASCII becomes two of the `symbols`, which stand for
    nothing else. `out` has room for as many bytes as there are given.
    """
    n, start, parted = 0, 0, False
    for place in range(len(given)):
        byte = int(given[place])
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
            code = code_point(given, place)
            out[n], out[n + 1] = symbols[code // len(symbols) % len(symbols)], symbols[code % len(symbols)]
            n += 2
    return n


@inlined
def gram_at(texts: NDArray[np.uint8], start: int, place: int) -> int:
    """Return the number of the group around `place`, in a text that starts at `start`."""
    before = SPACE if place == start else int(texts[place - 1])
    code = before << 14 | int(texts[place]) << 7 | int(texts[place + 1])
    return ((code * 0x9E3779B1) & 0xFFFFFFFF) >> (32 - GRAM_BITS)


@kernel
def count_grams(
    texts: NDArray[np.uint8], offsets: NDArray[np.int64], last_blocks: NDArray[np.int32], counts: NDArray[np.int64]
) -> None:
    """Add to `counts` in how many blocks each group occurs. `last_blocks` is scratch, all -1."""
    for text in range(len(offsets) - 1):
        start, end = int(offsets[text]), int(offsets[text + 1]) - 1
        for place in range(start, end - 1):
            gram = gram_at(texts, start, place)
            if last_blocks[gram] != text // BLOCK:
                last_blocks[gram] = text // BLOCK
                counts[gram] += 1


@kernel
def list_grams(
    texts: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    last_blocks: NDArray[np.int32],
    next_places: NDArray[np.int64],
    out: NDArray[np.int32],
) -> None:
    """Write the blocks of each group, from its place in `next_places` on. `last_blocks` is scratch, all -1."""
    for text in range(len(offsets) - 1):
        start, end = int(offsets[text]), int(offsets[text + 1]) - 1
        for place in range(start, end - 1):
            gram = gram_at(texts, start, place)
            if last_blocks[gram] != text // BLOCK:
                last_blocks[gram] = text // BLOCK
                out[next_places[gram]] = text // BLOCK
                next_places[gram] += 1


@kernel
def write_grams(query: NDArray[np.uint8], anchored: bool, out: NDArray[np.int64]) -> int:
    """Write the groups of a query, with its start or only within; return how many. Some may be equal."""
    n, first = 0, 0 if anchored else 1
    for place in range(first, len(query) - 1):
        out[n] = gram_at(query, 0, place)
        n += 1
    return n


EXACT, PREFIX, WORD_PREFIX, INFIX, TYPO = 0, 1, 2, 3, 4
FAR = 99  # edits, more than anyone asks for


@inlined
def compare_start(index: LabelIndex, text: int, query: NDArray[np.uint8]) -> int:
    """Return -1, 0 or 1: how the start of a text, as long as the query, compares with it."""
    start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
    for place in range(len(query)):
        if start + place == end:
            return -1
        if index.texts[start + place] != query[place]:
            return -1 if index.texts[start + place] < query[place] else 1
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
        for place in range(index.gram_offsets[gram], index.gram_offsets[gram + 1]):
            counts[index.gram_blocks[place]] += np.uint8(1)


@inlined
def match_text(index: LabelIndex, text: int, query: NDArray[np.uint8]) -> int:
    """Return how a text holds the query: at its start, at that of a word, elsewhere, or not at all (TYPO)."""
    start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
    found = TYPO
    for first in range(start, end - len(query) + 1):
        is_equal = True
        for place in range(len(query)):
            if index.texts[first + place] != query[place]:
                is_equal = False
                break
        if not is_equal:
            continue
        if first == start:
            return EXACT if end - start == len(query) else PREFIX
        if index.texts[first - 1] == SPACE:
            return WORD_PREFIX
        found = INFIX
    return found


@kernel
def match_blocks(
    index: LabelIndex,
    blocks: NDArray[np.int64],
    query: NDArray[np.uint8],
    out: NDArray[np.int64],
    ranks: NDArray[np.int64],
) -> int:
    """Write the texts of some blocks that hold the query, and how; return how many. `out` has room for all texts."""
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
    three rows, two longer than the query; only the places within `most` of the diagonal are filled.
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
    """Write the texts of some blocks in which a word, and what follows, starts like the query, and with how many edits.

    At most `most` edits count. Returns how many texts there are. `out` has room for all texts of the blocks; see
    `edits_from` for `rows`.
    """
    n = 0
    for block in blocks:
        for text in range(block * BLOCK, min((block + 1) * BLOCK, len(index.owners))):
            start, end = int(index.offsets[text]), int(index.offsets[text + 1]) - 1
            best = FAR
            for place in range(start, end):
                if place == start or index.texts[place - 1] == SPACE:
                    best = min(best, edits_from(index.texts, place, end, query, most, rows))
            if best <= most:
                out[n], edits[n] = text, best
                n += 1
    return n
