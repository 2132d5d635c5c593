"""Datalog as Soufflé reads it: facts are `triple`, predictions are `predicted`."""

from __future__ import annotations

from anyburl.export.clausal import ClauseWriter

DECLARATIONS = """\
.decl triple(subject: symbol, relation: symbol, object: symbol)
.input triple
.decl predicted(subject: symbol, relation: symbol, object: symbol)
.output predicted

"""
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class DatalogWriter(ClauseWriter):
    """A rule is a clause of `predicted`; it does not see the predictions of others."""

    comment = "//"
    differs = "!="

    def begin(self) -> str:
        return DECLARATIONS

    def quoted(self, label: str) -> str:
        return '"' + "".join(ESCAPES.get(character, character) for character in label) + '"'
