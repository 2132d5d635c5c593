"""`explain`: the rules that predict a triple, best first, with their facts."""

from __future__ import annotations

from anyburl.errors import DataError, OptionError
from anyburl.explanation.explanation import Explanation, Fact, Reason
from anyburl.explanation.firings import Firings
from anyburl.explanation.groundings import Ids, find_groundings, triple_ids
from anyburl.explanation.known import holding_splits, neighbours, other_answers
from anyburl.explanation.nearmiss import find_near_miss
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset


def explain(
    rules: RuleSet,
    dataset: Dataset,
    triple: Fact,
    *,
    options: RankOptions | None = None,
    top: int = 5,
    groundings: int = 3,
    ranker: Ranker | None = None,
) -> Explanation:
    """Say which rules predict `triple` (subject, relation, object), which need not be known or true.

    The `top` best rules are given, each with up to `groundings` ways in which facts of the train split make it fire.
    If none fires, `near_miss` is the strongest rule that lacks one fact. A `ranker`, made of the same rules and
    data, is used as it is; without one, it is made from `options` first, which takes most of the time.
    """
    if top < 1 or groundings < 0:
        raise OptionError(f"explain needs top of at least 1 and groundings of at least 0, got {top} and {groundings}")
    ids = triple_ids(dataset.vocabulary, triple)
    ranker = _checked(ranker, dataset, options) if ranker else make_ranker(rules, dataset, options or RankOptions())
    firings = Firings(ranker, ids)
    other_objects, other_subjects = other_answers(dataset, ranker.graph, ids)
    return Explanation(
        triple=(str(triple[0]), str(triple[1]), str(triple[2])),
        known=holding_splits(dataset, ids),
        rank=firings.of_object.rank(ranker, other_objects),
        rank_subject=firings.of_subject.rank(ranker, other_subjects),
        score=firings.score(firings.of_object.rows),
        score_subject=firings.score(firings.of_subject.rows),
        aggregation=ranker.options.aggregation,
        blocked=ranker.block_connected and ids[2] in neighbours(ranker.graph, ids[0]),
        n_reasons=len(firings.rows),
        reasons=tuple(_reason(ranker, firings, int(row), ids, groundings) for row in firings.rows[:top]),
        near_miss=None if len(firings.rows) else find_near_miss(ranker, ids),
    )


def _checked(ranker: Ranker, dataset: Dataset, options: RankOptions | None) -> Ranker:
    if options is not None and options != ranker.options:
        raise OptionError(f"explain was given a ranker with other options ({ranker.options}) than {options}; give one")
    if not ranker.vocabulary.same_labels(dataset.vocabulary):
        raise DataError(f"explain was given a ranker over other labels than those of {dataset.name}")
    return ranker


def _reason(ranker: Ranker, firings: Firings, row: int, triple: Ids, groundings: int) -> Reason:
    rules = ranker.rules
    contribution, breaks_ties = firings.contribution(row)
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
