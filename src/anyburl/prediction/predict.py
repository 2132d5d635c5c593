"""`predict`: the best answers of one query, each with its reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anyburl.errors import OptionError
from anyburl.explanation.explain import explain
from anyburl.explanation.explanation import Explanation, Fact, Reason
from anyburl.explanation.known import known_answers
from anyburl.prediction.answers import Answers
from anyburl.ranking.index import to_confidences
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import single_query
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.tuning.ranker import make_ranker, tuned


@dataclass(frozen=True)
class Answer:
    """One candidate. Its `explanation` and `reasons` are looked up when they are first asked for."""

    entity: str
    score: float
    rank: int
    triple: Fact
    known: bool
    _ranker: Ranker = field(repr=False, compare=False)
    _dataset: Dataset = field(repr=False, compare=False)

    @cached_property
    def explanation(self) -> Explanation:
        """Why this is an answer; drawn in notebooks."""
        return explain(self._ranker.rules, self._dataset, self.triple, ranker=self._ranker)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The rules behind this answer, best first, with the facts that make them fire."""
        return self.explanation.reasons

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()


def predict(
    rules: RuleSet,
    dataset: Dataset,
    subject: str | None,
    relation: str,
    object: str | None,
    *,
    top: int = 10,
    include_known: bool = False,
    options: RankOptions | None = None,
    ranker: Ranker | None = None,
    seed: int = 0,
) -> Answers:
    """Return the `top` best answers of (subject, relation, ?) or (?, relation, object), the missing one given as None.

    Answers that the train split states already are left out, unless `include_known`. A `ranker`, made of the same
    rules and data, is used as it is; without one, it is made from `options` first, which takes most of the time.
    `seed` matters to `aggregation="tuned"` only.
    """
    if (subject is None) == (object is None):
        raise OptionError("predict needs either a subject or an object; the other one is None and is asked for")
    if top < 1:
        raise OptionError(f"predict needs top of at least 1, got {top}")
    vocabulary = dataset.vocabulary
    directed = vocabulary.relation_id(relation) + (0 if object is None else vocabulary.n_relations)
    given = subject if subject is not None else object
    assert given is not None
    entity = vocabulary.entity_id(given)
    ranker = tuned(ranker, dataset, seed=seed) if ranker else make_ranker(rules, dataset, options, seed=seed)
    known = known_answers(ranker.graph, entity, directed)
    query = single_query(entity, directed, np.empty(0, np.int32) if include_known else known)
    answers = ranker.answer(query, top_k=top)
    found = answers.best[0][: answers.n_best[0]]
    scores = to_confidences(answers.best_keys[0][: len(found)])
    labels = [vocabulary.entity_label(int(candidate)) for candidate in found]
    return Answers(
        Answer(
            entity=label,
            score=float(score),
            rank=place + 1,
            triple=(given, relation, label) if object is None else (label, relation, given),
            known=bool(np.isin(candidate, known)),
            _ranker=ranker,
            _dataset=dataset,
        )
        for place, (label, score, candidate) in enumerate(zip(labels, scores, found, strict=True))
    )
