"""`TemporalLearner` and `learn_temporal`: count the rules of a history, fit how they are mixed, and a model on top."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.checking import choose_options
from anyburl.base.errors import DataError
from anyburl.base.machine import available_cores
from anyburl.graph.build import range_rows
from anyburl.learning.options import TemporalOptions
from anyburl.temporal.answering import Answerer, Directed, fit_weights, make_questions
from anyburl.temporal.counting import Counted, RuleCounter, curves_of, no_constants, no_hops
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.kernel_bodies import N_CELLS, QuestionArrays
from anyburl.temporal.kernel_candidates import N_COMPONENTS, N_CONTEXTS
from anyburl.temporal.model import ListModel, entity_vectors, fit_model
from anyburl.temporal.rules import PairRules, TemporalRules

QUESTION_PRIORS = (20.0, 60.0)
ALONE_PRIORS = (20.0, 150.0)
SHARED_PRIORS = (2.0, 10.0)
ROUNDS_AGAIN = 1  # where credit is shared again, from what was found with fewer facts
HELD_OUT = 0.1  # of train, where there is no valid split
MOST_WEIGHED = (
    100_000  # questions, for a few weights of each relation; on large histories, more took a third of all time
)
MOST_LISTS = 20_000  # that a model is fitted on

Say = Callable[[str], None]


class TemporalLearner:
    """Learns the rules of a data set with time.

    Rules are counted on train; how their forms are mixed, and the model, are fitted on valid, with everything before
    each question. Then, unless `recount` is off, rules are counted again on both. Without a valid split, the last tenth
    of train takes its place. The test split is never looked at.
    """

    def __init__(self, data: Any, options: TemporalOptions | None = None, **keywords: Any) -> None:
        self.options = choose_options(TemporalOptions, options, keywords)
        self.dataset: TemporalDataset = data if isinstance(data, TemporalDataset) else load_temporal_dataset(data)
        self.threads = self.options.threads or available_cores()
        self.seconds: dict[str, float] = {}
        self.stopped_by = "complete"
        if not len(self.dataset.train):
            raise DataError(f"{self.dataset.name} has no facts in its train split")

    def learn(self, say: Say = lambda doing: None, is_stopped: Callable[[], bool] = lambda: False) -> TemporalRules:
        """Return all rules; `say` is called with what is being done.

        Where `is_stopped` becomes true, or the budget of seconds ends, what was finished by then is returned: pair
        rules always, then shared credit, constants, hops, how they are mixed, and the model.
        """
        started, options = time.perf_counter(), self.options
        budget = float("inf") if options.seconds is None else options.seconds
        self.stopped_by = "complete"

        def stopped() -> bool:
            if is_stopped():
                self.stopped_by = "interrupt"
            elif time.perf_counter() - started > budget:
                self.stopped_by = "seconds"
            return self.stopped_by != "complete"

        words, data = self.dataset.vocabulary, self.dataset
        say("sorting facts by time")
        facts = Directed(
            [split for split in (data.train, data.valid) if len(split)], words.n_entities, words.n_relations
        )
        first = self._first_held_out(facts)
        say("counting what pairs did before")
        counter = RuleCounter(facts, first, self.threads, stopped)
        tried, final = self._count(counter, say)
        del counter.moments  # the largest part of the index, and all rules are counted
        if not options.recount:
            final = tried
        counted = time.perf_counter()
        weights, model = None, None
        if not stopped():
            say("weighing the forms of rules")
            questions = later_questions(facts, first, still=options.fit_for == "multi")
            weights = self._weigh(counter, tried, questions)
        weighed = time.perf_counter()
        if options.model != "none" and weights is not None and not stopped():
            say("fitting the model")
            tried = tried.with_parts(weights=weights, vectors=entity_vectors(counter.history, first))
            answerer = Answerer(counter.history, counter.cells, tried.tables(), weights, self.threads)
            model = self._fit_model(answerer, questions, stopped)
            if model is not None:
                vectors = entity_vectors(counter.history, counter.end) if options.recount else tried.vectors
                final = final.with_parts(vectors=vectors, model=model)
        if weights is not None:
            final = final.with_parts(weights=weights)
        done = time.perf_counter()
        self.seconds = {
            "rules": round(weighed - started, 3),
            "count": round(counted - started, 3),
            "model": round(done - weighed, 3),
        }
        about = {
            "facts": len(facts) // 2,
            "held_out_from": first,
            "seconds": self.seconds,
            "stopped_by": self.stopped_by,
        }
        return final.with_parts(about=about)

    def _first_held_out(self, facts: Directed) -> int:
        """Return the first step of valid, or of the last tenth of train."""
        if len(self.dataset.valid):
            return int(self.dataset.valid.times.min())
        times = np.unique(facts.times)
        row = min(int(len(facts) * (1 - HELD_OUT)), len(facts) - 1)
        return int(max(facts.times[row], times[min(1, len(times) - 1)]))

    def _count(self, counter: RuleCounter, say: Say) -> tuple[TemporalRules, TemporalRules]:
        """Count the rules of the facts before those held out, and of all facts."""
        options, n = self.options, counter.history.n_relations
        pairs, popularity = counter.pairs(), counter.popularity()
        constants, hops = [no_constants(n)] * 2, [no_hops(n)] * 2
        say("sharing the credit among rules")
        credits: list[tuple[PairRules, NDArray[np.float64]]] = []
        for counted, end in zip(pairs, (counter.cut, counter.end), strict=True):
            if credits and not options.recount:
                credits *= 2
                break
            credits.append(self._share_credits(counter, counted, end, popularity, credits[0] if credits else None))
        if options.constants and not counter.is_stopped():
            say("counting rules with constants")
            constants = counter.constants(options)
        if options.hops and not counter.is_stopped():
            say("counting rules of two hops")
            hops = counter.hops(options)
        weights = np.zeros((n, N_CONTEXTS, N_COMPONENTS))
        weights[:, :, 0] = 1
        vectors = np.zeros((counter.history.n_entities, 0), np.float32)
        tried, final = (
            TemporalRules(
                self.dataset.vocabulary,
                self.dataset.clock,
                options,
                *credits[i],
                *constants[i],
                *hops[i],
                weights,
                vectors,
            )
            for i in range(2)
        )
        return tried, final

    def _share_credits(
        self,
        counter: RuleCounter,
        counted: Counted,
        end: int,
        popularity: NDArray[np.float32],
        before: tuple[PairRules, NDArray[np.float64]] | None,
    ) -> tuple[PairRules, NDArray[np.float64]]:
        """Return pair rules and the intensities of popularity, from what was found `before` with fewer facts."""
        heads, bodies = np.nonzero(counted.slots >= 0)
        right, every = counted.right.astype(np.float32), counted.every.astype(np.float32)
        smoothed = counter.smooth(counted.slots, right, every, QUESTION_PRIORS, counted.silent)
        steps = counter.steps(end)[bodies].astype(np.float32).ravel()
        alone = counter.smooth(counted.slots, right, steps, ALONE_PRIORS)
        values, favour, rounds = smoothed, None, self.options.rounds
        if before is not None:
            favour, rounds = before[1], min(ROUNDS_AGAIN, rounds)
            values = smoothed.copy()
            values.reshape(-1, N_CELLS)[counted.slots[before[0].heads, before[0].bodies]] = before[0].values
        values, favour = counter.share_credits(end, counted.slots, values, favour, popularity, rounds, SHARED_PRIORS)
        table = (len(heads), N_CELLS)
        rules = PairRules(
            heads.astype(np.int32),
            bodies.astype(np.int32),
            counted.right.reshape(table),
            counted.every.reshape(table),
            values.reshape(table),
            alone.reshape(table),
            curves_of(smoothed, counted.every),
        )
        return rules, favour

    def _weigh(self, counter: RuleCounter, rules: TemporalRules, questions: QuestionArrays) -> NDArray[np.float64]:
        """Return how the forms of rules are mixed, fitted on held-out questions."""
        answerer = Answerer(counter.history, counter.cells, rules.tables(), rules.weights, self.threads)
        questions = spread_evenly(questions, MOST_WEIGHED)
        contexts, components = answerer.components(questions)
        per_answer = np.diff(questions.answer_offsets)
        return fit_weights(
            np.repeat(questions.relations, per_answer),
            np.repeat(contexts, per_answer),
            components,
            counter.history.n_relations,
        )

    def _fit_model(
        self, answerer: Answerer, questions: QuestionArrays, is_stopped: Callable[[], bool]
    ) -> ListModel | None:
        """Fit the model on the candidates of held-out questions."""
        questions = spread_evenly(questions, MOST_LISTS)
        rows, labels, sizes = [], [], []
        for part in answerer.answer(questions, self.options.candidates, with_features=True):
            used = part.rows()
            question = part.start + used // part.n_kept
            rows.append(part.features[used])
            labels.append(is_answer(questions, question, part.kept[used]))
            sizes.append(part.sizes)
        right = np.concatenate(labels)
        if not right.any():
            return None
        return fit_model(
            self.options.model,
            np.concatenate(rows),
            right,
            np.concatenate(sizes),
            self.options.seed,
            self.threads,
            is_stopped,
        )


def later_questions(facts: Directed, first: int, *, still: bool = False) -> QuestionArrays:
    """Return the questions that the facts from `first` on answer; the answers of one question exclude each other.

    If `still`, the clock stands still at `first` for all of them, as in multi-step forecasts.
    """
    part = facts.between(first, None)
    columns = (column[part] for column in (facts.entities, facts.relations, facts.times, facts.answers))
    questions, _ = make_questions(*columns, still=first if still else None)
    return questions._replace(excluded_offsets=questions.answer_offsets, excluded=questions.answers)


def spread_evenly(questions: QuestionArrays, most: int) -> QuestionArrays:
    """Return at most so many of the questions, spread evenly over all relations and times."""
    n = len(questions.entities)
    if n <= most:
        return questions
    return take_questions(questions, np.unique(np.linspace(0, n - 1, most).astype(np.int64)))


def take_questions(questions: QuestionArrays, rows: NDArray[np.int64]) -> QuestionArrays:
    """Return some of the questions."""
    answers, answer_offsets = _take(questions.answer_offsets, questions.answers, rows)
    excluded, excluded_offsets = _take(questions.excluded_offsets, questions.excluded, rows)
    return QuestionArrays(
        questions.entities[rows],
        questions.relations[rows],
        questions.before[rows],
        questions.now[rows],
        answer_offsets,
        answers,
        excluded_offsets,
        excluded,
    )


def _take(
    offsets: NDArray[np.int64], values: NDArray[np.int32], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    sizes = offsets[rows + 1] - offsets[rows]
    return values[range_rows(offsets[rows], sizes)], np.append(0, np.cumsum(sizes))


def is_answer(questions: QuestionArrays, rows: NDArray[np.int64], candidates: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each candidate answers the question of its row."""
    sizes = np.diff(questions.answer_offsets)
    width = np.int64(max(int(questions.answers.max(initial=0)), int(candidates.max(initial=0))) + 1)
    keys = np.repeat(np.arange(len(sizes)), sizes) * width + questions.answers
    return np.isin(rows * width + candidates, keys)


def learn_temporal(data: Any, options: TemporalOptions | None = None, **keywords: Any) -> TemporalRules:
    """Learn temporal rules from data with time; the keywords are the fields of `TemporalOptions`."""
    return TemporalLearner(data, options, **keywords).learn()
