"""Relations that have one answer to nearly every question, and the facts that break this."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts, questions_of
from anyburl.doctor.findings import Finding, Severity
from anyburl.errors import counted

FUNCTIONAL = 0.95  # the share of questions with one answer
FEWEST_QUESTIONS = 20
WORDS = {False: ("subject", "object"), True: ("object", "subject")}


@dataclass(frozen=True)
class Functional:
    """What train shows for questions (s, r, ?), or for (?, r, o) if `back`."""

    back: bool
    n_questions: NDArray[np.int64]  # relation -> how many different ones
    n_single: NDArray[np.int64]  # of these, how many have one answer
    n_answers: NDArray[np.int64]  # row of train -> how many answers its question has

    @property
    def relations(self) -> NDArray[np.bool_]:
        """Which relations are functional, or nearly so."""
        enough = self.n_questions >= FEWEST_QUESTIONS
        found: NDArray[np.bool_] = enough & (self.n_single >= FUNCTIONAL * self.n_questions)
        return found

    def breaking(self, relations: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which facts break a functional relation; `relations` are those of the rows of train."""
        found: NDArray[np.bool_] = self.relations[relations] & (self.n_answers > 1)
        return found


def find_functional(facts: Facts, *, back: bool) -> Functional:
    """Count the answers to every question that train answers."""
    questions, places, counts = np.unique(
        questions_of(facts.train, facts.n_relations, back=back), return_inverse=True, return_counts=True
    )
    relations = questions % facts.n_relations
    n_questions = np.bincount(relations, minlength=facts.n_relations)
    n_single = np.bincount(relations[counts == 1], minlength=facts.n_relations)
    return Functional(back, n_questions, n_single, counts[places])


def check_functional(facts: Facts, both: list[Functional], top: int) -> list[Finding]:
    """Return, for either direction, the nearly functional relations and the facts that break them."""
    return [finding for found in both for finding in _check(facts, found, top)]


def _check(facts: Facts, found: Functional, top: int) -> list[Finding]:
    relations = np.flatnonzero(found.relations)
    if not len(relations):
        return []
    one, other = WORDS[found.back]
    triples, breaking = facts.train, found.breaking(facts.train[:, 1])
    words = counted(len(relations), "relation has", "relations have")
    sentence = f"{words} one {other} for (nearly) every {one}"
    if not breaking.any():
        labels = facts.relation_labels(relations[:top])
        examples = pl.DataFrame({"relation": labels, f"{one}s": found.n_questions[relations[:top]]})
        return [Finding.of("functional", Severity.NOTE, sentence, 0, examples)]
    shares = found.n_single / np.maximum(found.n_questions, 1)
    rows = np.flatnonzero(breaking)
    questions = questions_of(triples[rows], facts.n_relations, back=found.back)
    rows = rows[np.lexsort((questions, -shares[triples[rows, 1]]))][:top]
    examples = facts.labels(triples[rows]).with_columns(
        pl.Series(f"{other}s of this {one}", found.n_answers[rows]),
        pl.Series("share with one", shares[triples[rows, 1]].round(3)),
    )
    n = int(breaking.sum())
    return [
        Finding.of(
            "functional", Severity.WARNING, f"{sentence}; {counted(n, 'fact breaks', 'facts break')} this", n, examples
        )
    ]
