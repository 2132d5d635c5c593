"""Prolog as SWI-Prolog reads it: facts are `triple/3`, predictions are `predicted/3`."""

from __future__ import annotations

from anyburl.export.clausal import ClauseWriter

DECLARATIONS = """\
:- encoding(utf8).
:- multifile triple/3.
:- dynamic triple/3, predicted/3.

"""


class PrologWriter(ClauseWriter):
    """A rule is a clause of `predicted`; labels are atoms."""

    comment = "%"
    differs = "\\=="

    def begin(self) -> str:
        return DECLARATIONS

    def quoted(self, label: str) -> str:
        """Quote a label; control characters are written by their numbers."""
        return "'" + "".join(map(_character, label)) + "'"


def _character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
