"""How many train facts entities have: the distribution, hubs, and isolated facts."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity, share
from anyburl.errors import counted

HUB = 0.05  # the share of all facts that one entity has
FEWEST_FACTS = 100  # of a hub


def check_degrees(facts: Facts, top: int) -> list[Finding]:
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
        f"{counted(once, 'entity has', 'entities have')} only one ({share(once, len(known))})"
    )
    return Finding.of("degrees", Severity.NOTE, sentence, len(known), table)


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _hubs(facts: Facts, degrees: NDArray[np.int64], top: int) -> list[Finding]:
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
