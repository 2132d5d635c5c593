"""Tables of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.cli.tables import STYLES
from anyburl.errors import counted
from anyburl.evaluation.display import DIRECTIONS, FIGURES

if TYPE_CHECKING:
    from anyburl.evaluation.metrics import Metrics

N_RELATIONS = 10


def metrics_table(metrics: Metrics, names: Mapping[str, str] | None = None) -> Table:
    """Return all metrics of one evaluation."""
    table = _table("")
    n_queries, figures = metrics.protocol["queries"], metrics.metrics
    _add(table, Text("all", "bold"), figures, n_queries, style="bold")
    for place, name in enumerate(("95 % interval from", "to")):
        _add(table, f"{name:>18}", {key: ends[place] for key, ends in figures["interval"].items()}, style="dim")
    _add(table, "ties for the answer (optimistic)", figures["optimistic"])
    _add(table, "ties against it (pessimistic)", figures["pessimistic"])
    _add(table, "ties broken at random, on average", figures["random"])
    if estimated := figures.get("estimated"):
        _add(table, f"among {metrics.protocol['negatives']} sampled entities, estimated", estimated)
    bound = f"lower bound: nothing beyond rank {figures['mrr_lower_bound_k']:,}"
    _add(table, bound, {"mrr": figures["mrr_lower_bound"]})
    table.add_section()
    for direction, found in metrics.by_direction.items():
        _add(table, DIRECTIONS[direction], found, n_queries // 2)
    table.add_section()
    for name in (name for name in (*STYLES, "none") if name in metrics.by_rule_type):
        label = Text.assemble("best rule is ", (name, STYLES[name])) if name in STYLES else Text("no rule predicts it")
        _add(table, label, metrics.by_rule_type[name], int(metrics.by_rule_type[name]["queries"]))
    table.add_section()
    _add_relations(table, metrics.by_relation, names or {})
    return table


def _add_relations(table: Table, relations: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> None:
    for row in relations[:N_RELATIONS]:
        label = names.get(row["relation"]) or row["relation"]
        _add(table, Text(label, overflow="ellipsis", no_wrap=True), row, row["queries"])
    if rest := relations[N_RELATIONS:]:
        name = counted(len(rest), "more relation")
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
    protocol = metrics.protocol
    weights = "".join(f", {name} x {factor:g}" for name, factor in protocol["weights"].items() if factor != 1)
    rules = f"{counted(protocol['rules'], 'rule')}, " if with_rules else ""
    how = "" if protocol["block_connected_choice"] != "auto" else " (auto)"
    against = f", against {protocol['negatives']} sampled entities" if protocol["ranked_against"] == "sampled" else ""
    return (
        f"{protocol['data']} {protocol['split']}, {rules}{protocol['aggregation']}, smoothing "
        f"{protocol['smoothing']:g}{weights}; filtered{against}, {protocol['ties']} ties, connected pairs "
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
