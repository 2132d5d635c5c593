"""Relations that state the same: inverse, symmetric, duplicate and nearly duplicate ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from anyburl.doctor.facts import Facts, pairs_of
from anyburl.doctor.findings import Finding, Severity
from anyburl.errors import counted

SIMILAR = 0.8  # the share of facts that two relations have in common, from which on they count as nearly the same
SAME = 0.97
FEWEST_SHARED = 5


def overlaps(facts: Facts) -> pl.DataFrame:
    """Return how many facts any two relations share, in all splits: `left`, `right`, `reversed`, `shared`, `n_left`,
    `n_right`.

    Where `reversed`, left(s, o) goes with right(o, s); a relation is then also compared with itself. Facts that join an
    entity with itself are left out.
    """
    triples = np.unique(facts.every[facts.every[:, 0] != facts.every[:, 2]], axis=0)
    sizes = np.bincount(triples[:, 1], minlength=facts.n_relations)
    forward = pl.DataFrame({"pair": pairs_of(triples, facts.n_entities), "left": triples[:, 1]})
    backward = pl.DataFrame({"pair": pairs_of(triples, facts.n_entities, back=True), "right": triples[:, 1]})
    same = forward.join(forward.rename({"left": "right"}), on="pair").filter(pl.col("left") < pl.col("right"))
    turned = forward.join(backward, on="pair").filter(pl.col("left") <= pl.col("right"))
    counts = [
        found.group_by("left", "right").agg(pl.len().cast(pl.Int64).alias("shared")).with_columns(reversed=pl.lit(way))
        for found, way in ((same, False), (turned, True))
    ]
    table = pl.concat(counts).filter(pl.col("shared") >= FEWEST_SHARED)
    return table.with_columns(
        n_left=pl.Series(sizes[table["left"].to_numpy()], dtype=pl.Int64),
        n_right=pl.Series(sizes[table["right"].to_numpy()], dtype=pl.Int64),
    ).sort("shared", "left", "right", descending=[True, False, False])


def check_similar(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    """Return the relations that `overlaps` shows to be inverse, symmetric or duplicate."""
    shares = found.with_columns(
        of_left=pl.col("shared") / pl.col("n_left"), of_right=pl.col("shared") / pl.col("n_right")
    ).with_columns(least=pl.min_horizontal("of_left", "of_right"), most=pl.max_horizontal("of_left", "of_right"))
    is_itself = pl.col("left") == pl.col("right")
    similar, turned = pl.col("least") >= SIMILAR, pl.col("reversed")
    return [
        *_inverse(facts, shares.filter(turned & ~is_itself & similar), top),
        *_symmetric(facts, shares.filter(turned & is_itself & similar), top),
        *_duplicate(facts, shares.filter(~turned & similar), top),
        *_contained(facts, shares.filter(~turned & ~similar & (pl.col("most") >= SAME)), top),
    ]


def _inverse(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    if found.is_empty():
        return []
    pairs = counted(len(found), "pair of relations is", "pairs of relations are")
    return [
        Finding.of("inverse", Severity.WARNING, f"{pairs} inverse to each other", len(found), _rows(facts, found, top))
    ]


def _symmetric(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    if found.is_empty():
        return []
    examples = _rows(facts, found, top).select("relation", "facts", pl.col("share").alias("share in both directions"))
    relations = counted(len(found), "relation is", "relations are")
    return [Finding.of("symmetric", Severity.NOTE, f"{relations} symmetric, or nearly so", len(found), examples)]


def _duplicate(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    if found.is_empty():
        return []
    kind = pl.when(pl.col("least") >= SAME).then(pl.lit("duplicate")).otherwise(pl.lit("nearly duplicate"))
    examples = _rows(facts, found, top).with_columns(found.head(top).select(kind.alias("kind")).to_series())
    pairs = counted(len(found), "pair of relations states", "pairs of relations state")
    return [Finding.of("duplicate", Severity.WARNING, f"{pairs} the same, or nearly so", len(found), examples)]


def _contained(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    if found.is_empty():
        return []
    n = counted(len(found), "relation is", "relations are")
    return [Finding.of("duplicate", Severity.NOTE, f"{n} part of another", len(found), _rows(facts, found, top))]


def _rows(facts: Facts, found: pl.DataFrame, top: int) -> pl.DataFrame:
    """Return pairs of relations in labels, with the shares of their facts that they have in common."""
    first = found.head(top)
    return pl.DataFrame(
        {
            "relation": facts.relation_labels(first["left"].to_numpy()),
            "facts": first["n_left"],
            "share": first["of_left"].round(3),
            "other": facts.relation_labels(first["right"].to_numpy()),
            "facts of the other": first["n_right"],
            "share of the other": first["of_right"].round(3),
        }
    )
