"""The rules that predict a triple, best first, with their facts.

Where a tuned model ranks an answer, and what each rule does to its score.

`Explanation`: why rules predict a triple, shown as a tree in the terminal and drawn in notebooks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.tree import Tree

from anyburl.base import checking
from anyburl.data.dataset import Dataset
from anyburl.graph.build import Ids, holding_splits, neighbours, other_answers
from anyburl.models.tuned.listing import RANK_COLUMN
from anyburl.models.tuned.observations import evidence_row, logistic
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.ranking.queries import single_query
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.explanation.nearmiss import Firings, QueryFirings, find_near_miss
from anyburl.reasoning.explanation.record import ExplanationRecord, Fact, Reason
from anyburl.reasoning.explanation.render import to_fragment, to_tree
from anyburl.reasoning.explanation.rule_examples import find_groundings, triple_ids


class Judged:
    """One query and one of its candidates, under a tuned model; `others` are known answers that are not ranked."""

    def __init__(self, lister: Ranker, reranker: TunedReranker, fired: QueryFirings, others: NDArray[np.int32]) -> None:
        self._lister, self._reranker, self._fired = lister, reranker, fired
        query = single_query(fired.entity, fired.relation, others)
        targets = np.array([fired.answer], np.int32)
        self._queries = query._replace(targets=targets, target_offsets=np.array([0, 1], np.int64))
        self._judgement = reranker.judge(lister, self._queries, 0)
        answers = self._judgement.answers
        self.rank = float(answers.better[0] + answers.equal[0] / 2 + 1) if answers.fired[0] else None
        listed = np.flatnonzero(self._judgement.lists.candidates == fired.answer)
        self._place = int(listed[0]) if len(listed) else -1

    @property
    def score(self) -> float | None:
        """The logistic of the model's score; None where the candidate is not among those that the model orders."""
        return float(logistic(self._judgement.scores)[self._place]) if self._place >= 0 else None

    @property
    def rank_other(self) -> int | None:
        """The rank of the candidate among all entities by the other model; None without one."""
        more = self._judgement.listing.more
        return None if more is None or self._place < 0 else round(math.expm1(-more[self._place, RANK_COLUMN])) + 1

    @property
    def share_other(self) -> float | None:
        """The share of the score that would be lost if the other model thought of it as of the median candidate."""
        listing = self._judgement.listing
        if listing.more is None or self._place < 0:
            return None
        more = listing.more.copy()
        more[self._place] = np.median(more, axis=0)
        without = self._reranker.score_evidence(self._lister, replace(listing, more=more), listing.lists.evidence)
        before, after = logistic(np.array([self._judgement.scores[self._place], without[self._place]]))
        return float(1 - after / before)

    def contribution(self, row: int) -> float:
        """Return the share of the score that would be lost without a rule; negative if the rule speaks against."""
        kept = self._fired.rows != row
        if self._place < 0 or kept.all():
            return 0.0
        listing = self._judgement.listing
        evidence = listing.lists.evidence.copy()
        groups = self._reranker.groups[self._fired.rows[kept]]
        evidence[self._place] = evidence_row(self._fired.scores[kept], groups, evidence.shape[1])
        without = self._reranker.score_evidence(self._lister, listing, evidence)
        before, after = logistic(np.array([self._judgement.scores[self._place], without[self._place]]))
        return float(1 - after / before)


@dataclass(frozen=True, repr=False)
class Explanation(ExplanationRecord):
    __doc__ = ExplanationRecord.__doc__

    def __repr__(self) -> str:
        best = f", best {str(self.reasons[0].rule)!r}" if self.reasons else ""
        return f"Explanation({self.triple}: score {self.score:.3f}, {self.n_reasons} rules{best})"

    def __rich__(self) -> Tree:
        return to_tree(self)

    def _repr_html_(self) -> str:
        return to_fragment(self)


def explain_triple(ranker: Ranker, dataset: Dataset, triple: Fact, *, top: int = 5, groundings: int = 3) -> Explanation:
    """Return the rules that predict `triple` (subject, relation, object), which may be known or new, true or false.

    The `top` best rules are given, each with up to `groundings` ways in which facts of the train split make it fire.
    If none fires, `near_miss` is the strongest rule that lacks one fact.
    """
    ranker.check_data(dataset)
    checking.whole("top", top, 1, checking.MOST_KEPT)
    checking.whole("groundings", groundings, 0, checking.MOST_KEPT)
    ids = triple_ids(dataset.vocabulary, triple)
    lister = ranker.lister()
    firings = Firings(lister, ids)
    others = other_answers(dataset, ranker.graph, ids)
    blocked = ranker.block_connected and ids[2] in neighbours(ranker.graph, ids[0])
    ranked, judged = _rank(ranker, firings, others, blocked)
    return Explanation(
        triple=(str(triple[0]), str(triple[1]), str(triple[2])),
        known=holding_splits(dataset, ids),
        rank=ranked[0].rank,
        rank_subject=ranked[1].rank,
        score=ranked[0].score,
        score_subject=ranked[1].score,
        aggregation=ranker.options.aggregation,
        blocked=blocked,
        n_reasons=len(firings.rows),
        reasons=tuple(_reason(ranker, firings, judged, int(row), ids, groundings) for row in firings.rows[:top]),
        near_miss=None if len(firings.rows) else find_near_miss(ranker, ids),
        rank_embedding=judged.rank_other if judged else None,
        share_embedding=judged.share_other if judged else None,
    )


class _Ranked(NamedTuple):
    """Where one query ranks the triple, and by what."""

    rank: float | None
    score: float


def _rank(
    ranker: Ranker, firings: Firings, others: tuple[NDArray[np.int32], NDArray[np.int32]], blocked: bool
) -> tuple[list[_Ranked], Judged | None]:
    """Return rank and score in both directions; and the tuned model's judgement, of the first that it gave a score."""
    ranked: list[_Ranked] = []
    judgements: list[Judged | None] = []
    for fired, known in zip((firings.of_object, firings.of_subject), others, strict=True):
        judged = None
        model = ranker.reranker if isinstance(ranker.reranker, TunedReranker) and ranker.reranker.model else None
        if model is not None and not blocked:
            judged = Judged(ranker.lister(), model, fired, known)
        rank = judged.rank if judged else fired.rank(ranker.lister(), known)
        by_model = judged.score if judged else None
        ranked.append(_Ranked(rank, firings.score(fired.rows) if by_model is None else by_model))
        judgements.append(judged)
    return ranked, next((judged for judged in judgements if judged and judged.score is not None), None)


def _reason(ranker: Ranker, firings: Firings, judged: Judged | None, row: int, triple: Ids, groundings: int) -> Reason:
    rules = ranker.rules
    contribution, breaks_ties = (judged.contribution(row), False) if judged else firings.contribution(row)
    return Reason(
        rule=rules.rule(row),
        confidence=float(ranker.confidences(np.array([row]))[0]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        exact=bool(rules.exact[row]),
        contribution=contribution,
        breaks_ties=breaks_ties,
        groundings=find_groundings(ranker, row, triple, groundings),
        row=row,
    )
