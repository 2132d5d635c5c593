"""Facts whose subject or object has types that do not stand there, by a relation that states types."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity
from anyburl.errors import counted
from anyburl.triples.types import all_types, stated_types

RARE = 0.01  # the share of the facts of a relation below which a type does not belong to its place
FEWEST_FACTS = 20


def check_types(facts: Facts, types: str, top: int) -> list[Finding]:
    """Return the facts of train with an entity none of whose types is at home at its place.

    A type is at home where at least 1 % of the other facts of the relation have an entity of that type, and so are the
    classes below it. Entities without a type are not judged.
    """
    names, vocabulary = facts.dataset.names, facts.dataset.vocabulary
    relation = names.relation_id(types, vocabulary)
    fit = np.stack([_fit(facts, relation, end) for end in (0, 1)], axis=1)
    rows = np.flatnonzero((fit < RARE).any(axis=1))
    if not len(rows):
        return []
    first = rows[np.argsort(fit[rows].min(axis=1), kind="stable")][:top]
    ends = [" and ".join(np.array(["subject", "object"])[fit[row] < RARE]) for row in first]
    examples = facts.labels(facts.train[first]).with_columns(pl.Series("does not fit", ends))
    words = counted(len(rows), "fact has", "facts have")
    sentence = f"{words} a subject or object of types that do not stand there, by {names.get(types)}"
    return [Finding.of("types", Severity.WARNING, sentence, len(rows), examples)]


def _fit(facts: Facts, types: int, end: int) -> NDArray[np.float64]:
    """Return how common the most common type of each fact's entity is at its place, without the fact itself; 1 where
    nothing can be said.
    """
    train = facts.train
    stated = stated_types(facts.dataset, types).with_columns(is_stated=pl.lit(1))
    known = all_types(facts.dataset, types).join(stated, on=["entity", "type"], how="left")
    judged = pl.DataFrame({"row": np.arange(len(train)), "relation": train[:, 1], "entity": train[:, 2 * end]})
    judged = judged.filter((pl.col("relation") != types) & (pl.len().over("relation") >= FEWEST_FACTS))
    own = pl.col("is_stated").fill_null(0)
    met = judged.join(known, on="entity").with_columns(
        n=own.sum().over("relation", "type") - own, of=pl.col("row").n_unique().over("relation")
    )
    best = met.group_by("row").agg((pl.col("n") / (pl.col("of") - 1).clip(1)).max().alias("share"))
    found = np.ones(len(train))
    found[best["row"].to_numpy()] = best["share"].to_numpy()
    return found
