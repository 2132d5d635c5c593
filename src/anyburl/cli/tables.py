"""Tables of rules and of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from anyburl.learning.outlook import Outlook
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.names import Names

STYLES = {"B": "cyan", "Uc": "green", "Ud": "magenta", "Z": "dim"}
WIDTH_BESIDE_RULE = 60
WIDTH_OF_MEASURES = 40


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


def outlook_table(outlooks: Sequence[Outlook]) -> Table:
    """Return what was seen of each profile, and what more time would bring."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("profile")
    for name in ("core-seconds", "bodies", "seen", "new rules per core-second"):
        table.add_column(name, justify="right")
    for entry in outlooks:
        table.add_row(
            str(entry.profile),
            f"{entry.core_seconds:,.1f}",
            f"{entry.bodies:,}",
            f"{entry.seen:.0%}" if entry.seen in (0, 1) else f"{min(max(entry.seen, 0.001), 0.999):.1%}",
            f"{entry.rules_per_second:,.0f}",
        )
    return table


def rules_table(rules: RuleSet, names: Names | None = None) -> Table:
    """Return a table of all rules, in their order, with readable names if there are any."""
    from anyburl.ruleset.columns import COLUMNS

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("type")
    table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("support", justify="right", no_wrap=True)
    table.add_column("predictions", justify="right", no_wrap=True)
    for name in rules.measures:
        table.add_column(COLUMNS[name].heading, justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold", ratio=1)
    for row in rule_rows(rules, names):
        about = "" if row["exact"] else "~"
        table.add_row(
            Text(row["type"], STYLES[row["type"]]),
            f"{row['confidence']:.4f}",
            f"{about}{row['support']:,}",
            f"{about}{row['predictions']:,}",
            *(_measure_text(row[name], COLUMNS[name].most) for name in rules.measures),
            rule_text(row.get("named", row["rule"])),
        )
    return table


def _measure_text(value: float, most: float) -> str:
    """Return a measure as text, with fewer decimals where it can be large."""
    return f"{value:,.1f}" if most > 1 and value >= 10 else f"{value:.4f}"


def rule_text(rule: str) -> Text:
    """Return a rule with its head made bold."""
    head, arrow, body = rule.partition(" <= ")
    return Text.assemble((head, "bold"), (arrow, "dim"), body)


def table_width(rules: RuleSet, names: Names | None = None) -> int:
    """Return the width of a table of these rules if no line is broken."""
    beside = WIDTH_BESIDE_RULE + (WIDTH_OF_MEASURES if rules.measures else 0)
    return beside + max((len(row.get("named", row["rule"])) for row in rule_rows(rules, names)), default=0)


def _margins(rules: RuleSet) -> dict[str, list[float | None]]:
    """Return how far estimated confidences may be off, None where that is not known; nothing if it is of none."""
    if rules.margin is None:
        return {}
    return {"margin": [round(margin, 6) if margin == margin else None for margin in rules.margin.tolist()]}


def rule_rows(rules: RuleSet, names: Names | None = None) -> list[dict[str, Any]]:
    """Return the rules as plain values, for tables and JSON; with names, `named` is the rule in readable names."""
    from anyburl.explanation import words
    from anyburl.rules.types import RuleType

    types = [str(name) for name in RuleType]
    columns: dict[str, list[Any]] = {
        "type": [types[code] for code in rules.type],
        "length": rules.lengths.tolist(),
        "confidence": rules.confidence().tolist(),
        "support": rules.support.tolist(),
        "predictions": rules.predictions.tolist(),
        "exact": rules.exact.tolist(),
        **_margins(rules),
        **{name: getattr(rules, name).tolist() for name in rules.measures},
        "rule": rules.texts().to_list(),
    }
    if names is not None and (names or rules.vocabulary.relations.str.contains("://", literal=True).any()):
        columns["named"] = [words.rule_text(rule, names) for rule in rules]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
