"""Facts that relate an entity to itself."""

from __future__ import annotations

import numpy as np
import polars as pl

from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity, share
from anyburl.errors import counted


def check_reflexive(facts: Facts, top: int) -> list[Finding]:
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
    sentence = f"{words} an entity to itself ({share(len(own), len(triples))}), in {relations_of}"
    return [Finding.of("reflexive", Severity.WARNING, sentence, len(own), examples)]
