"""Ranks the answers of a split: metrics with their protocol (steps, filter, ties, both directions), and rankings.

Answers are ranked against all entities, or against the negatives of each question, read from a file: benchmarks such as
TGB draw them once, so that everybody ranks against the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.checking import callback, choice
from anyburl.base.errors import AnyburlError, DataError, OptionError
from anyburl.base.files import lines_of
from anyburl.graph.build import range_rows
from anyburl.learning.options import FILTERS, STEPS, TIES
from anyburl.ranking.queries import Ranks
from anyburl.reasoning.evaluation import SCHEMA, TRIPLES_AT_A_TIME, cut_lists, figures_by_relation
from anyburl.reasoning.metrics import Metrics, bootstrap_interval, summarise, summarise_random
from anyburl.temporal.answering import Answered, Answerer, Directed, make_questions
from anyburl.temporal.facts import TemporalDataset
from anyburl.temporal.kernel_answer import rank_in_lists
from anyburl.temporal.kernel_bodies import QuestionArrays
from anyburl.temporal.model import ListModel

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Question = tuple[int, int, int]  # entity, directed relation, step of the clock

EXPECTED = "expected subject, relation, object and time, one of the two entities ?, and then the negatives"


@dataclass(frozen=True)
class Negatives:
    """The negatives of questions, by question; `name` is that of their file."""

    name: str
    lists: dict[Question, Ids]

    @classmethod
    def read(cls, path: Path, dataset: TemporalDataset) -> Negatives:
        """Read lines of a question and its negatives, separated by tabs: `Croatia adopts ? 2023 Dinar Lev`."""
        words, steps, lists = dataset.vocabulary, dict[str, int](), dict[Question, Ids]()
        for number, line in lines_of(path, "negatives", DataError).items():
            fields = line.split("\t")
            if len(fields) < 5 or (fields[0] == "?") == (fields[2] == "?"):
                raise DataError(f"{path}:{number}: {EXPECTED}, got {line[:200]!r}")
            subject, relation, object, moment, *labels = fields
            try:
                if moment not in steps:
                    steps[moment] = dataset.clock.step(moment)
                directed = words.relation_id(relation) + (words.n_relations if subject == "?" else 0)
                entity = words.entity_id(object if subject == "?" else subject)
                negatives = words.encode_entities(labels)
                if (negatives < 0).any():
                    words.entity_id(labels[int((negatives < 0).argmax())])  # which says what is similar
            except AnyburlError as error:
                raise DataError(f"{path}:{number}: {error}") from error
            question = (entity, directed, steps[moment])
            if question in lists:
                raise DataError(f"{path}:{number}: expected each question once, got {line[:200]!r} again")
            lists[question] = negatives
        if not lists:
            raise DataError(f"{path}: {EXPECTED}, got an empty file")
        return cls(path.name, lists)

    def of_questions(self, entities: Ints, relations: Ints, times: Ints, dataset: TemporalDataset) -> list[Ids]:
        """Return the negatives of each question; a question without any is an error."""
        questions = list(zip(entities.tolist(), relations.tolist(), times.tolist(), strict=True))
        missing = [question for question in questions if question not in self.lists]
        if missing:
            (entity, directed, step), words = missing[0], dataset.vocabulary
            label, relation = words.entity_label(entity), words.relation_label(directed % words.n_relations)
            ends = (label, relation, "?") if directed < words.n_relations else ("?", relation, label)
            raise DataError(
                f"{self.name}: expected negatives for every question, and {len(missing):,} of {len(questions):,} have "
                f"none, the first of them {' '.join(ends)} {dataset.clock.label(step)}"
            )
        return [self.lists[question] for question in questions]


def against(questions: QuestionArrays, start: int, stop: int, negatives: list[Ids], n_entities: int) -> QuestionArrays:
    """Return the questions from `start` to before `stop`, with everything excluded that is not among their negatives.

    Answers of a question are never negatives of each other.
    """
    is_out = np.ones((stop - start, n_entities), np.bool_)
    first, last = int(questions.answer_offsets[start]), int(questions.answer_offsets[stop])
    offsets = questions.answer_offsets[start : stop + 1] - first
    for row, rivals in enumerate(negatives[start:stop]):
        is_out[row, rivals] = False
    answers = questions.answers[first:last]
    is_out[np.repeat(np.arange(stop - start), np.diff(offsets)), answers] = True
    return QuestionArrays(
        questions.entities[start:stop],
        questions.relations[start:stop],
        questions.before[start:stop],
        questions.now[start:stop],
        offsets,
        answers,
        np.append(0, np.cumsum(is_out.sum(axis=1))),
        np.nonzero(is_out)[1].astype(np.int32),
    )


EXCLUDED_AT_A_TIME = 1 << 25  # entities that are no negatives, held in memory
RANKING_SCHEMA = pl.Schema([*list(SCHEMA.items())[:3], ("time", pl.String()), *list(SCHEMA.items())[3:]])

Progress = Callable[[int], None]


class TemporalMetrics(Metrics):
    """The metrics of one evaluation with time, with the protocol behind them: `Metrics` without those by rule type.

    `ranks` are those of every fact as (s, r, ?), then of every fact as (?, r, o).
    """

    def to_json(self) -> dict[str, Any]:
        """Return everything but the single ranks as plain values."""
        return {name: value for name, value in super().to_json().items() if name != "by_rule_type"}

    @property
    def protocol_text(self) -> str:
        """How the figures were measured, in words."""
        protocol = self.protocol
        rivals = f"filter {protocol['filter']}"
        if "negatives" in protocol:
            rivals = f"against {protocol['negatives']:g} negatives each (from {protocol['negatives_file']})"
        return (
            f"{protocol['data']} {protocol['split']}, {protocol['queries']} queries, {protocol['steps']}-step, "
            f"{rivals}, {protocol['ties']} ties, {protocol['aggregation']}"
        )


@dataclass(frozen=True)
class EvaluationProtocol:
    """How a split is evaluated."""

    split: str = "test"
    steps: str = "single"
    filter: str = "time"
    ties: str = "realistic"
    negatives: Negatives | None = None  # which answers are ranked against, in place of all that the filter leaves

    def __post_init__(self) -> None:
        choice("steps", self.steps, STEPS)
        choice("filter", self.filter, FILTERS)
        choice("ties", self.ties, TIES)
        if self.negatives is not None and self.filter != FILTERS[0]:
            raise OptionError(f"negatives say what answers are ranked against: leave out filter, got {self.filter!r}")


def split_questions(
    dataset: TemporalDataset, facts: Directed, protocol: EvaluationProtocol, rows: slice = slice(None)
) -> tuple[QuestionArrays, Ints]:
    """Return both questions of the facts of a split, or of some `rows`, and where the answer of each stands in them.

    A fact that holds for an interval is asked for at its beginning.
    """
    questions, positions, triples = _both_questions(dataset, protocol, rows)
    if protocol.filter == "raw":
        return questions, positions
    known = known_at_moments(facts, *triples, static=protocol.filter == "static")
    return questions._replace(excluded_offsets=known[0], excluded=known[1]), positions


def _both_questions(
    dataset: TemporalDataset, protocol: EvaluationProtocol, rows: slice = slice(None)
) -> tuple[QuestionArrays, Ints, tuple[Ints, Ints, Ints]]:
    """Return questions that exclude nothing, places of answers, and the questions' entities, relations and moments."""
    split = dataset.split(protocol.split)
    if not len(split):
        raise DataError(f"{dataset.name} has no facts in its {protocol.split} split")
    n = dataset.vocabulary.n_relations
    columns = (split.subjects, split.relations, split.objects, split.times)
    subjects, relations, objects, times = (np.asarray(column, np.int64)[rows] for column in columns)
    entities, directed = np.concatenate([subjects, objects]), np.concatenate([relations, relations + n])
    answers, moments = np.concatenate([objects, subjects]), np.concatenate([times, times])
    still = int(np.min(split.times)) if protocol.steps == "multi" else None
    questions, positions = make_questions(entities, directed, moments, answers, still=still)
    facts_in_order = np.argsort(positions)
    firsts = facts_in_order[questions.answer_offsets[:-1]]
    return questions, positions, (entities[firsts], directed[firsts], moments[firsts])


