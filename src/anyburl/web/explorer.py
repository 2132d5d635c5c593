"""`Explorer`: what is served, and what is cached between requests; filtered and sorted lists of millions of rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError, OptionError, UnknownLabelError
from anyburl.bodies.rescore import surprising_rows
from anyburl.data.names import Names, entity_name, relation_name
from anyburl.data.vocabulary import Vocabulary
from anyburl.models.tuned.train import TUNED
from anyburl.ranking.options import AGGREGATIONS, RankOptions, parse_aggregation
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.explanation.relatives import RuleLattice, find_first_alike
from anyburl.reasoning.explanation.rule_examples import RuleExamples, examine_rule
from anyburl.reasoning.opening import Feedback, Opened, with_fallback
from anyburl.reasoning.queries import Query, decode_query, make_query
from anyburl.reasoning.reasoner import Reasoner
from anyburl.reasoning.search import LabelSearch
from anyburl.reasoning.shortcuts import warm_up_reasoning
from anyburl.rules import selection
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import SMOOTHING
from anyburl.tools.report.record import Theory
from anyburl.tools.review import (
    Edition,
    ReviewLog,
)
from anyburl.web.background import SECONDS_TO_WAIT, Background, BusyError, Desk, Predictions, Reporter, ReviewDesk
from anyburl.web.facts import Candidate, answer_question

ORDERS = ("surprise", "confidence", "support", "value", "predictions", "worth")
Sort = Literal["surprise", "confidence", "support", "value", "predictions", "worth"]
MOST_CACHED = 64
MOST_LISTED = 5_000
FOLDED = 200
"""The first rules of a list, among which those that say nearly the same are folded."""


@dataclass(frozen=True, kw_only=True)
class RuleChoice:
    """Filters of rules, and their order; labels as the data has them."""

    relation: str | None = None
    type: str | None = None
    length: int | None = None
    min_confidence: float | None = None
    min_support: int | None = None
    contains: str | None = None
    sort: Sort | None = None

    def __post_init__(self) -> None:
        if self.sort is not None and self.sort not in ORDERS:
            raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", self.sort)


@dataclass(frozen=True)
class Chosen:
    """The rows of the best rules that pass, best first, and how many rules pass."""

    rows: NDArray[np.int64]
    n_matching: int


@dataclass(frozen=True)
class Folded:
    """The rules that pass the filters, how many others each stands for, by its row, and how many are folded in all."""

    chosen: Chosen
    alike: dict[int, int]
    n_folded: int


class RuleList:
    """Filters and sorts rules; the latest lists are cached."""

    def __init__(self, rules: RuleSet, ranker: Ranker) -> None:
        self.rules, self._ranker = rules, ranker
        self.choose = lru_cache(MOST_CACHED)(self._choose)
        self.fold = lru_cache(MOST_CACHED)(self._fold)
        self._indexing = Lock()
        self._lattice: RuleLattice | None = None

    @property
    def lattice(self) -> RuleLattice:
        """The rules by their heads, indexed on first use."""
        with self._indexing:
            if self._lattice is None:
                self._lattice = RuleLattice.build(self.rules)
            return self._lattice

    def _choose(self, choice: RuleChoice) -> Chosen:
        """Return the best rules that pass the filters."""
        rows = self._matching(choice)
        part = self.rules if rows is None else self.rules.take(rows)
        order = choice.sort or self.default_order
        if order == "surprise" and part.surprise is None:
            best = surprising_rows(part, self._ranker.graph, MOST_LISTED)
        else:
            best = selection.best_rows(part, MOST_LISTED, order, SMOOTHING)
        return Chosen(best if rows is None else rows[best], len(part))

    @property
    def orders(self) -> tuple[str, ...]:
        """By which these rules can be sorted."""
        return tuple(order for order in ORDERS if order != "worth" or self.rules.worth is not None)

    @property
    def default_order(self) -> str:
        return "surprise" if self.rules.worth is None else "worth"

    def _fold(self, choice: RuleChoice) -> Folded:
        """Return the best rules that pass, without those that say nearly the same as an earlier one."""
        chosen = self.choose(choice)
        first = chosen.rows[:FOLDED]
        identity = self._ranker.options.object_identity
        same = find_first_alike(self._ranker.ready.graph, self.rules.take(first), object_identity=identity)
        is_kept = same == np.arange(len(first))
        counts = np.bincount(same, minlength=len(first)) - 1
        alike = {int(row): int(n) for row, n in zip(first[is_kept], counts[is_kept], strict=True) if n}
        rows = np.concatenate([first[is_kept], chosen.rows[FOLDED:]])
        return Folded(Chosen(rows, chosen.n_matching), alike, int((~is_kept).sum()))

    def _matching(self, choice: RuleChoice) -> NDArray[np.int64] | None:
        """Return the rows that pass; None for all of them."""
        rules = self.rules
        rows = None if choice.relation is None else self._of_relation(choice.relation)
        part = rules if rows is None else rules.take(rows)
        masks = []
        if choice.type is not None:
            masks.append(selection.type_mask(part, choice.type))
        if choice.contains is not None:
            masks.append(selection.label_mask(part, choice.contains))
        if choice.length is not None:
            masks.append(part.lengths == choice.length)
        if choice.min_support is not None:
            masks.append(part.support >= choice.min_support)
        if choice.min_confidence is not None:
            masks.append(part.confidence() >= choice.min_confidence)
        if not masks:
            return rows
        passing = np.flatnonzero(np.logical_and.reduce(masks))
        return passing if rows is None else rows[passing]

    def _of_relation(self, relation: str) -> NDArray[np.int64]:
        """Return the rows of the rules that predict a relation."""
        lattice, n_relations = self.lattice, self.rules.vocabulary.n_relations
        number = self.rules.vocabulary.relation_id(relation)
        ranges = [slice(*lattice.head_offsets[head : head + 2]) for head in (number, number + n_relations)]
        return np.concatenate([lattice.rows[part] for part in ranges]).astype(np.int64)


MOST_DERIVED = 8
LARGEST_SMOOTHING = 1e6
MOST_PREDICTED = 64  # searches that are kept
N_COUNTER_EXAMPLES, SECONDS_FOR_EXAMPLES, MOST_EXAMPLES = 4, 0.2, 1024


class SearchedLabels:
    """The index of the labels and names of a vocabulary, built once, on first use."""

    def __init__(self, vocabulary: Vocabulary, names: Names) -> None:
        self._vocabulary, self._names = vocabulary, names
        self._search: LabelSearch | None = None
        self._lock = Lock()

    @property
    def search(self) -> LabelSearch:
        """The index; raise `BusyError` if another thread has not finished building it."""
        if not self._lock.acquire(timeout=SECONDS_TO_WAIT):
            raise BusyError("the search index is being built")
        try:
            if self._search is None:
                self._search = LabelSearch.build(self._vocabulary.entities, self._vocabulary.relations, self._names)
            return self._search
        finally:
            self._lock.release()

    @property
    def can_search(self) -> bool:
        """Whether the index has been built."""
        return self._search is not None


class BaseExplorer(ABC):
    """What every explorer has: an index of labels, and verdicts of people, which count in answers."""

    def __init__(self, reviews: ReviewLog, labels: SearchedLabels) -> None:
        self.reviews, self._labels = reviews, labels
        self._applied: Edition = None
        self._applying = Lock()

    @abstractmethod
    def count_verdicts(self) -> None:
        """Apply the verdicts of people to the answers."""

    def edition(self) -> Edition:
        """Return a value that changes with every verdict, whichever process records it."""
        return self.reviews.edition()

    def catch_up(self, edition: Edition) -> None:
        """Apply the verdicts of an edition to the answers, once."""
        if edition == self._applied:
            return
        with self._applying:
            if edition != self._applied:
                self.count_verdicts()
                self._applied = edition

    @property
    def search(self) -> LabelSearch:
        """The index of labels, built on first use; raise `BusyError` if another thread has not finished building it."""
        return self._labels.search

    @property
    def can_search(self) -> bool:
        """Whether the index of labels has been built."""
        return self._labels.can_search

    def find_labels(self, text: str, kind: Literal["entity", "relation"] | None, top: int) -> dict[str, Any]:
        """Return the entities and relations whose labels or names resemble a text, as plain values."""
        matches = self.search.find(text, kind=kind, top=top) if text.strip() else []
        return {"found": [dict(label=m.label, name=m.name, kind=m.kind, distance=m.distance) for m in matches]}


class Explorer(BaseExplorer):
    """A reasoner and the caches that pages need; safe to use from several threads."""

    def __init__(
        self,
        reasoner: Reasoner,
        *,
        title: str,
        run: Path | None = None,
        reviews: Path,
        background: Background | None = None,
    ) -> None:
        super().__init__(ReviewLog(reviews), SearchedLabels(reasoner.vocabulary, reasoner.names))
        self.reasoner, self.title, self.run = reasoner, title, run
        self.background = background or Background(ReviewDesk(reasoner, self.reviews), Reporter(reasoner))
        self.rule_list = RuleList(reasoner.rules, reasoner.ranker)
        self._derived = lru_cache(MOST_DERIVED)(self._derive)
        self._lock = Lock()
        self._relations = set(reasoner.vocabulary.relations)
        self._predicted: dict[object, Predictions] = {}
        self._predicting = Lock()
        self._predictor = ThreadPoolExecutor(2, thread_name_prefix="anyburl-predicted")
        self.examples_of = lru_cache(MOST_EXAMPLES)(self._examples_of)

    @property
    def desk(self) -> Desk:
        """The facts that wait for a verdict."""
        return self.background.desk

    def theory(self, seconds: float = SECONDS_TO_WAIT) -> Theory | None:
        """Return what the rules say, in plain words; None while the report is being written in the background."""
        return self.background.reporter.theory(seconds)

    def _examples_of(self, row: int) -> RuleExamples:
        """Return where a rule is wrong, as far as that is found at once; the rules of one relation explain much."""
        reasoner = self.reasoner
        return examine_rule(
            reasoner.ranker, reasoner.dataset, row, top=N_COUNTER_EXAMPLES, seconds=SECONDS_FOR_EXAMPLES
        )

    def predictions(
        self, entity: str, *, top: int, per_question: int = 5, seconds: float
    ) -> tuple[list[Candidate], bool]:
        """Return the best new facts about an entity that were found after some seconds, and whether these are all.

        The search goes on in the background, for the next call.
        """
        key = entity, top, per_question, self._applied
        with self._predicting:
            if key not in self._predicted:
                while len(self._predicted) >= MOST_PREDICTED:
                    self._predicted.pop(next(iter(self._predicted)))
                self._predicted[key] = Predictions()
                predicted = self._predicted[key]
                predicted.search = self._predictor.submit(predicted.find, self.reasoner, entity, top, per_question)
            predicted = self._predicted[key]
        assert predicted.search is not None
        if wait([predicted.search], seconds).done:
            predicted.search.result()
        return predicted.best, predicted.search.done()

    def count_verdicts(self) -> None:
        """Apply the verdicts of people to the answers."""
        self.reviews.apply_to(self.reasoner)

    @property
    def names(self) -> Names:
        return self.reasoner.names

    @property
    def aggregations(self) -> tuple[str, ...]:
        """The aggregations that pages offer: all that need no model, and those whose model the run has."""
        offered = [kind.example for kind in AGGREGATIONS if not kind.needs_model]
        offered += [
            kind.example for kind in AGGREGATIONS if kind.needs_model and not kind.needs_embedding and self._has_model
        ]
        return tuple(dict.fromkeys((self.reasoner.options.aggregation, *offered)))

    @property
    def _has_model(self) -> bool:
        return self.run is not None and (self.run / TUNED).is_dir()

    def ranking_by(self, aggregation: str | None, smoothing: float | None) -> Reasoner:
        """Return a reasoner on the same index with another aggregation or smoothing; None keeps that of the run."""
        options = self.reasoner.options
        aggregation = aggregation or options.aggregation
        smoothing = options.smoothing if smoothing is None else smoothing
        if (aggregation, smoothing) == (options.aggregation, options.smoothing):
            return self.reasoner
        if not 0 <= smoothing <= LARGEST_SMOOTHING:
            raise OptionError(f"smoothing must be from 0 to {LARGEST_SMOOTHING:,.0f}, got {smoothing:g}")
        parse_aggregation(aggregation)
        with self._lock:  # two requests for the same ranking derive it once
            return self._derived(aggregation, smoothing)

    def _derive(self, aggregation: str, smoothing: float) -> Reasoner:
        ranker = self.reasoner.ranker
        options = replace(ranker.options, aggregation=aggregation, smoothing=smoothing)
        if parse_aggregation(aggregation).needs_model:
            return self._with_model(options)
        other = make_ranker(
            ranker.graph, ranker.rules, options, block_connected=ranker.block_connected, index=ranker.index
        )
        return Reasoner.of(Opened(with_fallback(other), self.reasoner.dataset, {}), self.names)

    def _with_model(self, options: RankOptions) -> Reasoner:
        """Open the run once more, with the model that it has; no reader waits for one to be trained."""
        name = options.aggregation
        command = f"anyburl tune {self.title} --smoothing {options.smoothing:g}"
        no_model = OptionError(f"aggregation {name!r} needs a model for these options: train it with `{command}`")
        if self.run is None or parse_aggregation(name).needs_embedding:
            raise OptionError(f"aggregation {name!r} needs a model that pages do not have")
        if not self._has_model:
            raise no_model

        def watch(doing: str, done: str) -> AbstractContextManager[object]:
            if doing.startswith("tuning"):
                raise no_model
            return nullcontext()

        quiet = Feedback(say=lambda note: None, note=lambda note: None, watch=watch)
        return Reasoner.open(self.run, options=options, names=self.names, feedback=quiet)

    def entity(self, text: str) -> str:
        """Return the label of an entity given by label or name."""
        label = self.names.label_of(text, self.reasoner.vocabulary.entities, "entity")
        self.reasoner.vocabulary.entity_id(label)
        return label

    def values(self, label: str) -> list[dict[str, Any]]:
        """Return the values of an entity, of each attribute: its name, kind, values and texts."""
        attributes, entity = self.reasoner.dataset.attributes, self.reasoner.vocabulary.entity_id(label)
        return [
            {
                "attribute": name,
                "kind": str(attributes[name].kind),
                "values": values,
                "texts": [attributes[name].format(value) for value in values],
            }
            for name, values in attributes.values_of(entity).items()
        ]

    def relation(self, text: str) -> str:
        """Return the label of a relation given by label, by name, or as pages write it."""
        label = self.names.label_of(text, self.reasoner.vocabulary.relations, "relation")
        if label not in self._relations:
            shown = [one for one in self._relations if relation_name(one, self.names) == text]
            label = shown[0] if len(shown) == 1 else label
        self.reasoner.vocabulary.relation_id(label)
        return label

    def triple(self, subject: str, relation: str, object: str) -> Fact:
        """Return the labels of a triple given by labels or names."""
        return self.entity(subject), self.relation(relation), self.entity(object)

    def query(self, subject: str | None, relation: str, object: str | None) -> Query:
        """Return the labels of a question given by labels or names; one of its ends is None."""
        subject, relation, object = make_query(subject, relation, object)
        return Query(subject and self.entity(subject), self.relation(relation), object and self.entity(object))

    def choose_rules(self, filters: RuleChoice) -> tuple[RuleChoice, Chosen]:
        """Return filters with labels instead of names, and the rules that pass them."""
        choice = replace(
            filters,
            relation=filters.relation and self.relation(filters.relation),
            contains=filters.contains and self._term(filters.contains),
        )
        return choice, self.rule_list.choose(choice)

    def _term(self, text: str) -> str:
        """Return the label of a relation or, if there is none of that name, of an entity."""
        with suppress(UnknownLabelError):
            return self.relation(text)
        return self.entity(text)

    def text(self, label: str) -> str:
        """Return the text for a label in drawings, be it of an entity or of a relation."""
        return (relation_name if label in self._relations else entity_name)(label, self.names)

    def common_relations(self, top: int) -> list[tuple[str, int]]:
        """Return the relations with most facts in train, and how many each has."""
        n_relations = self.reasoner.vocabulary.n_relations
        counts = np.bincount(self.reasoner.dataset.train.triples[:, 1], minlength=n_relations)
        return [
            (self.reasoner.vocabulary.relation_label(int(relation)), int(counts[relation]))
            for relation in np.argsort(-counts, kind="stable")[:top]
        ]

    def example_questions(self, top: int) -> list[Query]:
        """Return questions of different relations, from facts that learning did not see if there are any."""
        dataset = self.reasoner.dataset
        table = next((split for split in (dataset.test, dataset.valid) if len(split)), dataset.train)
        _, firsts, sizes = np.unique(table.triples[:, 1], return_index=True, return_counts=True)
        rows = firsts[np.argsort(-sizes, kind="stable")[:top]]
        chosen = table.triples[np.sort(rows)]
        return [decode_query(int(subject), int(relation), dataset.vocabulary) for subject, relation in chosen[:, :2]]

    def warm_up(self) -> None:
        """Fill the caches that the first requests would have to wait for; what takes longest comes last."""
        self.search.find("warm", top=1)
        for query in self.example_questions(1):  # loads kernels, and finds out which facts exclude each other
            answer_question(self.reasoner, query, top=1, include_known=False)
        _ = self.reasoner.judge
        self.rule_list.choose(RuleChoice())
        _ = self.rule_list.lattice
        if len(self.reasoner.rules):
            self.theory(0)

    def close(self) -> None:
        """End the search for facts to review and for predictions, and the writing of the report."""
        for predicted in self._predicted.values():
            predicted.is_closed = True
        self._predictor.shutdown(wait=False, cancel_futures=True)
        self.background.close()


def warm_up_explorer(n_relations: int) -> None:
    """Compile the kernels of all pages for data with `n_relations`, or load them."""
    warm_up_reasoning(n_relations, explaining=True, completing=True)
    labels = pl.Series(["Amsterdam", "Berlin"])
    search = LabelSearch.build(labels, labels)
    for text in ("Ams", "dam", "Amstredam"):  # the start of a label, a part of it, and a typing error
        search.find(text)
