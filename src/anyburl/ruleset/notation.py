r"""How the token self stands among the labels of entities in frames.

In files it is `SELF_MARKER`, which no label can be. In frames for people it is `me_myself_i`, as in the text of a rule.
Should an entity have that very label, it gets a backslash there: `\me_myself_i` is the entity, `\\me_myself_i` an
entity whose label has a backslash of its own, and so on.

A frame with `SELF_MARKER`, among its labels or in their dictionary, is taken for one of a file.
"""

from __future__ import annotations

import polars as pl

from anyburl.triples.vocabulary import SELF_TOKEN

SELF_MARKER = "\0self"
"""Stands for the token self among labels; no label can hold its first character."""

_LIKE_TOKEN = rf"^\\*{SELF_TOKEN}$"
_QUOTED_TOKEN = rf"^\\+{SELF_TOKEN}$"


def quote_labels(entities: pl.Series) -> pl.Series:
    """Return the labels of entities as they stand in frames for people."""
    return entities.zip_with(~entities.str.contains(_LIKE_TOKEN), "\\" + entities)


def read_labels(texts: pl.Series) -> pl.Series:
    """Return the labels behind all texts of entities in a frame, with `SELF_MARKER` for the token self."""
    if (texts == SELF_MARKER).any():
        return texts
    unquoted = texts.str.strip_prefix("\\").zip_with(texts.str.contains(_QUOTED_TOKEN), texts)
    return unquoted.zip_with(texts != SELF_TOKEN, pl.Series([SELF_MARKER], dtype=pl.String))
