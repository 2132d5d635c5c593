"""What is compared with the golden files: small, rounded, and the same on every machine."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl

import anyburl
from anyburl import Dataset, Reasoner, RuleSet

FOLDER = Path(__file__).parent
SEEDS = (1, 2)
PATHS = 5000
FEWER = {"nations": {"max_cyclic": 2}}
"""Of length 3, nations has more than a million rules: those of the other data sets are compared."""
AGGREGATIONS = ("max", "noisy-or-top:5")
N_SHOWN = 5


def golden_file(name: str, seed: int) -> Path:
    return FOLDER / f"{name}-{seed}.json"


def results(data: Dataset, seed: int) -> dict[str, Any]:
    """Learn with a budget of paths, then evaluate, explain and complete."""
    rules = anyburl.learn(data, paths=PATHS, keep="all", seed=seed, threads=2, **FEWER.get(data.name, {}))
    reasoner = Reasoner(rules, data)
    return {
        "data": data.fingerprint,
        "rules": rules_of(rules),
        "metrics": {name: metrics_of(reasoner, name) for name in AGGREGATIONS},
        "explanation": explanation_of(reasoner, data),
        "completion": completion_of(reasoner),
    }


def rules_of(rules: RuleSet) -> dict[str, Any]:
    lines = pl.DataFrame({"predictions": rules.predictions, "support": rules.support, "rule": rules.texts()})
    text = lines.sort("rule").write_csv(separator="\t", quote_style="never")
    best = rules.top(N_SHOWN)
    counts = zip(best.support.tolist(), best.predictions.tolist(), best.texts().to_list(), strict=True)
    return {
        "by_length": rules.counts_by_length(),
        "digest": hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
        "best": [f"{support} of {predictions}: {rule}" for support, predictions, rule in counts],
    }


def metrics_of(reasoner: Reasoner, aggregation: str) -> dict[str, float]:
    found = reasoner.with_aggregation(aggregation).evaluate().metrics  # on the same index
    return {name: round(found[name], 6) for name in ("hits@1", "hits@3", "hits@10", "mrr")}


def explanation_of(reasoner: Reasoner, data: Dataset) -> dict[str, Any]:
    """Explain the first triple of test that a rule predicts."""
    for triple in data.test.to_polars().iter_rows():
        found = reasoner.explain(triple, top=N_SHOWN, groundings=1)
        if found.reasons:
            reasons = [[str(reason.rule), round(reason.confidence, 6), reason.groundings] for reason in found.reasons]
            return json.loads(json.dumps({"triple": triple, "rank": found.rank, "reasons": reasons}))
    return {}


def completion_of(reasoner: Reasoner) -> dict[str, Any]:
    facts = pl.concat(list(reasoner.complete(min_score=0.7)))
    ordered = facts.sort("score", "subject", "relation", "object", descending=[True, False, False, False])
    best = ordered.head(N_SHOWN).select("subject", "relation", "object", pl.col("score").round(6))
    return {"facts": len(facts), "best": [list(row) for row in best.iter_rows()]}
