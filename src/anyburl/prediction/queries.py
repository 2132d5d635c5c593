"""Queries as people write them: (subject, relation, ?) or (?, relation, object)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from anyburl.errors import DataError, OptionError
from anyburl.triples.vocabulary import Vocabulary

ASKED = "?"


class Query(NamedTuple):
    """A triple with its subject or its object left open."""

    subject: str | None
    relation: str
    object: str | None

    @property
    def given(self) -> str:
        """The entity that is not asked for."""
        entity = self.object if self.subject is None else self.subject
        assert entity is not None
        return entity

    def ids(self, vocabulary: Vocabulary) -> tuple[int, int]:
        """Return the given entity and the directed relation; an unknown label raises `UnknownLabelError`."""
        relation = vocabulary.relation_id(self.relation)
        return vocabulary.entity_id(self.given), relation + (vocabulary.n_relations if self.subject is None else 0)

    def fact(self, answer: str) -> tuple[str, str, str]:
        """Return the triple that an answer makes."""
        return (self.given, self.relation, answer) if self.object is None else (answer, self.relation, self.given)

    def fact_ids(self, answer: int, vocabulary: Vocabulary) -> tuple[int, int, int]:
        """Return the ids of the triple that an answer makes."""
        given, directed = self.ids(vocabulary)
        relation = directed % vocabulary.n_relations
        return (given, relation, answer) if self.object is None else (answer, relation, given)

    def __str__(self) -> str:
        return f"({self.subject or ASKED}, {self.relation}, {self.object or ASKED})"


def parse_query(subject: str, relation: str, object: str) -> Query:
    """Return the query behind three words, one of them a question mark."""
    if (subject == ASKED) == (object == ASKED):
        given = f"{subject} {relation} {object}"
        raise OptionError(f"a query has a ? for its subject or for its object, one of them, got {given!r}")
    if relation == ASKED:
        raise OptionError("the relation of a query cannot be asked for")
    return Query(None if subject == ASKED else subject, relation, None if object == ASKED else object)


def read_queries(path: str | os.PathLike[str], vocabulary: Vocabulary) -> list[Query]:
    """Read a file of queries, one in a line, tab-separated; what is wrong is said with its line."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: expected a file of queries, got {'a folder' if path.is_dir() else 'no such file'}")
    try:
        return list(_parse_lines(path.read_text("utf-8-sig").split("\n"), str(path), vocabulary))
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: expected text in UTF-8, got what cannot be read as such") from error


def _parse_lines(lines: Iterable[str], name: str, vocabulary: Vocabulary) -> Iterator[Query]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        fields = line.strip("\r").split("\t") if "\t" in line else line.split()
        if len(fields) != 3:
            raise DataError(f"{name}:{number}: expected subject, relation and object, one a ?, got {line.strip()!r}")
        try:
            query = parse_query(*fields)
            query.ids(vocabulary)
        except (DataError, OptionError) as error:
            raise DataError(f"{name}:{number}: {error}") from error
        yield query
