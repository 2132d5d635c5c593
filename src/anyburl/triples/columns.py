"""Finds the columns of a table that hold the triples."""

from __future__ import annotations

from collections.abc import Sequence

from anyburl.errors import DataError

COLUMNS = ("subject", "relation", "object")
KNOWN = {
    "subject": {"subject", "head", "source", "s", "h"},
    "relation": {"relation", "predicate", "label", "p", "r"},
    "object": {"object", "tail", "target", "o", "t"},
}
MOST_LISTED = 12
CHOOSE = "choose with --columns A,B,C, or by number if there is no header"


def by_number(chosen: Sequence[str] | None) -> bool:
    """Return whether columns are chosen by their numbers, from 1 on: then a file of text has no header."""
    return chosen is not None and all(name.isdecimal() for name in chosen)


def choose_columns(found: Sequence[str], chosen: Sequence[str] | None, where: object) -> list[int]:
    """Return the positions of subject, relation and object among the columns that were found.

    They are those `chosen` or, in a table of three columns, the ones that have the usual names.
    """
    if chosen is not None:
        return [_position(found, name, where, numbered=by_number(chosen)) for name in chosen]
    if len(found) == 3 and has_usual_names(found):
        return [place[0] for place in _usual_places(found)]
    expected = "one each for subject, relation and object" if len(found) == 3 else "three columns"
    raise DataError(f"{where}: expected {expected}, got {_listed(found)}; {CHOOSE}")


def has_usual_names(found: Sequence[str]) -> bool:
    """Return whether one column each has a usual name for subject, relation and object."""
    return all(len(place) == 1 for place in _usual_places(found))


def _usual_places(found: Sequence[str]) -> list[list[int]]:
    return [[row for row, name in enumerate(found) if name.strip().lower() in KNOWN[part]] for part in COLUMNS]


def _position(found: Sequence[str], name: str, where: object, *, numbered: bool) -> int:
    if numbered:
        if not 1 <= int(name) <= len(found):
            raise DataError(f"{where}: expected a column {name}, got {len(found)} columns")
        return int(name) - 1
    for plain in (str, str.lower):
        places = [row for row, other in enumerate(found) if plain(other) == plain(name)]
        if len(places) == 1:
            return places[0]
    got = "several of that name" if places else _listed(found)
    raise DataError(f"{where}: expected a column {name!r}, got {got}")


def _listed(found: Sequence[str]) -> str:
    return "the columns " + ", ".join(found[:MOST_LISTED]) + (", ..." if len(found) > MOST_LISTED else "")
