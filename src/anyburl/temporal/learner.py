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
from anyburl.temporal.answering import Asked, fit_weights, make_questions
from anyburl.temporal.arrays import N_CELLS, QuestionArrays
from anyburl.temporal.counting import (
    Workers,
    count_constant_rules,
    count_history,
    count_hop_rules,
    no_constants,
    no_hops,
    share_credits,
    smooth,
)
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.history import Directed, index_cases, index_cells, index_history
from anyburl.temporal.kernel_answer import N_COMPONENTS, N_CONTEXTS
from anyburl.temporal.model import ListModel, fit_model
from anyburl.temporal.options import TemporalOptions
from anyburl.temporal.rules import PairRules, TemporalRules, curve_of
from anyburl.temporal.vectors import entity_vectors

ASKED_PRIORS = (20.0, 60.0)
ALONE_PRIORS = (20.0, 150.0)
SHARED_PRIORS = (2.0, 10.0)
ROUNDS_AGAIN = 2  # where credit is shared again, from what was found with fewer facts
HELD_OUT = 0.1  # of train, where there is no valid split
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
        if not len(self.dataset.train):
            raise DataError(f"{self.dataset.name} has no facts in its train split")

    def learn(self, say: Say = lambda doing: None) -> TemporalRules:
        """Return all rules; `say` is called with what is being done."""
        started = time.perf_counter()
        words, data = self.dataset.vocabulary, self.dataset
        say("sorting facts by time")
        parts = [split for split in (data.train, data.valid) if len(split)]
        facts = Directed(parts, words.n_entities, words.n_relations)
        history, cells = index_history(facts), index_cells()
        workers = Workers(history, self.threads)
        first = self._first_held_out(facts)
        rules = self._count(facts, workers, cells, first, say)
        rules_done = time.perf_counter()
        questions = later_questions(facts, first, still=self.options.fit_for == "multi")
        asked = Asked(history, cells, rules.tables(), rules.weights, self.threads)
        say("weighing the forms of rules")
        contexts, components = asked.components(questions)
        per_answer = np.diff(questions.answer_offsets)
        weights = fit_weights(
            np.repeat(questions.relations, per_answer), np.repeat(contexts, per_answer), components, history.n_relations
        )
        rules = rules.with_parts(weights=weights)
        weighed = time.perf_counter()
        model = None
        if self.options.model != "none":
            say("fitting the model")
            model = self._fit_model(Asked(history, cells, rules.tables(), weights, self.threads), questions)
        fitted = time.perf_counter()
        if self.options.recount:
            say("counting again with the facts held out")
            again = self._count(facts, workers, cells, None, say, rules)
            rules = again.with_parts(weights=weights)
        self.seconds = {
            "rules": round(weighed - started + time.perf_counter() - fitted, 3),
            "first_count": round(rules_done - started, 3),
            "model": round(fitted - weighed, 3),
        }
        about = {"facts": len(facts) // 2, "held_out_from": first, "seconds": self.seconds}
        return rules.with_parts(model=model, about=about)

    def _first_held_out(self, facts: Directed) -> int:
        """Return the first step of valid, or of the last tenth of train."""
        if len(self.dataset.valid):
            return int(self.dataset.valid.times.min())
        times = np.unique(facts.times)
        row = min(int(len(facts) * (1 - HELD_OUT)), len(facts) - 1)
        return int(max(facts.times[row], times[min(1, len(times) - 1)]))

    def _count(
        self,
        facts: Directed,
        workers: Workers,
        cells: Any,
        end: int | None,
        say: Say,
        before: TemporalRules | None = None,
    ) -> TemporalRules:
        """Count the rules of the facts before `end`, from what was found `before` with fewer facts."""
        history, options, words = workers.history, self.options, self.dataset.vocabulary
        cases = index_cases(facts, None, end)
        last = int(facts.times[-1]) + 1 if end is None else end
        say("counting what pairs did before")
        counts = count_history(history, cells, cases, last, workers)
        heads, bodies = np.nonzero(counts.slots >= 0)
        right = counts.true_cases.astype(np.float32)
        asked = smooth(counts.slots, right, counts.all_cases.astype(np.float32), cases, workers, *ASKED_PRIORS)
        steps = counts.steps[bodies].astype(np.float32).ravel()
        alone = smooth(counts.slots, right, steps, cases, workers, *ALONE_PRIORS)
        say("sharing the credit among rules")
        values, favour, rounds = asked, None, options.rounds
        if before is not None:
            values, favour, rounds = _earlier(before, heads, bodies, asked), before.favour, min(ROUNDS_AGAIN, rounds)
        values, favour = share_credits(
            history, cells, cases, counts.slots, values, workers, rounds, SHARED_PRIORS, favour
        )
        constants = no_constants(history.n_relations)
        if options.constants:
            say("counting rules with constants")
            constants = count_constant_rules(history, cases, options, workers)
        hops = no_hops(history.n_relations)
        if options.hops:
            say("counting rules of two hops")
            hops = count_hop_rules(history, cases, options, workers)
        table = (len(heads), N_CELLS)
        all_cases = counts.all_cases.reshape(table)
        pairs = PairRules(
            heads.astype(np.int32),
            bodies.astype(np.int32),
            counts.true_cases.reshape(table),
            all_cases,
            values.reshape(table),
            alone.reshape(table),
            curve_of(asked.reshape(table), all_cases),
        )
        weights = np.zeros((history.n_relations, N_CONTEXTS, N_COMPONENTS))
        weights[:, :, 0] = 1
        return TemporalRules(
            words,
            self.dataset.clock,
            options,
            pairs,
            favour,
            constants[0],
            constants[1],
            hops[0],
            hops[1],
            weights,
            entity_vectors(history, last),
        )

    def _fit_model(self, asked: Asked, questions: QuestionArrays) -> ListModel | None:
        """Fit the model on the candidates of held-out questions."""
        n = len(questions.entities)
        if n > MOST_LISTS:  # those spread evenly over all relations and times
            questions = take_questions(questions, np.unique(np.linspace(0, n - 1, MOST_LISTS).astype(np.int64)))
        rows, labels, sizes = [], [], []
        for part in asked.answer(questions, self.options.candidates, with_features=True):
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
        )