def known_at_moments(
    facts: Directed, entities: Ints, relations: Ints, times: Ints, *, static: bool
) -> tuple[Ints, NDArray[np.int32]]:
    """Return offsets and answers that facts state for each question, at its moment or (`static`) at any."""
    width = facts.n_relations
    keys, keys_of_questions = facts.entities * width + facts.relations, entities * width + relations
    if static:
        order = np.lexsort((facts.answers, keys))
        sorted_keys, answers = keys[order], facts.answers[order]
        changed = np.ones(len(order), np.bool_)
        changed[1:] = (np.diff(sorted_keys) != 0) | (np.diff(answers) != 0)
        sorted_keys, answers = sorted_keys[changed], answers[changed]
    else:
        moments = np.unique(facts.times)
        position = np.searchsorted(moments, times)
        is_known = (
            moments[np.minimum(position, len(moments) - 1)] == times if len(moments) else np.zeros(len(times), bool)
        )
        span = facts.n_entities * width
        sorted_keys, answers = np.searchsorted(moments, facts.times) * span + keys, facts.answers  # sorted already
        keys_of_questions = np.where(is_known, position * span + keys_of_questions, -1)
    first, last = (
        np.searchsorted(sorted_keys, keys_of_questions),
        np.searchsorted(sorted_keys, keys_of_questions, side="right"),
    )
    sizes = last - first
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return offsets, answers[range_rows(first, sizes)].astype(np.int32)


