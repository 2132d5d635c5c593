"""Search of labels, one text after the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

SPELT_OUT = {"ß": "ss", "ø": "o", "ł": "l"}


def is_word(character: str) -> bool:
    """Letters and digits make words; anything else parts them."""
    return unicodedata.category(character)[0] in "LN"


def without_accents(text: str) -> str:
    parts = (c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.category(c).startswith("M"))
    return "".join(SPELT_OUT.get(c, c) for c in parts)


def fold(text: str) -> str:
    """Lower case, no accents, one space between words."""
    return " ".join("".join(c if is_word(c) else " " for c in without_accents(text)).split())


def fold_ascii(text: str, symbols: Sequence[int]) -> bytes:
    """What `fold_texts` does with one text: ASCII is folded, each other character becomes two symbols."""
    base = len(symbols)
    words = "".join(c if c.isalnum() or not c.isascii() else " " for c in text).split(" ")
    pairs = [
        b"".join(
            c.lower().encode() if c.isascii() else bytes([symbols[ord(c) // base % base], symbols[ord(c) % base]])
            for c in word
        )
        for word in words
        if word
    ]
    return b" ".join(pairs)


def holds(text: str | bytes, query: str | bytes) -> int | None:
    """How a text holds a query: 0 equal, 1 at the start, 2 at that of a word, 3 elsewhere; None: not at all."""
    text, query = ((t if isinstance(t, str) else t.decode("ascii")) for t in (text, query))
    if text == query:
        return 0
    if text.startswith(query):
        return 1
    if f" {query}" in text:
        return 2
    return 3 if query in text else None


def edits(one: str, other: str) -> int:
    """The fewest characters added, dropped, changed, or neighbours swapped (optimal string alignment)."""
    table = {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(other) + 1)}
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            found = [
                table[i - 1, j] + 1,
                table[i, j - 1] + 1,
                table[i - 1, j - 1] + (one[i - 1] != other[j - 1]),
            ]
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                found.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(found)
    return table[len(one), len(other)]


def edits_to_a_start(text: str, query: str) -> int:
    """The fewest edits between the query and what a word of the text, and what follows it, starts with."""
    places = [i for i in range(len(text)) if i == 0 or text[i - 1] == " "]
    ends = [text[i:end] for i in places for end in range(i, len(text) + 1)]
    return min((edits(query, end) for end in ends), default=len(query))
