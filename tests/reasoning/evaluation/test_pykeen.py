"""Our metrics and PyKEEN's, on the same scores. Skipped where PyKEEN is not installed (extra `pykeen`)."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import anyburl
from anyburl import Dataset, Metrics, RuleSet
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import Ranker
from reference.ranking import strength

pytest.importorskip("torch", reason="torch is not installed: pip install 'anyburl[pykeen]'")
pytest.importorskip("pykeen", reason="PyKEEN is not installed: pip install 'anyburl[pykeen]'")

import torch
from pykeen.evaluation import RankBasedEvaluator
from pykeen.evaluation.evaluator import create_sparse_positive_filter_, filter_scores_

FIGURES = {"hits@1": "hits_at_1", "hits@3": "hits_at_3", "hits@10": "hits_at_10", "mrr": "inverse_harmonic_mean_rank"}
SIDES = {"object": "tail", "subject": "head"}
AGGREGATIONS = ["max", "noisy-or", "noisy-or-top:3"]


def random_data(seed: int) -> Dataset:
    """Triples over few entities, so that queries have many answers, in all splits, and ties are common."""
    rng = random.Random(seed)
    pairs = [(f"e{rng.randrange(30)}", f"e{rng.randrange(30)}") for _ in range(250)]
    triples = sorted({(s, f"r{rng.randrange(4)}", o) for s, o in pairs} | {(o, "back", s) for s, o in pairs[:150]})
    rng.shuffle(triples)
    return Dataset.from_triples(triples[80:], triples[40:80], triples[:40], name="random")


@pytest.fixture(scope="module", params=["geo", "random"])
def learned(request: pytest.FixtureRequest) -> tuple[Dataset, RuleSet]:
    """A data set and rules of it: so few that ties are common, and some answers are given by no rule."""
    data = anyburl.load_dataset("geo") if request.param == "geo" else random_data(1)
    rules = anyburl.learn(data, seconds=None, paths=1000, threads=1, seed=1)
    return data, rules.top(3000, by="value") if request.param == "geo" else rules.top(60, by="value")


def scores_of_query(ranker: Ranker, entity: int, relation: int, aggregation: str) -> NDArray[np.float64]:
    """A score for every entity, as the reference orders candidates; 0 for those that no rule gives."""
    firings = ranker.fire(entity, relation)
    scores = defaultdict(list)
    for candidate, score in zip(firings.candidates.tolist(), firings.scores.tolist(), strict=True):
        scores[candidate].append(score)
    strengths = {candidate: strength(found, aggregation) for candidate, found in scores.items()}
    places = {one: place for place, one in enumerate(sorted(set(strengths.values())), 1)}
    dense = np.zeros(ranker.vocabulary.n_entities)
    for candidate, one in strengths.items():
        dense[candidate] = places[one]
    return dense


def neighbours_of(data: Dataset) -> dict[int, set[int]]:
    """Whatever a train triple joins with an entity."""
    found = defaultdict(set)
    for s, _, o in data.train.triples.tolist():
        found[s].add(o)
        found[o].add(s)
    return found


def dense_scores(ranker: Ranker, data: Dataset, column: int) -> NDArray[np.float64]:
    """Scores of all entities as the objects (column 2) or subjects (column 0) of the test triples, known ones too.

    What is blocked is left out (not a number); but for the answer asked for, which counts as one that no rule gives.
    """
    neighbours = neighbours_of(data)
    n_relations = data.vocabulary.n_relations
    rows = []
    for triple in data.test.triples.tolist():
        entity, relation = triple[2 - column], triple[1] + (n_relations if column == 0 else 0)
        row = scores_of_query(ranker, entity, relation, ranker.options.aggregation)
        if ranker.block_connected:
            is_blocked = triple[column] in neighbours[entity]
            row[list(neighbours[entity])] = np.nan
            row[triple[column]] = 0 if is_blocked else row[triple[column]]
        rows.append(row)
    return np.array(rows)


def pykeen_metrics(ranker: Ranker, data: Dataset) -> Any:
    """What PyKEEN's evaluator makes of our scores, filtered by PyKEEN."""
    known = np.concatenate([data.split(name).triples for name in ("train", "valid", "test")])
    known_triples, batch = torch.as_tensor(known).long(), torch.as_tensor(data.test.triples.copy()).long()
    evaluator = RankBasedEvaluator(filtered=True)
    for column, target in ((2, "tail"), (0, "head")):
        scores = torch.as_tensor(dense_scores(ranker, data, column))
        true_scores = scores[torch.arange(len(batch)), batch[:, column]]
        positive, _ = create_sparse_positive_filter_(batch, known_triples, filter_col=column)
        scores = filter_scores_(scores, positive)
        scores[torch.arange(len(batch)), batch[:, column]] = true_scores
        evaluator.process_scores_(batch, target, scores, true_scores.unsqueeze(-1))
    return evaluator.finalize()


def our_figures(metrics: Metrics, side: str, ties: str) -> dict[str, float]:
    if side == "both":
        return metrics.metrics if ties == "realistic" else metrics.metrics[ties]
    return metrics.by_direction[next(name for name, target in SIDES.items() if target == side)]


@pytest.mark.parametrize("block", ["off", "on"])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_metrics_agree_with_pykeens_evaluator_on_the_same_scores(
    learned: tuple[Dataset, RuleSet], aggregation: str, block: str
) -> None:
    data, rules = learned
    options = RankOptions(aggregation=aggregation, block_connected=block, threads=1)
    reasoner = anyburl.Reasoner(rules, data, options)
    ours = reasoner.evaluate()
    theirs = pykeen_metrics(reasoner.ranker, data)
    assert 0.02 < ours.mrr < 0.98
    assert np.any(ours.ranks.optimistic != ours.ranks.pessimistic)
    compared = [("both", ties) for ties in ("realistic", "optimistic", "pessimistic")]
    for side, ties in [*compared, ("tail", "realistic"), ("head", "realistic")]:
        found = our_figures(ours, side, ties)
        for name, key in FIGURES.items():
            expected = theirs.get_metric(f"{side}.{ties}.{key}")
            assert found[name] == pytest.approx(expected, abs=1e-6), (side, ties, name)
