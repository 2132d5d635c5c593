"""An entity or a relation, whichever someone means."""

from __future__ import annotations

from contextlib import suppress

from anyburl.errors import UnknownLabelError
from anyburl.web.explorer import Explorer


def term_label(explorer: Explorer, text: str) -> str:
    """Return the label of a relation or, if there is none of that name, of an entity."""
    with suppress(UnknownLabelError):
        return explorer.relation(text)
    return explorer.entity(text)
