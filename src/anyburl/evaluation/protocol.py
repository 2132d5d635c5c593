"""What an answer is ranked against: all entities, or a few drawn at random, as in GraIL and later papers.

Among negatives drawn at random, a rank depends on nothing but the full rank: it is drawn, or its mean computed, from
how many rivals are better and how many tie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import InvalidOptionError
from anyburl.evaluation.metrics import HITS
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.options import PROTOCOLS
from anyburl.ranking.ranks import Ranks

N_NEGATIVES = 49
AT_A_TIME = 1 << 22  # numbers held in memory

Ints = NDArray[np.int64]


def check_protocol(protocol: str) -> None:
    """Refuse what is no protocol."""
    if protocol not in PROTOCOLS:
        raise InvalidOptionError("protocol", f"one of {', '.join(PROTOCOLS)}", protocol)


def count_rivals(queries: QueryArrays, answers: AnswerArrays, n_entities: int) -> Ints:
    """Return against how many entities each target is ranked."""
    sizes = np.diff(queries.target_offsets)
    rivals: Ints = np.repeat(n_entities - answers.n_excluded - sizes, sizes)
    return rivals


def sample_ranks(ranks: Ranks, n_rivals: Ints, seed: int = 0) -> Ranks:
    """Return ranks against `N_NEGATIVES` rivals drawn without replacement; all where there are fewer."""
    rng = np.random.default_rng(seed)
    better, tied, worse = _split(ranks, n_rivals)
    n_drawn = np.minimum(N_NEGATIVES, better + tied + worse)
    drawn_better = rng.hypergeometric(better, tied + worse, n_drawn)
    drawn_tied = rng.hypergeometric(tied, worse, n_drawn - drawn_better)
    return Ranks(1 + drawn_better, 1 + drawn_better + drawn_tied)


def estimate_sampled(ranks: Ranks, n_rivals: Ints) -> dict[str, float]:
    """Return the means of hits@k and MRR that `sample_ranks` has over all draws, ties counted half."""
    if not len(n_rivals):
        return {**{f"hits@{k}": 0.0 for k in HITS}, "mrr": 0.0}
    cases, counts = np.unique(np.column_stack(_split(ranks, n_rivals)), axis=0, return_counts=True)
    drawn = np.arange(N_NEGATIVES + 1)
    rank = 1 + drawn[:, None] + drawn[None, :] / 2
    values = {**{f"hits@{k}": (rank <= k).astype(np.float64) for k in HITS}, "mrr": 1 / rank}
    totals = dict.fromkeys(values, 0.0)
    size = AT_A_TIME // rank.size
    for start in range(0, len(cases), size):
        chances = _chances(cases[start : start + size]) * counts[start : start + size, None, None]
        for name, value in values.items():
            totals[name] += float((chances * value).sum())
    return {name: total / len(n_rivals) for name, total in totals.items()}


def _split(ranks: Ranks, n_rivals: Ints) -> tuple[Ints, Ints, Ints]:
    """Return how many rivals are better, tie, and are worse."""
    better, tied = ranks.optimistic - 1, ranks.pessimistic - ranks.optimistic
    return better, tied, np.maximum(n_rivals - better - tied, 0)


def _chances(cases: Ints) -> NDArray[np.float64]:
    """Return the chance of drawing this many better and tied rivals, for each case: (cases, better, tied)."""
    better, tied, worse = (column[:, None, None] for column in cases.T)
    n_drawn = np.minimum(N_NEGATIVES, better + tied + worse)
    drawn = np.arange(N_NEGATIVES + 1)
    first, second = drawn[None, :, None], drawn[None, None, :]
    rest = n_drawn - first - second
    possible = (first <= better) & (second <= tied) & (rest >= 0) & (rest <= worse)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, cases.sum(axis=1).max() + 1)))])

    def choose(n: Ints, k: Ints) -> NDArray[np.float64]:
        k = np.clip(k, 0, n)
        return np.asarray(logarithms[n] - logarithms[k] - logarithms[n - k])

    chances = choose(better, first) + choose(tied, second) + choose(worse, rest)
    return np.where(possible, np.exp(chances - choose(better + tied + worse, n_drawn)), 0.0)