def _earlier(before: TemporalRules, heads: Any, bodies: Any, asked: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the values that rules had before, and `asked` for new ones."""
    slots = before.slots[heads, bodies]
    table = asked.reshape(len(heads), N_CELLS).copy()
    table[slots >= 0] = before.pairs.values[slots[slots >= 0]]
    return table.ravel()


def later_questions(facts: Directed, first: int, *, still: bool = False) -> QuestionArrays:
    """Return the questions that the facts from `first` on answer; the answers of one question exclude each other.

    If `still`, the clock stands still at `first` for all of them, as in multi-step forecasts.
    """
    part = facts.between(first, None)
    columns = (column[part] for column in (facts.entities, facts.relations, facts.times, facts.answers))
    questions, _ = make_questions(*columns, still=first if still else None)
    return questions._replace(excluded_offsets=questions.answer_offsets, excluded=questions.answers)


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
    made = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(made[-1]) - np.repeat(made[:-1], sizes) + np.repeat(offsets[rows], sizes)
    return values[places], made


def is_answer(questions: QuestionArrays, rows: NDArray[np.int64], candidates: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each candidate answers the question of its row."""
    sizes = np.diff(questions.answer_offsets)
    width = np.int64(max(int(questions.answers.max(initial=0)), int(candidates.max(initial=0))) + 1)
    keys = np.repeat(np.arange(len(sizes)), sizes) * width + questions.answers
    return np.isin(rows * width + candidates, keys)


def learn_temporal(data: Any, options: TemporalOptions | None = None, **keywords: Any) -> TemporalRules:
    """Learn temporal rules from data with time; the keywords are the fields of `TemporalOptions`."""
    return TemporalLearner(data, options, **keywords).learn()