def rerank_lists(part: Answered, questions: QuestionArrays, model: ListModel, n_entities: int) -> Answered:
    """Return the same part with ranks and scores by a model."""
    used = part.rows()
    scores = np.full(len(part.kept), -np.inf)
    scores[used] = model.scores(part.features[used], part.sizes)
    better, equal = part.better.copy(), part.equal.copy()
    excluded = np.full(n_entities, -1, np.int64)
    rank_in_lists(questions, part.start, part.stop, part.n_kept, part.sizes, part.kept, scores, excluded, better, equal)
    return Answered(part.start, part.stop, better, equal, part.n_kept, part.sizes, part.kept, scores, part.features[:0])


def ranked_parts(
    answerer: Answerer,
    questions: QuestionArrays,
    model: ListModel | None,
    n_kept: int,
    progress: Progress | None = None,
) -> Iterator[Answered]:
    """Yield ranks and best candidates part by part, ordered by the model if there is one."""
    for part in answerer.answer(questions, n_kept, with_features=model is not None, progress=progress):
        yield part if model is None else rerank_lists(part, questions, model, answerer.history.n_entities)


def ranked_against(
    answerer: Answerer,
    questions: QuestionArrays,
    negatives: list[NDArray[np.int32]],
    model: ListModel | None,
    n_kept: int,
    progress: Progress | None,
) -> Iterator[Answered]:
    """Yield ranks among negatives, for a bounded number of questions at a time."""
    n_entities, n = answerer.history.n_entities, len(questions.entities)
    step = max(1, EXCLUDED_AT_A_TIME // n_entities)
    for start in range(0, n, step):
        some = against(questions, start, min(start + step, n), negatives, n_entities)
        yield from ranked_parts(answerer, some, model, n_kept, progress)


def evaluate_temporal(
    answerer: Answerer,
    model: ListModel | None,
    candidates: int,
    dataset: TemporalDataset,
    facts: Directed,
    protocol: EvaluationProtocol,
    aggregation: str,
    n_rules: int,
    progress: Progress | None = None,
) -> TemporalMetrics:
    """Rank both questions of every fact of a split, and return the metrics."""
    callback("progress", progress)
    started = time.perf_counter()
    n_kept, rivals = candidates if model else 0, {}
    if protocol.negatives is None:
        questions, positions = split_questions(dataset, facts, protocol)
        parts = list(ranked_parts(answerer, questions, model, n_kept, progress))
    else:
        questions, positions, columns = _both_questions(dataset, protocol)
        negatives = protocol.negatives.of_questions(*columns, dataset)
        parts = list(ranked_against(answerer, questions, negatives, model, n_kept, progress))
        mean = round(sum(map(len, negatives)) / len(negatives), 1)
        rivals = {"filter": "negatives", "negatives": mean, "negatives_file": protocol.negatives.name}
    better, equal = (np.concatenate([getattr(part, name) for part in parts]) for name in ("better", "equal"))
    ranks = Ranks(better + 1, better + equal + 1).at(positions)
    took = {"rank": round(time.perf_counter() - started, 3)}
    split = dataset.split(protocol.split)
    chosen, n = ranks.of(protocol.ties), len(split)
    labels = dataset.vocabulary.relations.to_list()
    others = {name: summarise(ranks.of(name)) for name in TIES}
    return TemporalMetrics(
        protocol={
            "data": dataset.name,
            "fingerprint": dataset.fingerprint,
            "split": protocol.split,
            "queries": 2 * n,
            "steps": protocol.steps,
            "filter": protocol.filter,
            **rivals,
            "ties": protocol.ties,
            "aggregation": aggregation,
            "rules": n_rules,
            "anyburl": __version__,
        },
        metrics={
            **summarise(chosen),
            **others,
            "random": summarise_random(ranks),
            "interval": bootstrap_interval(chosen),
        },
        by_direction={"object": summarise(chosen[:n]), "subject": summarise(chosen[n:])},
        by_relation=figures_by_relation(chosen, split.relations, labels),
        by_rule_type={},
        seconds=took,
        ranks=ranks,
    )


def temporal_ranking_frames(
    answerer: Answerer,
    model: ListModel | None,
    candidates: int,
    dataset: TemporalDataset,
    facts: Directed,
    protocol: EvaluationProtocol,
    top_k: int,
    progress: Progress | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the `top_k` best candidates of both questions of every fact of a split, many facts at a time.

    `progress` is called with the number of facts ranked.
    """
    split, words = dataset.split(protocol.split), dataset.vocabulary
    for start in range(0, max(len(split), 1), TRIPLES_AT_A_TIME):
        rows = slice(start, start + TRIPLES_AT_A_TIME)
        questions, positions = split_questions(dataset, facts, protocol, rows)
        most_answers = int(np.diff(questions.answer_offsets).max())
        n_kept = max(top_k + most_answers - 1, candidates if model else 0)
        parts = list(ranked_parts(answerer, questions, model, n_kept))
        better, equal, sizes, best, scores = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("better", "equal", "sizes", "kept", "scores")
        )
        best, scores = best.reshape(-1, n_kept), scores.reshape(-1, n_kept)
        used = np.arange(n_kept) < sizes[:, None]
        order = np.argsort(np.where(used, -scores, np.inf), axis=1, kind="stable")
        best, scores = np.take_along_axis(best, order, axis=1), np.take_along_axis(scores, order, axis=1)
        lists = cut_lists(
            questions.answer_offsets, questions.answers, np.where(used, best, -1), scores, positions, top_k,
            words.entities, leaves_out_others=protocol.filter != "raw",
        )  # fmt: skip
        labels = words.decode_triples(split.triples[rows])
        moments = [dataset.clock.label(int(step)) for step in split.times[rows]]
        labels = labels.with_columns(time=pl.Series(moments, dtype=pl.String))
        direction = pl.Series(["object"] * len(labels) + ["subject"] * len(labels))
        ranks = Ranks(better + 1, better + equal + 1).at(positions).of(protocol.ties)
        frame = pl.concat([labels, labels]).with_columns(direction=direction, rank=pl.Series(ranks), **lists)
        yield frame.select(RANKING_SCHEMA.names())
        if progress:
            progress(len(labels))
