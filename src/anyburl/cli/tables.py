"""Tables of rules, of their numbers, and of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import counted
from anyburl.ranking.options import DIRECTIONS, FIGURES
from anyburl.rules.types import KINDS

if TYPE_CHECKING:
    from anyburl.data.names import Names
    from anyburl.learning.progress import Outlook
    from anyburl.reasoning.metrics import Metrics
    from anyburl.rules.ruleset import RuleSet


STYLES = {str(kind): kind.form.style for kind in KINDS}
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
    """Return the estimated share of bodies seen of each profile, and what more time would bring."""
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


def rules_table(rules: RuleSet, names: Names | None = None, alike: Sequence[int] | None = None) -> Table:
    """Return a table of all rules, in their order, with readable names if there are any; `alike` counts the rules that
    each stands for.
    """
    from anyburl.rules.columns import COLUMNS

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("type")
    table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("support", justify="right", no_wrap=True)
    table.add_column("predictions", justify="right", no_wrap=True)
    for name in rules.measures:
        table.add_column(COLUMNS[name].heading, justify="right", no_wrap=True)
    counts = alike if alike and any(alike) else None
    if counts:
        table.add_column("like it", justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold", ratio=1)
    for number, row in enumerate(rule_rows(rules, names)):
        about = "" if row["exact"] else "~"
        table.add_row(
            Text(row["type"], STYLES[row["type"]]),
            f"{row['confidence']:.4f}",
            f"{about}{row['support']:,}",
            f"{about}{row['predictions']:,}",
            *(_measure_text(row[name], COLUMNS[name].most) for name in rules.measures),
            *([f"{counts[number]:,}"] if counts else []),
            bold_rule(row.get("named", row["rule"])),
        )
    return table


def _measure_text(value: float, most: float) -> str:
    """Return a measure as text, with fewer decimals where it can be large; counts have none."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if most > 1 and value >= 10 else f"{value:.4f}"


def bold_rule(rule: str) -> Text:
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
        columns["named"] = [rule.named(names) for rule in rules]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


N_RELATIONS = 10


def metrics_table(metrics: Metrics, names: Mapping[str, str] | None = None) -> Table:
    """Return all metrics of one evaluation."""
    table = _table("")
    n_queries, figures = metrics.protocol["queries"], metrics.metrics
    _add(table, Text("all", "bold"), figures, n_queries, style="bold")
    for end, name in enumerate(("95 % interval from", "to")):
        _add(table, f"{name:>18}", {key: ends[end] for key, ends in figures["interval"].items()}, style="dim")
    _add(table, "ties for the answer (optimistic)", figures["optimistic"])
    _add(table, "ties against it (pessimistic)", figures["pessimistic"])
    _add(table, "ties broken at random, on average", figures["random"])
    if estimated := figures.get("estimated"):
        _add(table, f"among {metrics.protocol['negatives']} sampled entities, estimated", estimated)
    if "mrr_lower_bound" in figures:
        bound = f"lower bound: nothing beyond rank {figures['mrr_lower_bound_k']:,}"
        _add(table, bound, {"mrr": figures["mrr_lower_bound"]})
    table.add_section()
    for direction, metric in metrics.by_direction.items():
        _add(table, DIRECTIONS[direction], metric, n_queries // 2)
    table.add_section()
    by_type: Mapping[str, Mapping[str, float]] = getattr(metrics, "by_rule_type", {})
    for name in (name for name in (*STYLES, "none") if name in by_type):
        label = Text.assemble("best rule is ", (name, STYLES[name])) if name in STYLES else Text("no rule predicts it")
        _add(table, label, by_type[name], int(by_type[name]["queries"]))
    table.add_section()
    _add_relations(table, metrics.by_relation, names or {})
    return table


def _add_relations(table: Table, rows: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> None:
    """Add two rows, one for each direction, for each of the most frequent relations."""
    from anyburl.reasoning.metrics import question_text

    n_shown = len(DIRECTIONS) * N_RELATIONS
    for row in rows[:n_shown]:
        _add(table, Text(question_text(row, names), overflow="ellipsis", no_wrap=True), row, row["queries"])
    if rest := rows[n_shown:]:
        name = counted(len(rest) // len(DIRECTIONS), "more relation")
        n_queries = sum(row["queries"] for row in rest)
        mean = {key: sum(row[key] * row["queries"] for row in rest) / n_queries for key in FIGURES}
        _add(table, Text(name, "dim"), mean, n_queries)


def results_table(results: Sequence[tuple[str, Metrics]], name: str) -> Table:
    """Return one line for each evaluation, for comparing them."""
    table = _table(name, "rules")
    table.add_column("95 % interval", justify="right")
    for label, metrics in results:
        low, high = metrics.metrics["interval"]["mrr"]
        figures = (f"{metrics.metrics[key]:.4f}" for key in FIGURES)
        table.add_row(label, f"{metrics.protocol['rules']:,}", *figures, f"{low:.4f} to {high:.4f}")
    return table


def _table(name: str, count: str = "queries") -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(name)
    for heading in (count, "hits@1", "hits@3", "hits@10", "MRR"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _add(table: Table, label: Text | str, figures: Mapping[str, float], n_queries: int = 0, style: str = "") -> None:
    cells = (f"{figures[key]:.4f}" if key in figures else "" for key in FIGURES)
    table.add_row(label, f"{n_queries:,}" if n_queries else "", *cells, style=style)


def protocol_line(metrics: Metrics, *, with_rules: bool = True) -> str:
    """Return in one line how the metrics were measured."""
    from anyburl.reasoning.metrics import restriction_text

    protocol = metrics.protocol
    weights = "".join(f", {name} x {factor:g}" for name, factor in protocol["weights"].items() if factor != 1)
    rules = f"{counted(protocol['rules'], 'rule')}, " if with_rules else ""
    how = "" if protocol["block_connected_choice"] != "auto" else " (auto)"
    against = f", against {protocol['negatives']} sampled entities" if protocol["ranked_against"] == "sampled" else ""
    return (
        f"{protocol['data']} {protocol['split']}{restriction_text(protocol)}, {rules}{protocol['aggregation']}, "
        f"smoothing {protocol['smoothing']:g}{weights}; filtered{against}, {protocol['ties']} ties, connected pairs "
        f"{'blocked' if protocol['block_connected'] else 'not blocked'}{how}"
        f"{'' if protocol['object_identity'] else ', without object identity'}"
    )


def tuning_line(metrics: Metrics) -> str:
    """Return what tuning chose and how the choices did on held-out facts, nothing if there was no tuning."""
    tuned = metrics.protocol.get("tuned")
    if not tuned:
        return ""
    choices = ", ".join(f"{name} {mrr:.4f}" for name, mrr in tuned["validation_mrr"].items())
    chosen = "the model" if tuned["chosen"] == "model" else tuned["chosen"]
    return f"tuning chose {chosen} by MRR on held-out facts: {choices}"


def seconds_line(seconds: Mapping[str, float], n_queries: int) -> str:
    """Return how long it took."""
    words = {"load": "read", "index": "indexed", "tune": "tuned", "rank": "ranked"}
    parts = [f"{word} in {seconds[name]:.1f} s" for name, word in words.items() if seconds.get(name)]
    speed = f" ({n_queries / seconds['rank']:,.0f} queries a second)" if seconds.get("rank") else ""
    return ", ".join(parts) + speed
