"""`TemporalReasoner`: temporal rules and a history, ready for questions with a moment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import MOST_KEPT, choice, flag, threads, whole
from anyburl.base.errors import AnyburlError, DataError, OptionError
from anyburl.base.machine import available_cores
from anyburl.learning.options import TEMPORAL_AGGREGATIONS
from anyburl.reasoning.evaluation import write_ranking_frames
from anyburl.temporal.answering import Answerer, Directed, index_cells, index_history, make_questions
from anyburl.temporal.evaluation import (
    RANKING_SCHEMA,
    EvaluationProtocol,
    Negatives,
    Progress,
    TemporalMetrics,
    evaluate_temporal,
    known_at_moments,
    ranked_parts,
    temporal_ranking_frames,
)
from anyburl.temporal.explanation import DatedFact, TemporalExplanation, explain_fact
from anyburl.temporal.facts import TemporalDataset, TemporalFacts, load_temporal_dataset
from anyburl.temporal.kernel_bodies import QuestionArrays
from anyburl.temporal.kernel_candidates import MAX, MIXTURE, NOISY_OR
from anyburl.temporal.learner import TemporalLearner
from anyburl.temporal.model import ListModel
from anyburl.temporal.rules import TemporalRules
from anyburl.temporal.run import (
    TemporalCalibration,
    TemporalCalibrationReport,
    calibrate_temporal,
    open_temporal_run,
    save_temporal_run,
)

MODES = dict(zip(TEMPORAL_AGGREGATIONS, (MIXTURE, MIXTURE, MAX, NOISY_OR), strict=True))
"""How kernels add up the rules of each aggregation."""
N_FACTS = 10_000  # the default of `complete(top=...)`

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class TemporalAnswer:
    """One answer: an entity, its score, its chance if that is known, and the fact."""

    entity: str
    score: float
    rank: int
    fact: tuple[str, str, str, str]
    known: bool
    probability: float | None = None

    def __str__(self) -> str:
        chance = "" if self.probability is None else f", {self.probability:.0%} likely"
        return f"{self.rank}. {self.entity} ({self.score:.3f}{chance})"


class TemporalReasoner:
    """Applies temporal rules to a history: predicts, ranks, evaluates, explains, completes, calibrates.

    `data` is anything that `load_temporal_dataset` takes; all its facts are the history, of which a question at a
    moment sees what came before. `aggregation` is "model" (the default where rules have one), "sum", "max" or
    "noisy-or". After the end of the history, the clock stands still.
    """

    def __init__(
        self, rules: TemporalRules, data: Any, *, aggregation: str | None = None, threads_used: int | None = None
    ) -> None:
        if not isinstance(rules, TemporalRules):
            raise OptionError(f"expected rules as TemporalRules, got {type(rules).__name__}")
        self.dataset: TemporalDataset = data if isinstance(data, TemporalDataset) else load_temporal_dataset(data)
        words = self.dataset.vocabulary
        if not words.same_labels(rules.vocabulary):
            raise DataError(
                "the rules were learned on data with other labels: learn again, or pass the data of the run"
            )
        self.rules = rules
        chosen = aggregation if aggregation is not None else ("sum" if rules.model is None else "model")
        self.aggregation = choice("aggregation", chosen, TEMPORAL_AGGREGATIONS)
        if chosen == "model" and rules.model is None:
            raise OptionError('aggregation="model" needs a model: learn with model="logit" or "forest"')
        self.threads = threads(threads_used) or available_cores()
        self.calibration: TemporalCalibration | None = None
        self.run: Path | None = None
        self.accepted, self.rejected = TemporalFacts.none(), TemporalFacts.none()
        if not len(self.facts):
            raise DataError(f"{self.dataset.name} has no facts")

    @classmethod
    def open(
        cls, run: PathLike, data: Any = None, *, aggregation: str | None = None, threads_used: int | None = None
    ) -> Self:
        """Open a run folder with temporal rules, on its own data unless other data is passed."""
        opened = open_temporal_run(Path(run), data)
        made = cls(opened.rules, opened.dataset, aggregation=aggregation, threads_used=threads_used)
        made.calibration, made.run = opened.calibration, Path(run)
        return made

    def save(self, run: PathLike) -> None:
        """Write rules, model and calibration into a run folder, which says that it is temporal."""
        save_temporal_run(Path(run), self.rules, self.dataset, self.calibration)
        self.run = Path(run)

    @cached_property
    def facts(self) -> Directed:
        """All facts of the history, those that people accepted included, in both directions."""
        words, splits = self.dataset.vocabulary, (self.dataset.train, self.dataset.valid, self.dataset.test)
        parts = [split for split in (*splits, self.accepted) if len(split)]
        return Directed(parts, words.n_entities, words.n_relations)

    def apply_verdicts(self, accepted: Sequence[DatedFact], rejected: Sequence[DatedFact]) -> None:
        """Treat facts that people found true as stated at their moments, and propose none that they found wrong there.

        Facts with labels or moments that are not those of the data are left out. What was applied before is replaced.
        """
        self.accepted, self.rejected = (self._judged(facts) for facts in (accepted, rejected))
        for name in ("facts", "answerer", "last"):
            self.__dict__.pop(name, None)

    def _judged(self, facts: Sequence[DatedFact]) -> TemporalFacts:
        """Return facts that people judged, by id."""
        words, clock, rows = self.dataset.vocabulary, self.dataset.clock, []
        for subject, relation, object, moment in facts:
            with suppress(AnyburlError):
                ids = words.entity_id(subject), words.relation_id(relation), words.entity_id(object)
                rows.append((*ids, clock.step(moment)))
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        return TemporalFacts.of([column.astype(np.int32) for column in columns[:3]], columns[3])

    @cached_property
    def answerer(self) -> Answerer:
        """The history with its index, and the rules as kernels read them."""
        history, cells = index_history(self.facts), index_cells()
        mode = MODES[self.aggregation]
        return Answerer(history, cells, self.rules.tables(), self.rules.weights, self.threads, mode)

    @property
    def model(self) -> ListModel | None:
        """The model that orders candidates, if it is in use."""
        return cast("ListModel | None", self.rules.model) if self.aggregation == "model" else None

    @cached_property
    def last(self) -> int:
        """The last step of the history."""
        return int(self.facts.times[-1])

    def step_of(self, at: str | int) -> int:
        """Return the step of a moment; refuse one that no fact comes before."""
        step = whole("at", at, -(2**62)) if isinstance(at, int) else self.dataset.clock.step(at)
        first = int(self.facts.times[0])
        if step <= first:
            label = self.dataset.clock.label
            raise DataError(f"nothing is known before {label(step)}: the first facts are of {label(first)}")
        return step

    def question(self, subject: str | None, relation: str, object: str | None, at: str | int) -> QuestionArrays:
        """Return one question as kernels read it; either the subject or the object is None."""
        if (subject is None) == (object is None):
            raise OptionError("expected either a subject or an object, and None for the other")
        words, names = self.dataset.vocabulary, self.dataset.names
        entity = names.entity_id(cast(str, subject if subject is not None else object), words)
        directed = names.relation_id(relation, words) + (0 if subject is not None else words.n_relations)
        step = self.step_of(at)
        one = np.array([entity]), np.array([directed]), np.array([step])
        questions, _ = make_questions(*one, np.array([0]), still=self.last + 1)
        offsets, known = known_at_moments(self.facts, *one, static=False)
        nothing = np.zeros(2, np.int64)
        return questions._replace(
            answer_offsets=nothing, answers=np.empty(0, np.int32), excluded_offsets=offsets, excluded=known
        )

    def predict(
        self,
        subject: str | None,
        relation: str,
        object: str | None,
        at: str | int,
        *,
        top: int = 10,
        include_known: bool = False,
    ) -> list[TemporalAnswer]:
        """Return the `top` best answers to (subject, relation, ?, at) or (?, relation, object, at).

        `at` is a moment as the clock of the data writes it, or a step of that clock. Answers that are stated for just
        that moment are left out unless `include_known` is true.
        """
        top, include_known = whole("top", top, 1), flag("include_known", include_known)
        question = self.question(subject, relation, object, at)
        known = {int(entity) for entity in question.excluded}
        if include_known:
            question = question._replace(excluded_offsets=np.zeros(2, np.int64), excluded=np.empty(0, np.int32))
        n_kept = max(top, self.rules.options.candidates)
        (part,) = ranked_parts(self.answerer, question, self.model, n_kept)
        size = int(part.sizes[0])
        order = np.argsort(-part.scores[:size], kind="stable")[:top]
        chances = self._chances(part.scores[:size], question)
        words, label = self.dataset.vocabulary, self.dataset.clock.label(self.step_of(at))
        answers = []
        for rank, position in enumerate(order, 1):
            entity = int(part.kept[position])
            name = words.entity_label(entity)
            fact = (name, relation, object, label) if subject is None else (subject, relation, name, label)
            chance = None if chances is None else float(chances[position])
            score = float(part.scores[position])
            answers.append(TemporalAnswer(name, score, rank, cast(Any, fact), entity in known, chance))
        return answers

    def _chances(self, scores: NDArray[np.float64], question: QuestionArrays) -> NDArray[np.float64] | None:
        """Return the probability of each candidate of one question, if that is known."""
        if self.calibration is None or self.calibration.aggregation != self.aggregation:
            return None
        return self.calibration.probabilities(scores, np.array([len(scores)]))

    def evaluate(
        self,
        split: str = "test",
        *,
        steps: str = "single",
        filter: str = "time",
        ties: str = "realistic",
        negatives: PathLike | None = None,
        progress: Progress | None = None,
    ) -> TemporalMetrics:
        """Rank both questions of every fact of a split and return the metrics, with their protocol.

        `steps` is "single" (a question sees every fact before its moment) or "multi" (none after the split begins);
        `filter` says which other answers do not count: those of the same moment ("time"), of any ("static"), or none
        ("raw"). `negatives` is a file with a line for each question, and its answers are ranked against what stands
        there: subject, relation, object and time, one of the entities ?, then the negatives, separated by tabs.
        `progress` is called with the number of questions answered.
        """
        given = None if negatives is None else Negatives.read(Path(negatives), self.dataset)
        return evaluate_temporal(
            self.answerer,
            self.model,
            self.rules.options.candidates,
            self.dataset,
            self.facts,
            EvaluationProtocol(split, steps, filter, ties, given),
            self.aggregation,
            len(self.rules),
            progress,
        )

    def rank(
        self,
        split: str = "test",
        *,
        steps: str = "single",
        filter: str = "time",
        ties: str = "realistic",
        top_k: int = 10,
    ) -> pl.DataFrame:
        """Return the `top_k` best candidates of both questions of every fact of a split, and the rank of its answer."""
        return pl.concat(list(self._rankings(EvaluationProtocol(split, steps, filter, ties), top_k)))

    def save_rankings(
        self,
        path: PathLike,
        split: str = "test",
        *,
        steps: str = "single",
        filter: str = "time",
        ties: str = "realistic",
        top_k: int = 100,
        progress: Progress | None = None,
    ) -> None:
        """Write what `rank` returns: as Parquet with the suffix .parquet, else as AnyBURL's text with the moment after
        the triple, also with .gz.

        `progress` is called with the number of facts ranked.
        """
        write_ranking_frames(
            path, RANKING_SCHEMA, self._rankings(EvaluationProtocol(split, steps, filter, ties), top_k, progress)
        )

    def _rankings(
        self, protocol: EvaluationProtocol, top_k: int, progress: Progress | None = None
    ) -> Iterator[pl.DataFrame]:
        """Return what `rank` returns in frames, in bounded memory."""
        return temporal_ranking_frames(
            self.answerer,
            self.model,
            self.rules.options.candidates,
            self.dataset,
            self.facts,
            protocol,
            whole("top_k", top_k, 1, MOST_KEPT),
            progress,
        )

    def explain(
        self, subject: str, relation: str, object: str, at: str | int, *, asks: str = "object", top: int = 5
    ) -> TemporalExplanation:
        """Return the rules that speak for a fact at a moment, with the facts and dates behind them.

        The fact is looked at as an answer to (subject, relation, ?, at) or, with `asks="subject"`, to (?, relation,
        object, at). If no rule speaks for it, the explanation says what is missing.
        """
        choice("asks", asks, ("object", "subject"))
        words, names = self.dataset.vocabulary, self.dataset.names
        given = (subject, None) if asks == "object" else (None, object)
        question = self.question(given[0], relation, given[1], at)
        answer = names.entity_id(object if asks == "object" else subject, words)
        return explain_fact(
            self.answerer,
            self.model,
            self.rules,
            self.dataset,
            question,
            answer,
            self.step_of(at),
            whole("top", top, 1),
        )

    def complete(
        self,
        at: str | int,
        *,
        min_probability: float = 0.5,
        relations: tuple[str, ...] | None = None,
        top: int = N_FACTS,
        progress: Progress | None = None,
    ) -> pl.DataFrame:
        """Return facts that are likely at a moment and that no split states for it, the most likely first.

        Every entity that had a relation before is asked for it. A fact's `probability` is the chance of its best pair
        rule in one step of the clock. What people accepted or rejected for that moment is left out.
        """
        words, names = self.dataset.vocabulary, self.dataset.names
        step, n = self.step_of(at), words.n_relations
        before = self.facts.between(None, step)
        keys = np.unique(self.facts.entities[before] * self.facts.n_relations + self.facts.relations[before])
        entities, directed = keys // self.facts.n_relations, keys % self.facts.n_relations
        chosen = directed < n
        if relations is not None:
            chosen &= np.isin(directed, [names.relation_id(label, words) for label in relations])
        entities, directed = entities[chosen], directed[chosen]
        if not len(entities):
            nothing = np.empty(0, np.int64)
            return _completed(words, self.dataset.clock.label(step), nothing, nothing, nothing, [])
        moments = np.full(len(entities), step)
        questions, _ = make_questions(
            entities, directed, moments, np.zeros(len(entities), np.int64), still=self.last + 1
        )
        order = np.lexsort((entities, directed))
        offsets, known = known_at_moments(self.facts, entities[order], directed[order], moments, static=False)
        unanswered = np.zeros(len(entities) + 1, np.int64)
        questions = questions._replace(
            answer_offsets=unanswered, answers=np.empty(0, np.int32), excluded_offsets=offsets, excluded=known
        )
        answerer = Answerer(
            self.answerer.history, self.answerer.cells, self.answerer.tables, self.rules.weights, self.threads, MAX
        )
        facts: list[tuple[Any, ...]] = []
        for part in answerer.answer(questions, min(self.rules.options.candidates, 20), progress=progress):
            used = part.rows()
            used = used[part.scores[used] >= min_probability]
            rows = used // part.n_kept + part.start
            facts.append((questions.entities[rows], questions.relations[rows], part.kept[used], part.scores[used]))
        subjects, linked, objects, chances = (np.concatenate(column) for column in zip(*facts, strict=True))
        judged = self.rejected.between(step, step + 1).triples
        new = ~_are_among(np.stack([subjects, linked, objects], axis=1), judged)
        subjects, linked, objects, chances = subjects[new], linked[new], objects[new], chances[new]
        best = np.argsort(-chances, kind="stable")[: whole("top", top, 1)]
        label = self.dataset.clock.label(step)
        return _completed(words, label, subjects[best], linked[best], objects[best], chances[best])

    def calibrate(self, say: Any = lambda doing: None) -> TemporalCalibrationReport:
        """Find out how likely answers with a score are, on facts that neither rules nor model have seen.

        Rules and model are learned again without the last part of valid, which then tells. From then on, answers have a
        `probability`: that the fact is true, given that the question has an answer at its moment. If the reasoner was
        opened from a run folder, the calibration is kept there.
        """
        report = calibrate_temporal(self.dataset, self.aggregation, _reasoner_for(self), say)
        self.calibration = report.calibration
        if self.run is not None:
            save_temporal_run(self.run, self.rules, self.dataset, self.calibration)
        return report

    def __repr__(self) -> str:
        return f"TemporalReasoner({len(self.rules):,} rules on {self.dataset.name}, {self.aggregation})"


def _reasoner_for(model: TemporalReasoner) -> Any:
    """Return a function that learns from a data set and makes a reasoner like this one."""

    def make(dataset: TemporalDataset) -> TemporalReasoner:
        rules = TemporalLearner(dataset, model.rules.options).learn()
        usable = model.aggregation if rules.model is not None or model.aggregation != "model" else "sum"
        return TemporalReasoner(rules, dataset, aggregation=usable, threads_used=model.threads)

    return make


def _are_among(triples: NDArray[np.integer], others: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which triples are among some others."""
    listed = {tuple(row) for row in others.tolist()}
    return np.array([tuple(row) in listed for row in triples.tolist()] if listed else np.zeros(len(triples)), np.bool_)


