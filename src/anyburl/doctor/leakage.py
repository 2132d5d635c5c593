"""Leakage: valid and test facts that can be read off train, without any reasoning."""

from __future__ import annotations

import numpy as np
import polars as pl

from anyburl.doctor.facts import Facts, Triples, pairs_of
from anyburl.doctor.findings import Finding, Severity, share
from anyburl.doctor.similar import SIMILAR

HELD_OUT = ("valid", "test")


def check_leakage(facts: Facts, found: pl.DataFrame, top: int) -> list[Finding]:
    """Return the held-out facts that train states in the same or in other words; `found` is the table of `overlaps`.

    A fact r(s, o) is read off r'(s, o), or off r'(o, s), if at least 80 % of the facts of r' go with one of r in that
    way, in all splits together.
    """
    telling = _telling(facts, found)
    train = _frame(facts, facts.train).rename({"relation": "by", "row": "train_row"})
    findings = []
    for split in HELD_OUT:
        held_out = facts.dataset.split(split).triples
        leaks = _leaks(facts, held_out, train, telling)
        if leaks.is_empty():
            continue
        rows = leaks.unique("row", keep="first", maintain_order=True)
        of = f"{len(held_out):,} {split} facts ({share(len(rows), len(held_out))})"
        sentence = f"{len(rows):,} of {of} can be read off train"
        findings.append(
            Finding.of("leakage", Severity.PROBLEM, sentence, len(rows), _examples(facts, held_out, rows, top))
        )
    return findings


def _frame(facts: Facts, triples: Triples) -> pl.DataFrame:
    pairs = pairs_of(triples, facts.n_entities)
    return pl.DataFrame({"pair": pairs, "relation": triples[:, 1], "row": np.arange(len(triples))})


def _telling(facts: Facts, found: pl.DataFrame) -> pl.DataFrame:
    """Return which relation (`by`) tells which: both ways round, and each relation itself."""
    ways = [
        found.select(
            pl.col(told).alias("relation"),
            pl.col(by).alias("by"),
            "reversed",
            (pl.col("shared") / pl.col(n)).alias("share"),
        )
        for told, by, n in (("left", "right", "n_right"), ("right", "left", "n_left"))
    ]
    numbers = pl.Series(np.arange(facts.n_relations, dtype=np.int32))
    itself = pl.DataFrame({"relation": numbers, "by": numbers}).with_columns(reversed=pl.lit(False), share=pl.lit(1.0))
    return pl.concat([*ways, itself]).filter(pl.col("share") >= SIMILAR).unique(["relation", "by", "reversed"])


def _leaks(facts: Facts, held_out: Triples, train: pl.DataFrame, telling: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of held-out facts and of the train facts that tell them, the fact itself first."""
    asked = _frame(facts, held_out)
    turned = asked.with_columns(pair=pl.Series(pairs_of(held_out, facts.n_entities, back=True)))
    met = [
        part.join(train, on="pair").join(telling.filter(pl.col("reversed") == way), on=["relation", "by"])
        for part, way in ((asked, False), (turned, True))
    ]
    is_itself = (pl.col("relation") == pl.col("by")) & ~pl.col("reversed")
    return pl.concat(met).with_columns(itself=is_itself).sort("row", pl.col("itself").not_(), pl.col("share").neg())


def _examples(facts: Facts, held_out: Triples, rows: pl.DataFrame, top: int) -> pl.DataFrame:
    first = rows.head(top)
    told = facts.labels(held_out[first["row"].to_numpy()])
    teller = facts.labels(facts.train[first["train_row"].to_numpy()])
    in_train = teller.select(pl.concat_str(pl.all(), separator=" ").alias("in train")).to_series()
    how = (
        pl.when(pl.col("itself"))
        .then(pl.lit("the fact itself"))
        .when(pl.col("reversed"))
        .then(pl.lit("the other way round"))
        .otherwise(pl.lit("another relation"))
    )
    return told.with_columns(in_train, first.select(how.alias("how")).to_series())
