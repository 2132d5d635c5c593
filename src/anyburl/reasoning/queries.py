"""Queries as people write them: (subject, relation, ?) or (?, relation, object)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import AmbiguousNameError, DataError, OptionError, QueryError
from anyburl.base.files import lines_of
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary

ASKED = "?"
COLUMNS = ("subject", "relation", "object")
Triples = NDArray[np.int32]


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

    def __str__(self) -> str:
        return f"({self.subject or ASKED}, {self.relation}, {self.object or ASKED})"


def make_query(subject: str | None, relation: str, object: str | None) -> Query:
    """Return a query; None, or a question mark, stands for what is asked."""
    subject, object = (None if entity == ASKED else entity for entity in (subject, object))
    if (subject is None) == (object is None):
        given = f"{subject or ASKED} {relation} {object or ASKED}"
        raise OptionError(f"a query must ask for either its subject or its object, got {given!r}")
    if relation == ASKED:
        raise OptionError("a query cannot ask for its relation")
    return Query(subject, relation, object)


@dataclass(frozen=True)
class QueryIds:
    """Many queries as ids: the entities given, and directed relations (backward where the subject is asked for)."""

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]

    @classmethod
    def one(cls, entity: int, relation: int) -> QueryIds:
        """Return a single one."""
        return cls(np.array([entity], np.int32), np.array([relation], np.int32))

    def __len__(self) -> int:
        return len(self.entities)

    def part(self, start: int, stop: int) -> QueryIds:
        """Return some of them."""
        return QueryIds(self.entities[start:stop].copy(), self.relations[start:stop].copy())


def encode_query(
    query: Query, vocabulary: Vocabulary, names: Names | None = None, facts: Triples | None = None
) -> tuple[int, int]:
    """Return the given entity and the directed relation: by label, or else by name, see `encode_entity`."""
    names = names or Names()
    relation = names.relation_id(query.relation, vocabulary)
    column = 2 if query.subject is None else 0
    entity = encode_entity(query.given, vocabulary, names, relation, column, facts)
    return entity, relation + (vocabulary.n_relations if query.subject is None else 0)


def encode_entity(
    text: str, vocabulary: Vocabulary, names: Names, relation: int, column: int, facts: Triples | None = None
) -> int:
    """Return the id of an entity given by label or name, as the subject (`column` 0) or object (2) of a relation.

    If several entities have the name, it is the one that stands in that place in one of the `facts`.
    """
    try:
        return names.entity_id(text, vocabulary)
    except AmbiguousNameError as error:
        if facts is None:
            raise
        in_place = facts[facts[:, 1] == relation, column]
        fitting = [entity for entity in map(vocabulary.entity_id, error.labels) if entity in in_place]
        if len(fitting) != 1:
            raise
        return fitting[0]


def decode_query(entity: int, relation: int, vocabulary: Vocabulary) -> Query:
    """Return the query behind an entity and a directed relation."""
    label = vocabulary.entity_label(entity)
    name = vocabulary.relation_label(relation % vocabulary.n_relations)
    return Query(label, name, None) if relation < vocabulary.n_relations else Query(None, name, label)


def encode_queries(
    queries: Any, vocabulary: Vocabulary, names: Names | None = None, facts: Triples | None = None
) -> QueryIds:
    """Return the ids of many queries.

    `queries` are tuples (subject, relation, object) or a frame with these columns; None, null or a question mark stands
    for what is asked. `facts` decide what ambiguous names mean. Errors name the number of the query, from 1.
    """
    frame = _query_frame(queries)
    asks_subject, asks_object = (_is_asked(frame[name]) for name in ("subject", "object"))
    wrong = np.flatnonzero(asks_subject == asks_object)
    if len(wrong):
        shown = " ".join(str(label) for label in frame.row(int(wrong[0])))
        raise QueryError(int(wrong[0]) + 1, f"expected a ? for either the subject or the object, got {shown!r}")
    given = frame["subject"].zip_with(pl.Series(asks_object), frame["object"])
    entities = vocabulary.encode_entities(given).copy()
    relations = vocabulary.encode_relations(frame["relation"]).copy()
    for row in np.flatnonzero((entities < 0) | (relations < 0)).tolist():
        query = Query(*(None if label in (None, ASKED) else label for label in frame.row(row)))  # type: ignore[arg-type]
        try:
            entities[row], relations[row] = encode_query(query, vocabulary, names, facts)
            relations[row] %= vocabulary.n_relations
        except DataError as error:  # an unknown label, an ambiguous name
            raise QueryError(row + 1, str(error)) from error
    return QueryIds(entities, (relations + asks_subject * vocabulary.n_relations).astype(np.int32))


def _query_frame(queries: Any) -> pl.DataFrame:
    """Return columns of labels; null stays null."""
    if isinstance(queries, pl.DataFrame):
        missing = [name for name in COLUMNS if name not in queries.columns]
        if missing:
            raise DataError(f"queries need the columns {', '.join(COLUMNS)}: {', '.join(missing)} is missing")
        return queries.select(pl.col(name).cast(pl.String) for name in COLUMNS)
    if hasattr(queries, "itertuples"):  # a pandas frame: what is missing is not a number
        chosen = queries[list(COLUMNS)].astype(object)
        queries = chosen.where(chosen.notna(), None).itertuples(index=False)
    if isinstance(queries, Iterable):
        rows = [tuple(query) if isinstance(query, Iterable) and not isinstance(query, str) else () for query in queries]
        if any(len(row) != 3 for row in rows):
            raise DataError(
                "expected queries with three parts: subject, relation and object, with None for the part asked for"
            )
        return pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    raise DataError(f"expected queries as tuples or a frame, got {type(queries).__name__}")


def _is_asked(labels: pl.Series) -> NDArray[np.bool_]:
    return (labels.is_null() | (labels == ASKED).fill_null(False)).to_numpy()


def read_queries(
    path: str | os.PathLike[str], vocabulary: Vocabulary, names: Names | None = None, facts: Triples | None = None
) -> QueryIds:
    """Read a file of queries, one in a line, tab-separated; errors name the line."""
    path = Path(path)
    lines = lines_of(path, "queries", DataError)
    queries = [_parse_line(line, f"{path}:{number}") for number, line in lines.items()]
    try:
        return encode_queries(queries, vocabulary, names, facts)
    except QueryError as error:
        raise DataError(f"{path}:{[*lines][error.number - 1]}: {error.reason}") from error


def _parse_line(line: str, place: str) -> Query:
    fields = line.split("\t") if "\t" in line else line.split()
    if len(fields) != 3:
        raise DataError(f"{place}: expected subject, relation and object, one of them a ?, got {line.strip()!r}")
    try:
        return make_query(*fields)
    except OptionError as error:
        raise DataError(f"{place}: {error}") from error
