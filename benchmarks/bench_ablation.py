"""What each part of a tuned model is worth: MRR on questions of valid, by models that have not seen them.

python benchmarks/bench_ablation.py [--data WN18RR,CoDEx-S,FB15k-237] [--seed 1] [--only WORDS] --runs FOLDER

Rules are taken from FOLDER/NAME-SEED, as `bench_tuned.py --runs FOLDER` leaves them. The test split is not looked at.
With --only, the ways to train with these words in their names are compared. What is stored already is measured again
only with --again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyburl
from anyburl.models.tuned import kernel, listing, train
from anyburl.models.tuned import model as lessons
from anyburl.models.tuned.fallback import STEPS
from anyburl.models.tuned.model import Lessons
from anyburl.models.tuned.observations import rule_groups
from anyburl.models.tuned.train import tune
from anyburl.ranking.kernel_order import N_BEST
from common import HERE, save

LIKENESS = kernel.N_COLUMNS
NEARNESS = LIKENESS + 3 + STEPS
OTHERS = NEARNESS + 12  # columns that tell of lists, relations and degrees
SUMS = OTHERS - 4  # the first of them: over all groups of rules, and the place in the list
COLUMNS = {
    "without likeness": slice(-LIKENESS, None),
    "without fit and nearness": slice(-NEARNESS, -LIKENESS),
    "without degrees and counts": slice(-OTHERS, -NEARNESS),
    "without sums over groups and places": slice(-OTHERS, -SUMS),
    "without groups of rules": slice(N_BEST, -OTHERS),
}


@contextmanager
def blank(columns: slice) -> Iterator[None]:
    """Tell the model nothing in some columns."""
    rows_of: Callable[..., Any] = listing.rows_of

    def changed(*given: Any) -> Any:
        rows = rows_of(*given)
        rows[:, columns] = 0
        return rows

    with patch.object(listing, "rows_of", changed):
        yield


@contextmanager
def one_loss(place: int) -> Iterator[None]:
    """Fit one forest only."""
    objectives = Lessons.objectives
    with patch.object(Lessons, "objectives", lambda self: [objectives(self)[place]]):
        yield


def variants() -> dict[str, Any]:
    """Return the ways to train that are compared."""
    return {
        "all of it": blank(slice(0, 0)),
        **{name: blank(columns) for name, columns in COLUMNS.items()},
        "one forest, choice": one_loss(0),
        "one forest, pairs": one_loss(1),
        "every candidate of every list": patch.object(lessons, "MANY_LISTS", 1 << 60),
        "a sample of every list": patch.object(lessons, "MANY_LISTS", 0),
        "weak B rules fire, too": patch.object(train, "FEW_LOST", -1.0),
    }


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="CoDEx-S,WN18RR,FB15k-237")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    path = HERE / "results" / "ablation.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    for name in chosen.data.split(","):
        found = results.setdefault(name if chosen.seed == 1 else f"{name}, seed {chosen.seed}", {})
        with anyburl.Reasoner.open(chosen.runs / f"{name}-{chosen.seed}", block_connected="off") as reasoner:
            groups = rule_groups(reasoner.rules)
            for variant, way in variants().items():
                if chosen.only in variant and (variant not in found or chosen.again):
                    with way:
                        tuning = tune(reasoner.ranker, reasoner.dataset, groups, seed=chosen.seed)
                    mrr = round(tuning.validation.get("model", 0.0), 4)
                    found[variant] = {"mrr": mrr, "questions": tuning.questions, "seconds": round(tuning.seconds, 1)}
                    save("ablation", results, "python benchmarks/bench_ablation.py --runs FOLDER")


if __name__ == "__main__":
    main()
