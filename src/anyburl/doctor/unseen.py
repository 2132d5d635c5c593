"""Entities and relations of valid and test that train lacks; no model that learns from train can know them."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts, Triples
from anyburl.doctor.findings import Finding, Severity
from anyburl.doctor.leakage import HELD_OUT
from anyburl.errors import counted


def check_unseen(facts: Facts, top: int) -> list[Finding]:
    """Return how many facts of valid and of test have an entity, or a relation, that train lacks."""
    entities = np.zeros(facts.n_entities, np.bool_)
    entities[facts.train[:, [0, 2]]] = True
    relations = np.bincount(facts.train[:, 1], minlength=facts.n_relations) > 0
    findings = []
    for split in HELD_OUT:
        triples = facts.dataset.split(split).triples
        findings += _unseen_entities(facts, split, triples, ~entities[triples[:, [0, 2]]], top)
        findings += _unseen_relations(facts, split, triples, ~relations[triples[:, 1]], top)
    return findings


def _unseen_entities(facts: Facts, split: str, triples: Triples, unseen: NDArray[np.bool_], top: int) -> list[Finding]:
    rows = np.flatnonzero(unseen.any(axis=1))
    if not len(rows):
        return []
    n_different = len(np.unique(triples[:, [0, 2]][unseen]))
    examples = facts.labels(triples[rows[:top]])
    subject, object = (pl.Series(unseen[rows[:top], place]) for place in (0, 1))
    which = (
        pl.when(subject & object).then(pl.lit("both")).when(subject).then(pl.lit("subject")).otherwise(pl.lit("object"))
    )
    sentence = (
        f"{counted(len(rows), f'{split} fact has', f'{split} facts have')} an entity that train lacks "
        f"({counted(n_different, 'entity', 'entities')})"
    )
    return [Finding.of("unseen", Severity.PROBLEM, sentence, len(rows), examples.with_columns(which.alias("unseen")))]


def _unseen_relations(facts: Facts, split: str, triples: Triples, unseen: NDArray[np.bool_], top: int) -> list[Finding]:
    rows = np.flatnonzero(unseen)
    if not len(rows):
        return []
    n_different = len(np.unique(triples[rows, 1]))
    sentence = (
        f"{counted(len(rows), f'{split} fact has', f'{split} facts have')} a relation that train lacks "
        f"({counted(n_different, 'relation')})"
    )
    return [Finding.of("unseen", Severity.PROBLEM, sentence, len(rows), facts.labels(triples[rows[:top]]))]