def _completed(words: Any, label: str, subjects: Any, relations: Any, objects: Any, chances: Any) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "subject": words.decode_entities(subjects),
            "relation": words.decode_relations(relations),
            "object": words.decode_entities(objects),
            "time": pl.Series([label] * len(subjects), dtype=pl.String),
            "probability": pl.Series(chances, dtype=pl.Float64),
        }
    )


N_ENTITIES, N_STEPS, N_FACTS = 20, 8, 12  # the history that kernels are compiled on: enough for a forest


def warm_up_temporal() -> None:
    """Compile all kernels of learning, answering, evaluating and explaining, or load them, on a tiny history."""
    facts = [
        (f"e{(step + i) % N_ENTITIES}", f"r{i % 2}", f"e{(step + 2 * i) % N_ENTITIES}", step)
        for step in range(N_STEPS)
        for i in range(N_FACTS)
    ]
    data = load_temporal_dataset(facts, split=(0.5, 0.25, 0.25))
    for model in ("none", "logit", "forest"):
        rules = TemporalLearner(data, model=model, three_hops=2, threads=1).learn()
        reasoner = TemporalReasoner(rules, data, threads_used=1)
        reasoner.evaluate()
    with TemporaryDirectory() as folder:  # arrays from files are read-only, which is another type for the compiler
        reasoner.save(folder)
        reasoner = TemporalReasoner.open(folder, data, threads_used=1)
    reasoner.evaluate(steps="multi", filter="static")
    reasoner.explain("e0", "r0", "e1", N_STEPS)
    reasoner.complete(N_STEPS)
