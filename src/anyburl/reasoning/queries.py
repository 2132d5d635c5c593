"""Questions in, answers out: labels and readable names become ids, and ids become columns, frames and `Answers`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import AmbiguousNameError, DataError, OptionError, QueryError
from anyburl.base.files import lines_of
from anyburl.data.dataset import Dataset
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import all_known_answers, held_by, split_names
from anyburl.models.tuned.observations import TOP_K
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.index import shown_scores
from anyburl.ranking.ranker import Progress, Ranker
from anyburl.reasoning.explanation.record import Fact, Reason
from anyburl.rules.labels import RuleTexts
from anyburl.rules.rule import Rule

if TYPE_CHECKING:
    from anyburl.reasoning.explanation.explain import Explanation

UNKNOWN = "?"
COLUMNS = ("subject", "relation", "object")
Triples = NDArray[np.int32]


class Query(NamedTuple):
    """A triple with its subject or its object left open."""

    subject: str | None
    relation: str
    object: str | None

    @property
    def given(self) -> str:
        """The entity that the question names."""
        entity = self.object if self.subject is None else self.subject
        assert entity is not None
        return entity

    def __str__(self) -> str:
        return f"({self.subject or UNKNOWN}, {self.relation}, {self.object or UNKNOWN})"


def make_query(subject: str | None, relation: str, object: str | None) -> Query:
    """Return a query; None, or a question mark, stands for the unknown entity."""
    subject, object = (None if entity == UNKNOWN else entity for entity in (subject, object))
    if (subject is None) == (object is None):
        given = f"{subject or UNKNOWN} {relation} {object or UNKNOWN}"
        raise OptionError(f"a query must ask for either its subject or its object, got {given!r}")
    if relation == UNKNOWN:
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
        stated = facts[facts[:, 1] == relation, column]
        fitting = [entity for entity in map(vocabulary.entity_id, error.labels) if entity in stated]
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
    asks_subject, asks_object = (_is_unknown(frame[name]) for name in ("subject", "object"))
    wrong = np.flatnonzero(asks_subject == asks_object)
    if len(wrong):
        shown = " ".join(str(label) for label in frame.row(int(wrong[0])))
        raise QueryError(int(wrong[0]) + 1, f"expected a ? for either the subject or the object, got {shown!r}")
    given = frame["subject"].zip_with(pl.Series(asks_object), frame["object"])
    entities = vocabulary.encode_entities(given).copy()
    relations = vocabulary.encode_relations(frame["relation"]).copy()
    for row in np.flatnonzero((entities < 0) | (relations < 0)).tolist():
        query = Query(*(None if label in (None, UNKNOWN) else label for label in frame.row(row)))  # type: ignore[arg-type]
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


def _is_unknown(labels: pl.Series) -> NDArray[np.bool_]:
    return (labels.is_null() | (labels == UNKNOWN).fill_null(False)).to_numpy()


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


def _parse_line(line: str, where: str) -> Query:
    fields = line.split("\t") if "\t" in line else line.split()
    if len(fields) != 3:
        raise DataError(f"{where}: expected subject, relation and object, one of them a ?, got {line.strip()!r}")
    try:
        return make_query(*fields)
    except OptionError as error:
        raise DataError(f"{where}: {error}") from error


ANSWERS_AT_A_TIME = 1 << 18
FEWEST_QUESTIONS, MOST_QUESTIONS = 64, 4096  # at a time
KNOWN = pl.Series([",".join(split_names(bits)) for bits in range(8)])


@dataclass(frozen=True)
class AnswerColumns:
    """The best answers of some queries, query after query, one row each.

    Of each query, `sizes` says how many rows it has, `n_candidates` how many candidates there were, and `n_known` how
    many answers in train were left out.
    """

    sizes: NDArray[np.int64]
    n_candidates: NDArray[np.int64]
    n_known: NDArray[np.int64]
    questions: NDArray[np.int64]  # row -> the number of its query
    ranks: NDArray[np.int64]
    triples: NDArray[np.int32]  # (rows, 3)
    entities: NDArray[np.int32]
    scores: NDArray[np.float64]
    known: NDArray[np.uint8]  # the splits that hold the triple, as bits
    rules: NDArray[np.int32]
    n_rules: NDArray[np.int32]


def answer_columns(
    ranker: Ranker,
    dataset: Dataset,
    questions: QueryIds,
    *,
    top: int,
    include_known: bool,
    only_best: bool = False,
    progress: Progress | None = None,
) -> Iterator[AnswerColumns]:
    """Yield the `top` best answers of the questions, some questions at a time, in order.

    Answers that the train split states are left out unless `include_known`. With `only_best`, candidates need not be
    counted (`n_candidates` may be -1), which is faster.
    """
    ranker.check_data(dataset)
    checking.whole("top", top, 1, checking.MOST_KEPT)
    checking.flag("include_known", include_known)
    checking.callback("progress", progress)
    size = min(max(ANSWERS_AT_A_TIME // top, FEWEST_QUESTIONS), MOST_QUESTIONS)
    for start in range(0, len(questions), size):
        part = questions.part(start, start + size)
        yield _answer_part(ranker, dataset, part, start, top, include_known, only_best, progress)


def _answer_part(
    ranker: Ranker,
    dataset: Dataset,
    questions: QueryIds,
    start: int,
    top: int,
    include_known: bool,
    only_best: bool,
    progress: Progress | None,
) -> AnswerColumns:
    n, nothing = len(questions), np.empty(0, np.int32)
    offsets, excluded = np.zeros(n + 1, np.int64), nothing
    if not include_known:
        offsets, excluded = all_known_answers(ranker.graph, questions.entities, questions.relations)
    queries = QueryArrays(
        entities=questions.entities,
        relations=questions.relations,
        target_offsets=np.zeros(n + 1, np.int64),
        targets=nothing,
        excluded_offsets=offsets,
        excluded=excluded,
    )
    answers = ranker.answer(queries, top_k=top, keep_known=include_known, only_best=only_best, progress=progress)
    kept = np.arange(answers.best.shape[1])[None, :] < answers.n_best[:, None]
    rows = np.repeat(np.arange(n), answers.n_best)
    entities, rules, n_rules = answers.best[kept], answers.best_rules[kept], answers.best_counts[kept]
    for question in np.unique(rows[(rules < 0) & (answers.n_candidates[rows] > TOP_K)]):
        _find_rules(ranker, questions, int(question), rows, entities, rules, n_rules)
    triples = _triples(questions, rows, entities, ranker.graph.n_relations)
    return AnswerColumns(
        sizes=answers.n_best,
        n_candidates=answers.n_candidates,
        n_known=np.diff(offsets),
        questions=start + rows,
        ranks=np.nonzero(kept)[1] + 1,
        triples=triples,
        entities=entities,
        scores=shown_scores(answers.best_keys[kept]),
        known=held_by(dataset, triples),
        rules=rules,
        n_rules=n_rules,
    )


def _find_rules(
    ranker: Ranker,
    questions: QueryIds,
    question: int,
    rows: NDArray[np.int64],
    entities: NDArray[np.int32],
    rules: NDArray[np.int32],
    n_rules: NDArray[np.int32],
) -> None:
    """Find the rules that predict answers listed by another model; these may be far down in the order by rules."""
    firings = ranker.fire(int(questions.entities[question]), int(questions.relations[question]))
    for row in np.flatnonzero((rows == question) & (rules < 0)):
        own = np.flatnonzero(firings.candidates == entities[row])
        if len(own):
            n_rules[row] = len(own)
            rules[row] = min(firings.rules[own[firings.scores[own] == firings.scores[own].max()]])


def _triples(
    questions: QueryIds, rows: NDArray[np.int64], entities: NDArray[np.int32], n_relations: int
) -> NDArray[np.int32]:
    """Return the triples that the answers make."""
    given, directed = questions.entities[rows], questions.relations[rows]
    backward = directed >= n_relations
    subjects, objects = np.where(backward, entities, given), np.where(backward, given, entities)
    return np.column_stack([subjects, directed % n_relations, objects])


class AnswerFrames:
    """Turns columns of ids into frames of labels."""

    def __init__(self, ranker: Ranker) -> None:
        self._vocabulary, self._texts = ranker.vocabulary, RuleTexts(ranker.rules)

    def empty(self) -> pl.DataFrame:
        """Return a frame without answers."""
        whole, narrow = np.empty(0, np.int64), np.empty(0, np.int32)
        triples, scores, known = np.empty((0, 3), np.int32), np.empty(0), np.empty(0, np.uint8)
        return self.frame(
            AnswerColumns(whole, whole, whole, whole, whole, triples, narrow, scores, known, narrow, narrow)
        )

    def frame(self, columns: AnswerColumns) -> pl.DataFrame:
        """Return one row per answer: the number of its query, the triple, rank, entity, score, the splits that hold the
        triple, the best rule, and how many rules there are.
        """
        return pl.DataFrame(
            {
                "query": columns.questions.astype(np.uint32),
                **self._vocabulary.decode_triples(columns.triples).to_dict(),
                "rank": columns.ranks.astype(np.uint32),
                "entity": self._vocabulary.entities.gather(columns.entities),
                "score": columns.scores,
                "known": KNOWN.gather(columns.known),
                "rule": self._texts.of_rows(columns.rules),
                "rules": columns.n_rules,
            }
        )


SCHEMA = {
    "rank": pl.Int64,
    "entity": pl.String,
    "score": pl.Float64,
    "known": pl.String,
    "rule": pl.String,
    "rules": pl.Int64,
}
HEADINGS = ("rank", "answer", "score", "known in", "best rule", "rules")


@dataclass(frozen=True)
class Answer:
    """One candidate answer.

    `known` names the splits that state the triple. `rule` is the best of the `n_rules` rules behind it, or None if only
    another model predicts it. `explanation` and `reasons` are computed on first use.
    """

    entity: str
    score: float
    rank: int
    triple: Fact
    known: tuple[str, ...]
    rule: Rule | None
    n_rules: int
    _explain: Callable[[Fact], Explanation] = field(repr=False, compare=False)

    @cached_property
    def explanation(self) -> Explanation:
        """Why this is an answer; drawn in notebooks."""
        return self._explain(self.triple)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The rules behind this answer, best first, with the facts that make them fire."""
        return self.explanation.reasons

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()


class Answers(list[Answer]):
    """The answers that `predict` returns for one query, best first; a table in notebooks.

    `n_candidates` counts all candidates, and `n_known` the answers stated in train that were left out.
    """

    n_candidates: int = 0
    n_known: int = 0

    def to_polars(self) -> pl.DataFrame:
        """Return the columns rank, entity, score, known, rule (the best) and rules (how many)."""
        rows = [
            (
                answer.rank,
                answer.entity,
                answer.score,
                ",".join(answer.known),
                None if answer.rule is None else str(answer.rule),
                answer.n_rules,
            )
            for answer in self
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(answer))}</tr>" for answer in self)
        headings = "".join(f"<th>{name}</th>" for name in HEADINGS)
        return f"<table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(answer: Answer) -> tuple[str, ...]:
    known = ", ".join(answer.known)
    rule = "" if answer.rule is None else str(answer.rule)
    return str(answer.rank), answer.entity, f"{answer.score:.3f}", known, rule, str(answer.n_rules)
