"""The answers to one query: a list that is shown as a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import polars as pl

from anyburl.explanation.explanation import Explanation
from anyburl.explanation.record import Fact, Reason
from anyburl.rules.rule import Rule

SCHEMA = {
    "rank": pl.Int64,
    "entity": pl.String,
    "score": pl.Float64,
    "known": pl.String,
    "rule": pl.String,
    "rules": pl.Int64,
}
HEADINGS = ("rank", "answer", "score", "known in", "best rule", "rules")


@dataclass(frozen=True)
class Answer:
    """One candidate answer.

    `known` names the splits that state the triple. `rule` is the best of the `n_rules` rules behind it, or None if only
    another model predicts it. `explanation` and `reasons` are computed on first use.
    """

    entity: str
    score: float
    rank: int
    triple: Fact
    known: tuple[str, ...]
    rule: Rule | None
    n_rules: int
    _explain: Callable[[Fact], Explanation] = field(repr=False, compare=False)

    @cached_property
    def explanation(self) -> Explanation:
        """Why this is an answer; drawn in notebooks."""
        return self._explain(self.triple)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The rules behind this answer, best first, with the facts that make them fire."""
        return self.explanation.reasons

    def _repr_html_(self) -> str:
        return self.explanation._repr_html_()


class Answers(list[Answer]):
    """The answers that `predict` returns for one query, best first; a table in notebooks.

    `n_candidates` counts all candidates, and `n_known` the answers stated in train that were left out.
    """

    n_candidates: int = 0
    n_known: int = 0

    def to_polars(self) -> pl.DataFrame:
        """Return the columns rank, entity, score, known, rule (the best) and rules (how many)."""
        rows = [
            (
                answer.rank,
                answer.entity,
                answer.score,
                ",".join(answer.known),
                None if answer.rule is None else str(answer.rule),
                answer.n_rules,
            )
            for answer in self
        ]
        return pl.DataFrame(rows, schema=SCHEMA, orient="row")

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(answer))}</tr>" for answer in self)
        headings = "".join(f"<th>{name}</th>" for name in HEADINGS)
        return f"<table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(answer: Answer) -> tuple[str, ...]:
    known = ", ".join(answer.known)
    rule = "" if answer.rule is None else str(answer.rule)
    return str(answer.rank), answer.entity, f"{answer.score:.3f}", known, rule, str(answer.n_rules)
