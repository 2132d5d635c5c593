"""Tables of rules and of how many there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet

STYLES = {"B": "cyan", "Uc": "green", "Ud": "magenta", "Z": "dim"}
WIDTH_BESIDE_RULE = 60


def counts_table(counts: Mapping[str, int]) -> Table:
    """Return how many rules there are by type (rows) and length (columns); `counts` is like {"B 1": 11, "Uc 1": 35}."""
    cells = {(key.split()[0], int(key.split()[1])): n for key, n in counts.items()}
    lengths = sorted({length for _, length in cells})
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rules")
    for length in lengths:
        table.add_column(f"length {length}", justify="right")
    table.add_column("all", justify="right")
    for name in (name for name in STYLES if any(kind == name for kind, _ in cells)):
        row = [cells.get((name, length), 0) for length in lengths]
        table.add_row(Text(name, STYLES[name]), *(f"{n:,}" if n else "-" for n in row), f"{sum(row):,}")
    return table


def rules_table(rules: RuleSet) -> Table:
    """Return a table of all rules, in their order."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("type")
    table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("support", justify="right", no_wrap=True)
    table.add_column("predictions", justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold", ratio=1)
    for row in rule_rows(rules):
        about = "" if row["exact"] else "~"
        table.add_row(
            Text(row["type"], STYLES[row["type"]]),
            f"{row['confidence']:.4f}",
            f"{about}{row['support']:,}",
            f"{about}{row['predictions']:,}",
            rule_text(row["rule"]),
        )
    return table


def rule_text(rule: str) -> Text:
    """Return a rule with its head made bold."""
    head, arrow, body = rule.partition(" <= ")
    return Text.assemble((head, "bold"), (arrow, "dim"), body)


def table_width(rules: RuleSet) -> int:
    """Return how wide a table of these rules is, if no line is broken."""
    return WIDTH_BESIDE_RULE + max((len(text) for text in rules.texts()), default=0)


def rule_rows(rules: RuleSet) -> list[dict[str, Any]]:
    """Return the rules as plain values, for tables and JSON."""
    from anyburl.rules.types import RuleType

    names = [str(name) for name in RuleType]
    columns = {
        "type": [names[code] for code in rules.type],
        "length": rules.lengths.tolist(),
        "confidence": rules.confidence().tolist(),
        "support": rules.support.tolist(),
        "predictions": rules.predictions.tolist(),
        "exact": rules.exact.tolist(),
        "rule": rules.texts().to_list(),
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
