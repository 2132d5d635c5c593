"""Text folding for search: lower case, no accents, single spaces."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.search.arrays import END_OF_TEXT
from anyburl.search.kernel_grams import fold_texts

LONGEST = 200
"""The number of characters of a text that are searched."""

SPELT_OUT = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "\u0131": "i"}

_ASCII = np.arange(14, 127, dtype=np.uint8)
SYMBOLS = _ASCII[[not (chr(byte).islower() or chr(byte).isdigit() or byte == ord(" ")) for byte in _ASCII]]
"""ASCII characters that no folded text holds: pairs of them stand for the characters beyond ASCII."""


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
