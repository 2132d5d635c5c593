"""The best rules of a large run, read from a small file beside all of them, so that they can be shown at once.

    best.parquet  rules that are among the best of all, or of their relation, by one of the orders; with their surprise
    best.json     the seal of the rules.parquet that they are from, how many rules it holds, how many are kept, and
                  which of the first by the default order say nearly the same

The best of all that are kept, by any of the orders, are the best of all rules by that order. Nothing here imports a
compiler, which would take as long as all the rest; `learning/best.py`, which writes the file, does.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from anyburl.base.errors import AnyburlError
from anyburl.base.sealed import read_seal
from anyburl.rules.columns import SMOOTHING, RuleColumns
from anyburl.rules.files.parquet import read_rules_parquet
from anyburl.rules.files.run_folder import RULES, part_files

BEST, ABOUT = "best.parquet", "best.json"
ORDERS = ("confidence", "support", "value", "predictions", "worth")


@dataclass(frozen=True)
class BestRules:
    """The best rules, and how many there are in all: of the run, and of each relation."""

    rules: RuleColumns
    n_rules: int
    by_relation: dict[str, int]
    overall: int
    of_a_relation: int
    alike: tuple[int, ...]
    """For the first rules by the default order, the row of the first that says nearly the same."""

    @property
    def default_order(self) -> str:
        return "surprise" if self.rules.worth is None else "worth"

    def can_tell(self, order: str | None, n: int, smoothing: float, *, of_relation: bool) -> bool:
        """Return whether the first n rules by an order, of one relation or of all, are among those kept."""
        is_kept = order is None or order == "surprise" or (order in ORDERS and order != "worth")
        is_kept |= order == "worth" and self.rules.worth is not None
        is_smoothed = order != "confidence" or smoothing == SMOOTHING
        return is_kept and is_smoothed and n <= (self.of_a_relation if of_relation else self.overall)


def read_best(folder: Path) -> BestRules | None:
    """Return the best rules of a run folder; None if they are not kept, or are those of other rules."""
    with suppress(OSError, ValueError, KeyError, TypeError, AnyburlError):
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        if part_files(folder) or about["rules"] != read_seal(folder / RULES).hex():
            return None
        return BestRules(
            rules=read_rules_parquet(folder / BEST)[0],
            n_rules=int(about["total"]),
            by_relation=dict(about["by_relation"]),
            overall=int(about["overall"]),
            of_a_relation=int(about["of_a_relation"]),
            alike=tuple(map(int, about["alike"])),
        )
    return None
