"""The rules that predict a triple, best first, with their facts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl import checking
from anyburl.explanation.explanation import Explanation
from anyburl.explanation.firings import Firings
from anyburl.explanation.groundings import find_groundings, triple_ids
from anyburl.explanation.judged import Judged
from anyburl.explanation.nearmiss import find_near_miss
from anyburl.explanation.record import Fact, Reason
from anyburl.graph.lookup import Ids, holding_splits, neighbours, other_answers
from anyburl.ranking.ranker import Ranker
from anyburl.triples.dataset import Dataset
from anyburl.tuning.reranker import TunedReranker


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
