"""`Explorer`: what is served, and what is kept between requests.

Compiles the kernels of all pages before anyone waits for one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from threading import Lock

import numpy as np
import polars as pl

from anyburl.base.errors import OptionError
from anyburl.data.names import Names
from anyburl.ranking.options import parse_aggregation
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.opening import Opened, with_fallback
from anyburl.reasoning.queries import Query, decode_query
from anyburl.reasoning.reasoner import Reasoner
from anyburl.reasoning.search.search import LabelSearch
from anyburl.reasoning.warmup import warm_up_reasoning
from anyburl.tools.review import ReviewLog
from anyburl.web.desk import ReviewDesk
from anyburl.web.facts import probability_of
from anyburl.web.lanes import BusyError
from anyburl.web.rule_list import RuleChoice, RuleList
from anyburl.web.wording import entity_name, relation_name

MOST_DERIVED = 8
LARGEST_SMOOTHING = 1e6
SECONDS_TO_WAIT = 6.0


class Explorer:
    """A reasoner with what the pages need beside it; safe to be used by several threads."""

    def __init__(self, reasoner: Reasoner, *, title: str, run: Path | None = None, reviews: Path) -> None:
        self.reasoner, self.title, self.run = reasoner, title, run
        self.reviews = ReviewLog(reviews)
        self.desk = ReviewDesk(reasoner, self.reviews)
        self.rule_list = RuleList(reasoner.rules)
        self._derived: OrderedDict[tuple[str, float], Reasoner] = OrderedDict()
        self._search: LabelSearch | None = None
        self._lock, self._search_lock = Lock(), Lock()
        self._relations = set(reasoner.vocabulary.relations)

    @property
    def names(self) -> Names:
        return self.reasoner.names

    @property
    def search(self) -> LabelSearch:
        """The index of labels, built when it is first needed; who comes meanwhile does not wait for long."""
        if not self._search_lock.acquire(timeout=SECONDS_TO_WAIT):
            raise BusyError("the search index is being built")
        try:
            if self._search is None:
                vocabulary = self.reasoner.vocabulary
                self._search = LabelSearch.build(vocabulary.entities, vocabulary.relations, self.names)
            return self._search
        finally:
            self._search_lock.release()

    @property
    def can_search(self) -> bool:
        """Whether the index of labels is there."""
        return self._search is not None

    @property
    def aggregations(self) -> tuple[str, ...]:
        """The aggregations that pages offer."""
        offered = ("max", "noisy-or", "noisy-or-top:5", "noisy-or-top:10")
        return tuple(dict.fromkeys((self.reasoner.options.aggregation, *offered)))

    def ranking_by(self, aggregation: str | None, smoothing: float | None) -> Reasoner:
        """Return a reasoner on the same index that ranks in another way."""
        options = self.reasoner.options
        wanted = (aggregation or options.aggregation, options.smoothing if smoothing is None else smoothing)
        if wanted == (options.aggregation, options.smoothing):
            return self.reasoner
        if not 0 <= wanted[1] <= LARGEST_SMOOTHING:
            raise OptionError(f"smoothing must be from 0 to {LARGEST_SMOOTHING:,.0f}, got {wanted[1]:g}")
        if parse_aggregation(wanted[0]).needs_model:
            raise OptionError(f"aggregation {wanted[0]!r} needs a model: start the explorer with it")
        with self._lock:
            if wanted not in self._derived:
                self._derived[wanted] = self._derive(*wanted)
            self._derived.move_to_end(wanted)
            while len(self._derived) > MOST_DERIVED:
                self._derived.popitem(last=False)
            return self._derived[wanted]

    def _derive(self, aggregation: str, smoothing: float) -> Reasoner:
        ranker = self.reasoner.ranker
        options = replace(ranker.options, aggregation=aggregation, smoothing=smoothing)
        other = make_ranker(
            ranker.graph, ranker.rules, options, block_connected=ranker.block_connected, index=ranker.index
        )
        return Reasoner.of(Opened(with_fallback(other), self.reasoner.dataset, {}), self.names)

    def entity(self, text: str) -> str:
        """Return the label of the entity that someone means."""
        label = self.names.label_of(text, self.reasoner.vocabulary.entities, "entity")
        self.reasoner.vocabulary.entity_id(label)
        return label

    def relation(self, text: str) -> str:
        """Return the label of the relation that someone means: by label, by name, or as pages write it."""
        label = self.names.label_of(text, self.reasoner.vocabulary.relations, "relation")
        if label not in self._relations:
            shown = [one for one in self._relations if relation_name(one, self.names) == text]
            label = shown[0] if len(shown) == 1 else label
        self.reasoner.vocabulary.relation_id(label)
        return label

    def probability(self, relation: str, score: float) -> float | None:
        """Return what a score means for facts of a relation; None where that is not known."""
        return probability_of(self.reasoner, relation, score)

    def text(self, label: str) -> str:
        """Return what a drawing writes for a label, be it of an entity or of a relation."""
        if label in self._relations:
            return relation_name(label, self.names)
        return entity_name(label, self.names)

    def common_relations(self, top: int) -> list[tuple[str, int]]:
        """Return the relations with most facts in train, and how many each has."""
        n_relations = self.reasoner.vocabulary.n_relations
        counts = np.bincount(self.reasoner.dataset.train.triples[:, 1], minlength=n_relations)
        return [
            (self.reasoner.vocabulary.relation_label(int(relation)), int(counts[relation]))
            for relation in np.argsort(-counts, kind="stable")[:top]
        ]

    def example_questions(self, top: int) -> list[Query]:
        """Return questions that the rules should be able to answer: of facts that learning did not see, if there are
        any, spread over the relations.
        """
        dataset = self.reasoner.dataset
        table = next((split for split in (dataset.test, dataset.valid) if len(split)), dataset.train)
        _, firsts, sizes = np.unique(table.triples[:, 1], return_index=True, return_counts=True)
        rows = firsts[np.argsort(-sizes, kind="stable")[:top]]
        chosen = table.triples[np.sort(rows)]
        return [decode_query(int(subject), int(relation), dataset.vocabulary) for subject, relation in chosen[:, :2]]

    def warm_up(self) -> None:
        """Do what the first readers would have to wait for."""
        self.search.find("warm", top=1)
        self.rule_list.choose(RuleChoice())
        _ = self.rule_list.lattice


LABELS = ("Amsterdam", "Berlin")
ASKED = ("Ams", "dam", "Amstredam")
"""The start of a label, a part of it, and one with a typing error."""


def warm_up_explorer(n_relations: int) -> None:
    """Compile the kernels for data with `n_relations`, or load them."""
    warm_up_reasoning(n_relations, explaining=True, completing=True)
    labels = pl.Series(LABELS)
    search = LabelSearch.build(labels, labels)
    for text in ASKED:
        search.find(text)
