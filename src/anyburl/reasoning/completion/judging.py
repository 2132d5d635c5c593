"""`Judge`: which facts contradict stated ones, and how likely the others are: the same for proposals and reviews.

`Checker` judges facts from elsewhere: are they stated, supported by rules, contradicted by stated facts, or unknown?
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.names import Names
from anyburl.data.table import find_keys
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import answer_counts, held_by, split_bits
from anyburl.models.calibration import Calibration
from anyburl.models.classifier import FactClassifier
from anyburl.models.tuned.reranker import unseeing
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.conflicts import ITSELF, NOTHING, Conflicts, Properties, fact_keys, find_properties
from anyburl.reasoning.completion.facts import TRIPLES, FactColumns, by_best_rule, reasons_of
from anyburl.reasoning.queries import QueryIds, answer_columns
from anyburl.rules.labels import RuleTexts

VERDICTS = ("stated", "contradicted", "supported", "unknown")
CHECKED = ("subject", "relation", "object")
FACTS_AT_A_TIME = 4096
LISTED = 100  # answers to a question, among which a fact is looked up

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Triples = NDArray[np.int32]


def known_properties(dataset: Dataset) -> Properties:
    """Return the properties of relations that train and valid show; test is not looked at."""
    vocabulary = dataset.vocabulary
    facts = np.concatenate([dataset.train.triples, dataset.valid.triples])
    return find_properties(facts, vocabulary.n_entities, vocabulary.n_relations)


class Verdict(NamedTuple):
    """How likely a fact is, if that is known, and the stated fact that contradicts it, if there is one."""

    probability: float | None
    conflict: tuple[str, str, str] | None


@dataclass(frozen=True)
class Judge:
    """Tells which facts contradict stated ones, and how likely the others are."""

    ranker: Ranker
    dataset: Dataset
    conflicts: Conflicts
    judged: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # sorted keys of facts with a verdict

    @classmethod
    def of(cls, ranker: Ranker, dataset: Dataset, properties: Properties, splits: Iterable[str] = SPLITS) -> Judge:
        """Return what judges proposals, by what some splits state."""
        stated = np.concatenate([dataset.split(split).triples for split in splits])
        return cls(unseeing(ranker), dataset, Conflicts.of(stated, properties, dataset.vocabulary.n_entities))

    def with_verdicts(self, accepted: Triples, rejected: Triples) -> Judge:
        """Return a judge that takes accepted facts as stated, and proposes neither them nor the rejected ones."""
        stated = np.concatenate([self.conflicts.stated, accepted])
        sizes = self.dataset.vocabulary.n_entities, self.dataset.vocabulary.n_relations
        conflicts = Conflicts.of(stated, self.conflicts.properties, sizes[0])
        judged = np.sort(fact_keys(np.concatenate([accepted, rejected]), *sizes))
        return replace(self, conflicts=conflicts, judged=judged)

    def contexts_of(self, facts: FactColumns) -> Ints:
        """Return whether another value stands before each fact (1) or not (0).

        If a relation has one object, that is a value with a higher score; else, one that train states. All facts of a
        question (subject, relation, ?) must be there.
        """
        one_object = self.conflicts.properties.one_object
        subjects, relations, objects = facts.triples.T
        contexts = (answer_counts(self.ranker.graph, subjects, relations) > 0).astype(np.int64)
        rows = np.flatnonzero(one_object[relations])
        questions = subjects[rows].astype(np.int64) * len(one_object) + relations[rows]
        order = np.lexsort((objects[rows], -facts.n_rules[rows], -facts.scores[rows], questions))
        contexts[rows] = 0
        contexts[rows[order[1:]]] = questions[order[1:]] == questions[order[:-1]]
        return contexts

    def likely(self, calibration: Calibration | None, facts: FactColumns) -> Floats:
        """Return the probability of facts, with their contexts; nan where scores are not calibrated."""
        if calibration is None:
            return np.full(len(facts), np.nan)
        by_rule = None if calibration.blend is None else by_best_rule(self.ranker, facts)
        return calibration.probabilities(facts.triples[:, 1], facts.contexts, facts.scores, by_rule)

    def may_be_proposed(self, facts: FactColumns) -> NDArray[np.bool_]:
        """Return which facts, with their contexts, no stated fact contradicts and nobody has judged; of relations with
        one object, only the best value stays.
        """
        sizes = self.dataset.vocabulary.n_entities, self.dataset.vocabulary.n_relations
        is_judged = np.isin(fact_keys(facts.triples, *sizes), self.judged)
        later = self.conflicts.properties.one_object[facts.triples[:, 1]] & (facts.contexts > 0)
        return np.asarray(~later & ~is_judged & (self.conflicts.find(facts.triples) == NOTHING))

    def probabilities(self, calibration: Calibration | None, triples: Triples) -> tuple[Floats, Ints]:
        """Return how likely facts are, and the rows of stated facts that contradict them, see `Conflicts.find`.

        A probability is nan where there is no calibration, no rule predicts the fact, or a stated one contradicts it.
        """
        conflicts = self.conflicts.find(triples)
        if calibration is None:
            return np.full(len(triples), np.nan), conflicts
        facts, _ = self.look_up(triples)
        likely = self.likely(calibration, facts)
        return np.where((conflicts == NOTHING) & (facts.scores > 0), likely, np.nan), conflicts

    def verdicts(self, calibration: Calibration | None, triples: Triples) -> list[Verdict]:
        """Return the verdict on each fact."""
        likely, rows = self.probabilities(calibration, triples)
        return [
            Verdict(None if np.isnan(probability) else float(probability), conflict)
            for probability, conflict in zip(likely, self.stated_facts(triples, rows), strict=True)
        ]

    def stated_facts(self, triples: Triples, rows: Ints) -> list[tuple[str, str, str] | None]:
        """Return the labels of the stated facts at rows that `Conflicts.find` gave for triples; None where none is."""
        labels = self.dataset.vocabulary
        return [
            None if row == NOTHING else labels.triple_labels(*self.conflicts.fact(row, triple))
            for row, triple in zip(rows.tolist(), triples.tolist(), strict=True)
        ]

    def look_up(self, triples: Triples) -> tuple[FactColumns, Ints]:
        """Return each fact as an answer to (subject, relation, ?), and the value that stands before it, -1 if none.

        The score of what no rule predicts is 0, and its rule -1. Where a relation has one object, the best value stands
        before all others.
        """
        n, n_entities, n_relations = len(triples), self.ranker.graph.n_entities, self.ranker.graph.n_relations
        nothing = np.zeros(n, np.int64)
        facts = FactColumns(triples, np.zeros(n), np.full(n, -1, np.int32), np.zeros(n, np.int32), nothing)
        instead, keys = np.full(n, -1, np.int64), fact_keys(triples, n_entities, n_relations)
        questions = keys // n_entities
        distinct = np.unique(questions)
        queries = QueryIds((distinct // n_relations).astype(np.int32), (distinct % n_relations).astype(np.int32))
        one_object = self.conflicts.properties.one_object
        for answers in answer_columns(self.ranker, self.dataset, queries, top=LISTED, include_known=False):
            listed = FactColumns(answers.triples, answers.scores, answers.rules, answers.n_rules)
            listed = listed.take(answers.n_rules > 0)
            listed = listed.take(np.argsort(fact_keys(listed.triples, n_entities, n_relations)))
            listed = replace(listed, contexts=self.contexts_of(listed))
            listed_keys = fact_keys(listed.triples, n_entities, n_relations)
            rows = find_keys(keys, listed_keys)
            for name in ("scores", "rules", "n_rules", "contexts"):
                getattr(facts, name)[rows >= 0] = getattr(listed, name)[rows[rows >= 0]]
            best = listed.take((listed.contexts == 0) & one_object[listed.triples[:, 1]])
            best_keys = fact_keys(best.triples, n_entities, n_relations)
            rows = find_keys(questions, best_keys // n_entities)
            others = np.flatnonzero(rows >= 0)
            others = others[best_keys[rows[others]] != keys[others]]
            instead[others] = best.triples[rows[others], 2]
        return facts, instead


@dataclass(frozen=True)
class Checker:
    """Judges facts from elsewhere; only those of `splits` count as stated.

    Their probability comes from the `classifier`, which learned from judged facts, if there is one, also where a stated
    fact contradicts them; else from the `calibration`.
    """

    judge: Judge
    names: Names
    min_probability: float
    calibration: Calibration | None = None
    classifier: FactClassifier | None = None
    splits: Sequence[str] = SPLITS

    def frames(self, facts: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield a row for each fact, in order, some at a time.

        A fact is `stated` by a split; or `contradicted` by a stated one; or `supported`, if its probability (if there
        are none, its score) is at least `min_probability`; else `unknown`. `facts` are the reasons for it; `conflict`
        and `instead` those against it: a stated fact, and the value that rules prefer where there can be only one.
        """
        texts = RuleTexts(self.judge.ranker.rules)
        for start in range(0, len(facts), FACTS_AT_A_TIME):
            part = facts[start : start + FACTS_AT_A_TIME].select(pl.col(CHECKED).cast(pl.String))
            yield self._checked(part, texts)

    def _checked(self, facts: pl.DataFrame, texts: RuleTexts) -> pl.DataFrame:
        judge, n = self.judge, len(facts)
        vocabulary = judge.dataset.vocabulary
        triples, unseen = encode_facts(facts, vocabulary, self.names)
        known = np.flatnonzero((triples >= 0).all(axis=1))
        held, conflicts = np.zeros(n, np.uint8), np.full(n, NOTHING)
        held[known] = held_by(judge.dataset, triples[known]) & split_bits(self.splits)
        conflicts[known] = judge.conflicts.find(triples[known])
        listed, instead = judge.look_up(triples[known])
        scores, rules, likely = np.zeros(n), np.full(n, -1), np.full(n, np.nan)
        scores[known], rules[known] = listed.scores, listed.rules
        if self.classifier is not None and len(known):
            likely[known] = self.classifier.probabilities(triples[known])
        elif self.calibration is not None:
            likely[known] = judge.likely(self.calibration, listed)
            likely[(scores == 0) | (conflicts != NOTHING)] = np.nan
        likely[held > 0] = np.nan
        sure = scores if self.calibration is None and self.classifier is None else np.nan_to_num(likely)
        verdicts = np.select(
            [held > 0, conflicts != NOTHING, (sure > 0) & (sure >= self.min_probability)], VERDICTS[:3], VERDICTS[3]
        )
        others = np.full(n, -1)
        others[known] = np.where(held[known] > 0, -1, instead)
        return facts.with_columns(
            verdict=pl.Series(verdicts.tolist(), dtype=pl.String),
            probability=pl.Series(likely).fill_nan(None),
            score=pl.Series(scores),
            rule=_rule_texts(texts, rules),
            facts=_reasons(judge, triples, rules),
            conflict=pl.Series(
                judge.stated_facts(triples, np.where(held > 0, NOTHING, conflicts)), dtype=pl.List(pl.String)
            ),
            instead=vocabulary.decode_entities(others),
            note=pl.Series(_notes(unseen, scores, conflicts, held), dtype=pl.String),
        )


