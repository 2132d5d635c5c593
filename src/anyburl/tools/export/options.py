"""The language, and its settings. Imports no compiler, so the command line can take its choices from here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypedDict, Unpack

from anyburl.base.checking import from_keywords
from anyburl.base.errors import InvalidOptionError
from anyburl.data.terms import IRI, OWN

SUFFIXES = {
    "sparql": (".rq", ".ru", ".sparql"),
    "sql": (".sql",),
    "cypher": (".cypher", ".cyp", ".cql"),
    "datalog": (".dl",),
    "prolog": (".pl",),
    "shacl": (".ttl", ".shacl"),
}
LANGUAGES = tuple(SUFFIXES)
UPDATE_SUFFIX = ".ru"

MEANT_FOR = {
    "insert": ("sparql", "sql", "cypher"),
    "target": ("sparql", "sql"),
    "base": ("sparql", "shacl"),
    "table": ("sql",),
    "columns": ("sql",),
    "key": ("cypher",),
    "node_label": ("cypher",),
}
"""The languages to which an option means anything."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Options of an export, checked on creation.

    `to` is the language: sparql, sql, cypher, datalog, prolog or shacl. Under `object_identity`, different terms of a
    rule stand for different entities, and every inequality this requires is written out. With `insert`, predictions are
    inserted instead of queried: in SQL into the table `target` (predictions), in SPARQL into the named graph `target`
    (the IRI predictions below `base`), in Cypher into the graph itself.

    SQL reads the `columns` subject, relation and object of `table`. In Cypher, the property `key` of a node identifies
    an entity, and nodes have the label `node_label` if one is given. In SPARQL and SHACL, labels that are not IRIs
    become IRIs below `base`.
    """

    to: str
    object_identity: bool = True
    insert: bool = False
    target: str | None = None
    base: str = OWN
    table: str = "triples"
    columns: Sequence[str] = ("subject", "relation", "object")
    key: str = "name"
    node_label: str | None = None

    def __post_init__(self) -> None:
        if self.to not in LANGUAGES:
            raise InvalidOptionError("to", f"one of {', '.join(LANGUAGES)}", self.to)
        self._check_meaning()
        if self.target is not None and not self.insert:
            raise InvalidOptionError("target", "left out without {insert}", self.target)
        if not IRI.fullmatch(self.base):
            raise InvalidOptionError("base", "the start of an IRI, such as http://example.org/", self.base)
        if self.to == "sparql" and self.target is not None and not IRI.fullmatch(self.target):
            raise InvalidOptionError("target", "the IRI of a graph", self.target)
        if isinstance(self.columns, str) or len(self.columns) != 3 or not all(self.columns):
            raise InvalidOptionError("columns", "three names: of subject, relation and object", self.columns)
        for name in ("table", "target", "key", "node_label"):
            if getattr(self, name) == "":
                raise InvalidOptionError(name, "a name", "")

    def _check_meaning(self) -> None:
        """Refuse what was asked for and would not be done."""
        for field in fields(self):
            value, languages = getattr(self, field.name), MEANT_FOR.get(field.name, LANGUAGES)
            if self.to not in languages and value != field.default:
                raise InvalidOptionError(field.name, f"left out unless {{to}} is {' or '.join(languages)}", value)


class ExportKeywords(TypedDict, total=False):
    """The fields of `ExportOptions` as keywords, but for the language."""

    object_identity: bool
    insert: bool
    target: str | None
    base: str
    table: str
    columns: Sequence[str]
    key: str
    node_label: str | None


def options_for(
    file: str | os.PathLike[str], to: str | None = None, **options: Unpack[ExportKeywords]
) -> ExportOptions:
    """Return the options of an export to a file, whose suffix says the language if `to` does not."""
    name = os.fspath(file).lower().removesuffix(".gz")
    language = to or next((language for language, ends in SUFFIXES.items() if name.endswith(ends)), None)
    if language is None:
        suffixes = ", ".join(suffix for ends in SUFFIXES.values() for suffix in ends)
        known = f"one of {', '.join(LANGUAGES)} for a file that does not end in {suffixes}"
        raise InvalidOptionError("to", known, None)
    if language == "sparql" and name.endswith(UPDATE_SUFFIX):
        options["insert"] = True
    return from_keywords(ExportOptions, {"to": language, **options})
