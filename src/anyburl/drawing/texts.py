"""Texts in a drawing: shortened, measured and escaped."""

from __future__ import annotations

import re
from html import escape
from unicodedata import east_asian_width

from anyburl.drawing.shapes import Kind

LONGEST_NODE, LONGEST_EDGE = 28, 26
WIDE, CAPITAL, NARROW = 13.5, 9.3, 7.7  # pixels of a character of 13 pixels' height
BOLD = 1.1  # times as wide
EDGE_SIZE = 0.88  # of the text beside an arrow, compared with that in a node

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]+")
"""What cannot be shown, and what turns the direction of the text around it."""


def plain(text: str) -> str:
    """Return text on one line, without characters that change how its surroundings are read."""
    return _UNSEEN.sub(" ", text).strip() or "?"


def shorten(text: str, longest: int) -> str:
    """Return the end of a path like /film/film/genre, or the beginning of another text, if it is too long."""
    if len(text) <= longest:
        return text
    if "/" in text[-longest + 2 :]:
        end = text[-longest + 2 :]
        return "…" + end[end.index("/") :]
    return text[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Return how many pixels a text takes, a little more rather than less."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in "MWmw@%" or east_asian_width(character) in "WF":
        return WIDE
    return CAPITAL if character.isupper() else NARROW


def node_width(text: str, kind: Kind = "entity") -> float:
    """Return the width of a node; ends are written in bold."""
    return max(44.0, text_width(shorten(plain(text), LONGEST_NODE)) * (BOLD if kind == "end" else 1) + 22)


def edge_width(text: str) -> float:
    """Return the width of the text beside an arrow."""
    return text_width(shorten(plain(text), LONGEST_EDGE)) * EDGE_SIZE + 10


def written(text: str, longest: int | None = None) -> str:
    """Return text as markup shows it."""
    clean = plain(text)
    return escape(clean if longest is None else shorten(clean, longest))


def isolated(text: str) -> str:
    """Return text that keeps its own direction among others (Unicode's first strong isolate)."""
    return f"\u2068{plain(text)}\u2069"
