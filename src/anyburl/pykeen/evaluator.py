"""`evaluate_with_pykeen`: our scores in PyKEEN's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from anyburl.checking import choose_options
from anyburl.errors import DataError, OptionError
from anyburl.pykeen.factories import import_pykeen, mapped_triples
from anyburl.pykeen.scores import query_scores
from anyburl.ranking.aggregation import parse_aggregation
from anyburl.ranking.options import RankKeywords, RankOptions
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.reasoner import Reasoner
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import SPLITS, Dataset

if TYPE_CHECKING:
    from pykeen.evaluation import Evaluator, MetricResults

TARGETS = {"tail": 2, "head": 0}
"""What PyKEEN calls objects and subjects, and their columns."""

TRIPLES_AT_A_TIME = 256


def evaluate_with_pykeen(
    rules: RuleSet,
    data: Dataset,
    *,
    split: str = "test",
    options: RankOptions | None = None,
    evaluator: Evaluator | None = None,
    **keywords: Unpack[RankKeywords],
) -> MetricResults:
    """Let PyKEEN's evaluator rank and filter the rules' scores for both queries of every triple of a split.

    Without an `evaluator`, PyKEEN's `RankBasedEvaluator` is used; its metrics equal those of `anyburl.evaluate`, and
    many more. `options`, or the fields of `RankOptions` as keywords, say how candidates are ranked.
    """
    evaluation = import_pykeen("evaluate_with_pykeen", "pykeen.evaluation")
    chosen = choose_options(RankOptions, options, keywords)
    if parse_aggregation(chosen.aggregation).needs_model:
        raise OptionError(
            f"evaluate_with_pykeen takes max, noisy-or or noisy-or-top:H, got aggregation {chosen.aggregation}"
        )
    if evaluator is not None and evaluator.requires_positive_mask:
        kind = type(evaluator).__name__  # it would compare scores of different queries, which are only places here
        raise OptionError(f"evaluate_with_pykeen: expected a rank-based evaluator, got {kind}")
    if not len(data.split(split)):
        raise DataError(f"{data.name} has no triples in its {split} split")
    ranker = Reasoner(rules, data, chosen).ranker
    judge = evaluation.RankBasedEvaluator(filtered=True) if evaluator is None else evaluator
    known = import_pykeen("evaluate_with_pykeen", "torch").cat([mapped_triples(data, name) for name in SPLITS])
    for batch in mapped_triples(data, split).split(TRIPLES_AT_A_TIME):
        for target in TARGETS:
            _judge(judge, ranker, batch, target, known)
    return judge.finalize()


def _judge(judge: Any, ranker: Ranker, batch: Any, target: str, known: Any) -> None:
    """Give the evaluator the scores of some triples, as PyKEEN's own evaluation does."""
    torch, inner = import_pykeen("", "torch"), import_pykeen("", "pykeen.evaluation.evaluator")
    column, rows = TARGETS[target], torch.arange(len(batch))
    scores = torch.as_tensor(_dense_scores(ranker, batch.numpy(), column))
    # A blocked answer that is asked for counts as one that no rule gives.
    true_scores = torch.nan_to_num(scores[rows, batch[:, column]], nan=0.0)
    positive, _ = inner.create_sparse_positive_filter_(batch, known, filter_col=column)
    if judge.filtered:
        scores = inner.filter_scores_(scores, positive)
    scores[rows, batch[:, column]] = true_scores
    judge.process_scores_(hrt_batch=batch, target=target, scores=scores, true_scores=true_scores.unsqueeze(-1))


def _dense_scores(ranker: Ranker, triples: Any, column: int) -> Any:
    backward = ranker.graph.n_relations if column == 0 else 0
    return np.array([query_scores(ranker, int(t[2 - column]), int(t[1]) + backward) for t in triples])