def encode_facts(facts: pl.DataFrame, vocabulary: Vocabulary, names: Names) -> tuple[NDArray[np.int32], list[str]]:
    """Return the ids of facts given by labels or names, -1 for what is not in the data, and a note on what is not."""
    triples = np.column_stack(vocabulary.encode_triples(facts)).astype(np.int32)
    unseen = [""] * len(facts)
    for row in np.flatnonzero((triples < 0).any(axis=1)).tolist():
        lacking = []
        for column, label in enumerate(facts.row(row)):
            if triples[row, column] >= 0:
                continue
            find = names.relation_id if column == 1 else names.entity_id
            with suppress(DataError):
                triples[row, column] = find(label or "", vocabulary) if names else -1
            if triples[row, column] < 0:
                lacking.append(f"the {'relation' if column == 1 else 'entity'} {label!r}")
        if lacking:
            unseen[row] = f"{' and '.join(lacking)} {'are' if len(lacking) > 1 else 'is'} not in the data"
    return triples, unseen


def _rule_texts(texts: RuleTexts, rules: NDArray[np.int64]) -> pl.Series:
    """Return the text of each rule, null where there is none."""
    chosen = np.flatnonzero(rules >= 0)
    column: list[str | None] = [None] * len(rules)
    for row, text in zip(chosen.tolist(), texts.of_rows(rules[chosen]).to_list(), strict=True):
        column[row] = text
    return pl.Series(column, dtype=pl.String)


