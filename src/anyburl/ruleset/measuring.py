"""Further measures of rules: PCA confidence, head coverage, lift."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import checking
from anyburl.errors import InvalidOptionError
from anyburl.graph.arrays import GraphArrays
from anyburl.ruleset import heads
from anyburl.ruleset.counting import Progress, count_rules, counting_limits, graph_for
from anyburl.ruleset.measures import MEASURES, pca_confidence
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.table import TripleTable


def measure(
    rules: RuleSet,
    table: TripleTable,
    *,
    only: Iterable[str] = MEASURES,
    object_identity: bool = True,
    budget: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RuleSet:
    """Return `rules` with `pca_confidence`, `head_coverage` and `lift`, or with `only` some of them.

    `table` is what the rules were learned from: head coverage and lift follow from their support and predictions. PCA
    confidence is counted; a `budget` of edges per body makes it an estimate for rules whose counts are already
    estimates (`exact` is False). `progress` is called with the number of rules counted.
    """
    wanted = set(checking.texts("only", only, f"some of {', '.join(MEASURES)}"))
    if unknown := wanted - set(MEASURES):
        raise InvalidOptionError("only", f"some of {', '.join(MEASURES)}", sorted(unknown)[0])
    graph = graph_for(rules, table)
    counting_limits(object_identity, budget, pca=True)
    checking.threads(threads)
    found: dict[str, Any] = {}
    if "head_coverage" in wanted:
        found["head_coverage"] = heads.head_coverage(graph, rules)
    if "lift" in wanted:
        found["lift"] = heads.lift(graph, rules)
    if "pca_confidence" in wanted:
        found["pca_confidence"] = _pca_confidence(rules, graph, object_identity, budget, threads, progress)
    return rules.replace(**found)


def _pca_confidence(
    rules: RuleSet,
    graph: GraphArrays,
    object_identity: bool,
    budget: int | None,
    threads: int | None,
    progress: Progress | None,
) -> NDArray[np.float64]:
    """Count exactly what is exact, and the rest within the budget; the support is counted on the same sample."""
    found = np.zeros(len(rules))
    for is_exact, most in ((True, None), (False, budget)):
        chosen = np.flatnonzero(rules.exact == is_exact)
        if len(chosen):
            limits = counting_limits(object_identity, most, pca=True)
            counts = count_rules(rules.take(chosen), graph, limits, threads, progress)
            found[chosen] = pca_confidence(counts.support, counts.pca_predictions)
    return found
