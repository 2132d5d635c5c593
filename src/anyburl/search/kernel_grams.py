"""Fold labels, and list which blocks of texts hold which groups of three characters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.search.arrays import BLOCK, END_OF_TEXT, GRAM_BITS, SPACE

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
