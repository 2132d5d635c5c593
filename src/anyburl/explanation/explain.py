"""`explain`: the rules that predict a triple, best first, with their facts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError, OptionError
from anyburl.explanation.explanation import Explanation, Fact, Reason
from anyburl.explanation.firings import Firings
from anyburl.explanation.groundings import Ids, find_groundings, triple_ids
from anyburl.explanation.judged import Judged
from anyburl.explanation.known import holding_splits, neighbours, other_answers
from anyburl.explanation.nearmiss import find_near_miss
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.tuning.ranker import TunedRanker, make_ranker, tuned


def explain(
    rules: RuleSet,
    dataset: Dataset,
    triple: Fact,
    *,
    options: RankOptions | None = None,
    top: int = 5,
    groundings: int = 3,
    ranker: Ranker | None = None,
    seed: int = 0,
) -> Explanation:
    """Say which rules predict `triple` (subject, relation, object), which need not be known or true.

    The `top` best rules are given, each with up to `groundings` ways in which facts of the train split make it fire.
    If none fires, `near_miss` is the strongest rule that lacks one fact. A `ranker`, made of the same rules and
    data, is used as it is; without one, it is made from `options` first, which takes most of the time. `seed` matters
    to `aggregation="tuned"` only.
    """
    if top < 1 or groundings < 0:
        raise OptionError(f"explain needs top of at least 1 and groundings of at least 0, got {top} and {groundings}")
    ids = triple_ids(dataset.vocabulary, triple)
    if ranker:
        ranker = tuned(_checked(ranker, dataset, options), dataset, seed=seed)
    else:
        ranker = make_ranker(rules, dataset, options, seed=seed)
    firings = Firings(ranker, ids)
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
    )


def _checked(ranker: Ranker, dataset: Dataset, options: RankOptions | None) -> Ranker:
    if options is not None and options != ranker.options:
        raise OptionError(f"explain was given a ranker with other options ({ranker.options}) than {options}; give one")
    if not ranker.vocabulary.same_labels(dataset.vocabulary):
        raise DataError(f"explain was given a ranker over other labels than those of {dataset.name}")
    return ranker


class _Ranked(NamedTuple):
    """Where one query ranks the triple, and by what."""

    rank: float | None
    score: float


def _rank(
    ranker: Ranker, firings: Firings, others: tuple[NDArray[np.int32], NDArray[np.int32]], blocked: bool
) -> tuple[list[_Ranked], Judged | None]:
    """Return rank and score in both directions; and the tuned model's judgement, of the first that it gave a score."""
    ranked, judgements = [], []
    for fired, known in zip((firings.of_object, firings.of_subject), others, strict=True):
        judged = None
        if isinstance(ranker, TunedRanker) and ranker.tuning.model and len(fired.rows) and not blocked:
            judged = Judged(ranker, fired, known)
        rank = judged.rank if judged else fired.rank(ranker, known)
        by_model = judged.score if judged else None
        ranked.append(_Ranked(rank, firings.score(fired.rows) if by_model is None else by_model))
        judgements.append(judged)
    return ranked, next((judged for judged in judgements if judged and judged.score is not None), None)


def _reason(ranker: Ranker, firings: Firings, judged: Judged | None, row: int, triple: Ids, groundings: int) -> Reason:
    rules = ranker.rules
    contribution, breaks_ties = (judged.contribution(row), False) if judged else firings.contribution(row)
    return Reason(
        rule=rules.rule(row),
        confidence=float(ranker.confidences[row]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        exact=bool(rules.exact[row]),
        contribution=contribution,
        breaks_ties=breaks_ties,
        groundings=find_groundings(ranker, row, triple, groundings),
    )
