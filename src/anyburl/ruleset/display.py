"""Rules for display: one rule as an object, and tables of the first few."""

from __future__ import annotations

import html
from typing import Literal

from rich.table import Table
from rich.text import Text

from anyburl.rules.rule import BODY_VARIABLES, SELF, Atom, Constant, Rule, Term, Variable, X, Y
from anyburl.rules.types import RuleType
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.texts import RuleTexts

N_SHOWN = 10
HEADINGS = ("type", "confidence", "support/predictions", "rule")
SIDES: tuple[Literal["left", "right"], ...] = ("left", "right", "right", "left")


def view(rules: RuleColumns, row: int) -> Rule:
    """Return the rule at a row as an object."""
    path = [int(step) for step in rules.bodies[rules.body[row]] if step >= 0]
    head = int(rules.head[row])
    is_binary = rules.type[row] == RuleType.BINARY.code
    start, end = (X, Y) if head < rules.vocabulary.n_relations else (Y, X)
    far = end if is_binary else _constant(rules, int(rules.head_constant[row]))
    terms: list[Term] = [start, *map(Variable, BODY_VARIABLES[: len(path)])]
    if is_binary:
        terms[-1] = end
    elif rules.body_constant[row] >= 0:
        terms[-1] = _constant(rules, int(rules.body_constant[row]))
    steps = zip(path, terms[:-1], terms[1:], strict=True)
    return Rule(_atom(rules, head, start, far), tuple(_atom(rules, *step) for step in steps))


def rich_table(rules: RuleColumns) -> Table:
    """Return a table of the first rules for the console."""
    table = Table(title=_title(rules), title_justify="left", caption=_rest(rules), caption_justify="left")
    for name, side in zip(HEADINGS, SIDES, strict=True):
        table.add_column(name, justify=side, overflow="fold")
    for cells in _first_rows(rules):
        table.add_row(*map(Text, cells))
    return table


def html_table(rules: RuleColumns) -> str:
    """Return a table of the first rules for notebooks."""
    headings = "".join(f"<th>{name}</th>" for name in HEADINGS)
    rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in _first_rows(rules))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f"<table><caption>{html.escape(_title(rules))}</caption>"
        f"<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>{_rest(rules) or ''}"
    )


def _title(rules: RuleColumns) -> str:
    counts = ", ".join(f"{n:,} {name}" for name, n in rules.counts_by_type().items() if n)
    return f"{len(rules):,} rules" + (f" ({counts})" if counts else "")


def _rest(rules: RuleColumns) -> str | None:
    return f"and {len(rules) - N_SHOWN:,} more" if len(rules) > N_SHOWN else None


def _first_rows(rules: RuleColumns) -> list[tuple[str, str, str, str]]:
    few = rules.slice(0, N_SHOWN)
    names = list(RuleType)
    counts = zip(few.support, few.predictions, few.exact, strict=True)
    scores = [f"{support}/{'' if exact else '~'}{predictions}" for support, predictions, exact in counts]
    columns = zip(few.type, few.confidence(), scores, RuleTexts(few).texts(0, len(few)), strict=True)
    return [(str(names[code]), f"{confidence:.4f}", score, text) for code, confidence, score, text in columns]


def _atom(rules: RuleColumns, directed: int, here: Term, there: Term) -> Atom:
    n_relations = rules.vocabulary.n_relations
    relation = rules.vocabulary.relation_label(directed % n_relations)
    return Atom(relation, here, there) if directed < n_relations else Atom(relation, there, here)


def _constant(rules: RuleColumns, entity: int) -> Constant:
    is_self = entity == rules.vocabulary.self_id
    return SELF if is_self else Constant(rules.vocabulary.entity_label(entity))