def _reasons(judge: Judge, triples: NDArray[np.int32], rules: NDArray[np.int64]) -> pl.Series:
    """Return the facts that make the best rule predict each fact."""
    chosen = np.flatnonzero(rules >= 0)
    column: list[list[list[str]]] = [[] for _ in rules]
    if len(chosen):
        narrow = rules[chosen].astype(np.int32)
        facts = FactColumns(triples[chosen], np.zeros(len(chosen)), narrow, np.ones_like(narrow))
        for row, reasons in zip(chosen.tolist(), reasons_of(judge.ranker, facts).to_list(), strict=True):
            column[row] = reasons
    return pl.Series(column, dtype=TRIPLES)


def _notes(
    unseen: list[str], scores: NDArray[np.float64], conflicts: NDArray[np.int64], held: NDArray[np.uint8]
) -> list[str]:
    """Return for each fact why nothing speaks for it, "" where something does or nothing more is known."""
    notes = []
    for lacking, score, conflict, splits in zip(unseen, scores, conflicts.tolist(), held.tolist(), strict=True):
        if lacking:
            notes.append(lacking)
        elif splits:
            notes.append("")
        elif conflict == ITSELF:
            notes.append("nothing stands in this relation to itself")
        else:
            notes.append("" if score else "no rule predicts it")
    return notes
