"""Facts to check by hand, the most suspicious first, and those whose subject or object does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity, share
from anyburl.doctor.functional import WORDS, Functional
from anyburl.doctor.suspicion import SUSPICIOUS, Suspicion
from anyburl.errors import counted
from anyburl.explanation.words import rule_text

TELLING = float(np.log(2))  # what is less is no reason
ENDS = ("subject", "object")


def check_suspects(facts: Facts, functional: Sequence[Functional], found: Suspicion, top: int) -> list[Finding]:
    """Return the facts of train that are 100 times likelier to be found as they are if they are wrong."""
    total = found.total
    n = int((total >= SUSPICIOUS).sum())
    if not n:
        return []
    rows = found.order()[: min(n, top)]
    reasons = Reasons(facts, functional, found)
    examples = facts.labels(facts.train[rows]).with_columns(
        pl.Series("suspicion", total[rows].round(1)), pl.Series("why", [reasons.of(int(row)) for row in rows])
    )
    by = "" if found.rules is not None else ", by the relations of their entities alone (no rules)"
    sentence = (
        f"{counted(n, 'fact')} of {len(total):,} in train {'looks' if n == 1 else 'look'} wrong{by}: check by hand"
    )
    return [Finding.of("suspects", Severity.WARNING, sentence, n, examples)]


def check_kinds(facts: Facts, found: Suspicion, top: int) -> list[Finding]:
    """Return the facts with a subject or an object that has other relations than those that fit."""
    rows = np.flatnonzero(found.by_kinds >= SUSPICIOUS)
    if not len(rows):
        return []
    first = rows[np.argsort(-found.by_kinds[rows], kind="stable")][:top]
    ends = [ENDS[end] for end in found.worse[first]]
    examples = facts.labels(facts.train[first]).with_columns(pl.Series("does not fit", ends))
    words = counted(len(rows), "fact has", "facts have")
    sentence = f"{words} a subject or object whose relations differ from what is usual there"
    return [Finding.of("types", Severity.WARNING, sentence, len(rows), examples)]


class Reasons:
    """What speaks against facts, in words."""

    def __init__(self, facts: Facts, functional: Sequence[Functional], found: Suspicion) -> None:
        self._facts, self._functional, self._found = facts, functional, found
        self._names = facts.dataset.names

    def of(self, row: int) -> str:
        """Return the reasons to suspect the fact at a row of train."""
        return "; ".join(self._parts(row))

    def _parts(self, row: int) -> Iterator[str]:
        found = self._found
        answer = int(found.contradicted.answers[row])
        if answer >= 0:
            label, score = self._facts.dataset.vocabulary.entity_label(answer), found.contradicted.scores[row]
            rule = self._rule(int(found.contradicted.rows[row]))
            yield f"rules predict {self._names.get(label)} instead ({score:.2f}): {rule}"
        if found.by_rules[row] >= TELLING:
            yield self._support(row)
        for one in self._functional:
            if found.by_answers[row] >= TELLING and one.breaking(self._relations)[row]:
                word, other = WORDS[one.back]
                yield f"one of {one.n_answers[row]} {other}s, where nearly every {word} has one"
        if found.by_kinds[row] >= TELLING:
            yield self._fit(row)

    @property
    def _relations(self) -> NDArray[np.int32]:
        relations: NDArray[np.int32] = self._facts.train[:, 1]
        return relations

    def _support(self, row: int) -> str:
        supported = self._found.supported
        assert supported is not None
        beside = supported.scores[self._relations == self._relations[row]]
        better = share(int((beside > supported.scores[row]).sum()), len(beside))
        if supported.rows[row] < 0:
            return f"no rule supports it, and rules support {better} of the facts of this relation"
        rule = self._rule(int(supported.rows[row]))
        return f"{better} of the facts of this relation have a better rule than {rule} ({supported.scores[row]:.2f})"

    def _fit(self, row: int) -> str:
        end = int(self._found.worse[row])
        beside = self._found.fits[self._relations == self._relations[row], end]
        better = share(int((beside > self._found.fits[row, end]).sum()), len(beside))
        return f"its {ENDS[end]} fits worse than {better} of the {ENDS[end]}s of this relation"

    def _rule(self, row: int) -> str:
        assert self._found.rules is not None
        return rule_text(self._found.rules.rule(row), self._names)
