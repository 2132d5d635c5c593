"""The answers of one query, as a list, a frame or a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from anyburl.prediction.predict import Answer

COLUMNS = {"rank": pl.Int64, "entity": pl.String, "score": pl.Float64, "known": pl.Boolean, "rule": pl.String}
HEADINGS = ("rank", "answer", "score", "known", "best rule")


class Answers(list["Answer"]):
    """What `predict` returns: a list of `Answer`s, best first, that notebooks show as a table."""

    def to_polars(self) -> pl.DataFrame:
        """Return the columns rank, entity, score, known and rule, the best of the rules behind each answer."""
        rows = [(answer.rank, answer.entity, answer.score, answer.known, _best_rule(answer)) for answer in self]
        return pl.DataFrame(rows, schema=COLUMNS, orient="row")

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(answer))}</tr>" for answer in self)
        headings = "".join(f"<th>{name}</th>" for name in HEADINGS)
        return f"<table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(answer: Answer) -> tuple[str, ...]:
    return str(answer.rank), answer.entity, f"{answer.score:.3f}", "yes" if answer.known else "", _best_rule(answer)


def _best_rule(answer: Answer) -> str:
    return str(answer.reasons[0].rule) if answer.reasons else ""
