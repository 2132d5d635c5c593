"""How many train facts entities have: the distribution, hubs, and isolated facts.

Facts that relate an entity to itself.

Facts whose subject or object has types that do not stand there, by a relation that states types.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import counted
from anyburl.data.dataset import all_types, stated_types
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Severity, share_text

HUB = 0.05  # the share of all facts that one entity has
FEWEST_FACTS = 100  # of a hub


def check_degrees(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the distribution of degrees, hubs, and isolated facts."""
    triples = facts.train
    if not len(triples):
        return []
    is_own = triples[:, 0] == triples[:, 2]
    degrees = np.bincount(triples[:, 0], minlength=facts.n_entities)
    degrees += np.bincount(triples[~is_own, 2], minlength=facts.n_entities)
    isolated = np.flatnonzero((degrees[triples[:, 0]] == 1) & (degrees[triples[:, 2]] == 1))
    findings = [_distribution(degrees, top)]
    findings += _hubs(facts, degrees, top)
    if len(isolated):
        sentence = f"{counted(len(isolated), 'fact is', 'facts are')} connected to no other"
        examples = facts.labels(triples[isolated[:top]])
        findings.append(Finding.of("degrees", Severity.NOTE, sentence, len(isolated), examples))
    return findings


def _distribution(degrees: NDArray[np.int64], top: int) -> Finding:
    known = degrees[degrees > 0]
    powers = np.floor(np.log2(known)).astype(np.int64)
    counts = np.bincount(powers)
    table = pl.DataFrame(
        {
            "facts": [_range(2**power, 2 ** (power + 1) - 1) for power in range(len(counts))],
            "entities": counts,
            "share": (counts / len(known)).round(3),
        }
    )
    once = int((known == 1).sum())
    sentence = (
        f"an entity has {np.median(known):g} facts in train (median; mean {known.mean():.1f}, most {known.max():,}); "
        f"{counted(once, 'entity has', 'entities have')} only one ({share_text(once, len(known))})"
    )
    return Finding.of("degrees", Severity.NOTE, sentence, len(known), table)


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _hubs(facts: DatasetFacts, degrees: NDArray[np.int64], top: int) -> list[Finding]:
    n_facts = len(facts.train)
    hubs = np.flatnonzero(degrees >= max(HUB * n_facts, FEWEST_FACTS))
    if not len(hubs):
        return []
    order = hubs[np.argsort(-degrees[hubs], kind="stable")][:top]
    table = pl.DataFrame(
        {
            "entity": facts.dataset.vocabulary.entities.gather(order),
            "facts": degrees[order],
            "share": (degrees[order] / n_facts).round(3),
        }
    )
    sentence = f"{counted(len(hubs), 'entity is', 'entities are')} in at least {HUB:.0%} of all facts"
    return [Finding.of("degrees", Severity.NOTE, sentence, len(hubs), table)]


def check_reflexive(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the relations with such facts, in any split; rare ones are more likely to be slips."""
    triples = facts.every
    own = triples[triples[:, 0] == triples[:, 2]]
    if not len(own):
        return []
    n_own = np.bincount(own[:, 1], minlength=facts.n_relations)
    sizes = np.bincount(triples[:, 1], minlength=facts.n_relations)
    relations, firsts = np.unique(own[:, 1], return_index=True)
    table = pl.DataFrame(
        {
            "relation": facts.relation_labels(relations),
            "reflexive facts": n_own[relations],
            "facts": sizes[relations],
            "such as": facts.labels(own[firsts])["subject"],
        }
    )
    examples = table.sort(pl.col("reflexive facts") / pl.col("facts"), "relation").head(top)
    words, relations_of = counted(len(own), "fact relates", "facts relate"), counted(len(relations), "relation")
    sentence = f"{words} an entity to itself ({share_text(len(own), len(triples))}), in {relations_of}"
    return [Finding.of("reflexive", Severity.WARNING, sentence, len(own), examples)]


RARE = 0.01  # the share of the facts of a relation below which a type does not belong to its place
FEWEST_TYPED_FACTS = 20


def check_types(facts: DatasetFacts, types: str, top: int) -> list[Finding]:
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


def _fit(facts: DatasetFacts, types: int, end: int) -> NDArray[np.float64]:
    """Return how common the most common type of each fact's entity is at its place, without the fact itself; 1 where
    nothing can be said.
    """
    train = facts.train
    stated = stated_types(facts.dataset, types).with_columns(is_stated=pl.lit(1))
    known = all_types(facts.dataset, types).join(stated, on=["entity", "type"], how="left")
    judged = pl.DataFrame({"row": np.arange(len(train)), "relation": train[:, 1], "entity": train[:, 2 * end]})
    judged = judged.filter((pl.col("relation") != types) & (pl.len().over("relation") >= FEWEST_TYPED_FACTS))
    own = pl.col("is_stated").fill_null(0)
    met = judged.join(known, on="entity").with_columns(
        n=own.sum().over("relation", "type") - own, of=pl.col("row").n_unique().over("relation")
    )
    best = met.group_by("row").agg((pl.col("n") / (pl.col("of") - 1).clip(1)).max().alias("share"))
    found = np.ones(len(train))
    found[best["row"].to_numpy()] = best["share"].to_numpy()
    return found
