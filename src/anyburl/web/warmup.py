"""Compiles the kernels of all pages before anyone waits for one."""

from __future__ import annotations

import polars as pl

from anyburl.reasoning.warmup import warm_up
from anyburl.search.search import LabelSearch

LABELS = ("Amsterdam", "Berlin")
ASKED = ("Ams", "dam", "Amstredam")
"""The start of a label, a part of it, and one with a typing error."""


def warm_up_explorer(n_relations: int) -> None:
    """Compile the kernels for data with `n_relations`, or load them."""
    warm_up(n_relations, explaining=True, completing=True)
    labels = pl.Series(LABELS)
    search = LabelSearch.build(labels, labels)
    for text in ASKED:
        search.find(text)
