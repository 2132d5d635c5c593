"""How each cost grows: powers of the number of triples, fitted to what was measured; what follows for larger graphs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
GOAL = {"bodies": 1_000_000, "queries": 100_000, "rules": 20_000_000}  # the work and the rules that are projected
CORES = (2, 16, 64)
TELLING = 0.02  # 1 - cosine ** 2 of the numbers of triples and of rules, below which they cannot be told apart
Size = dict[str, Any]


@dataclass(frozen=True)
class Cost:
    """A cost that every size has: its unit, how to read it off the results, and the step that it belongs to."""

    step: str
    unit: str
    value: Callable[[Size], float]


@dataclass(frozen=True)
class Fit:
    """value = factor * triples ** exponent; `off` is the factor by which the worst size is away from that."""

    factor: float
    exponent: float
    off: float

    def at(self, triples: float) -> float:
        """Return the fitted value."""
        return float(self.factor * triples**self.exponent)


@dataclass(frozen=True)
class Shares:
    """value = per_triple * triples + per_rule * rules; `off` as above."""

    per_triple: float
    per_rule: float
    off: float

    def at(self, triples: float, rules: float) -> float:
        """Return the fitted value."""
        return self.per_triple * triples + self.per_rule * rules


def load_sizes(results: Path) -> list[Size]:
    """Return the sizes that were measured to their end, the smallest first, each with its machine and command."""
    sizes = []
    for file in results.glob("scale-*.json"):
        stored = json.loads(file.read_text("utf-8"))
        if file.stem != "scale-fit" and "failed" not in stored["results"].get("rank", {"failed": ""}):
            sizes.append({**stored["results"], "machine": stored["machine"], "command": stored["command"]})
    return sorted(sizes, key=lambda size: n_triples(size))


def n_triples(size: Size) -> int:
    """Return the triples of train."""
    return int(size["generate"]["train"])


def costs_of(sizes: list[Size]) -> dict[str, Cost]:
    """Return the costs that all sizes have: an index is made only by versions that can."""
    costs = {
        "generating, time per triple": Cost(
            "generate", "us", lambda size: _per_triple(size, "generate", "seconds", 1e6)
        ),
        "index, time per triple": Cost("index", "us", lambda size: _per_triple(size, "index", "seconds", 1e6)),
        "index, peak memory per triple": Cost(
            "index", "bytes", lambda size: _per_triple(size, "index", "peak_memory_mb")
        ),
        "index, disk per triple": Cost("index", "bytes", lambda size: _per_triple(size, "index", "disk_mb", 1e6)),
        "opening, time": Cost("open", "ms", lambda size: 1e3 * size["open"]["seconds"]),
        "learning, time per path": Cost("learn", "core-us", lambda size: _per(size, "paths")),
        "learning, time per body": Cost("learn", "core-us", lambda size: _per(size, "bodies")),
        "ranking, time per query": Cost("rank", "core-ms", _per_query),
    }
    indexed = all(size["index"].get("seconds") for size in sizes)
    return {name: cost for name, cost in costs.items() if indexed or cost.step != "index"}


def fit(triples: list[float], values: list[float]) -> Fit:
    """Fit a power by least squares of the logarithms."""
    x, y = [math.log(value) for value in triples], [math.log(max(value, 1e-9)) for value in values]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    exponent = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    start = mean_y - exponent * mean_x
    off = max(abs(b - start - exponent * a) for a, b in zip(x, y, strict=True))
    return Fit(math.exp(start), exponent, math.exp(off))


def fit_shares(triples: list[float], rules: list[float], values: list[float]) -> Shares:
    """Divide a cost between triples and rules, by least squares of relative errors.

    Where the sizes cannot tell the two apart, all is put down to the triples, which are what grows.
    """
    rows = [(t / y, r / y) for t, r, y in zip(triples, rules, values, strict=True)]
    tt, tr, rr = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    t1, r1 = (sum(row[i] for row in rows) for i in (0, 1))
    determinant = tt * rr - tr * tr
    shares = t1 / tt, 0.0
    if determinant > TELLING * tt * rr:
        both = (t1 * rr - r1 * tr) / determinant, (r1 * tt - t1 * tr) / determinant
        shares = both if min(both) > 0 else shares
    relative = [shares[0] * row[0] + shares[1] * row[1] for row in rows]
    return Shares(*shares, max(max(value, 1 / value) for value in relative))


def project(sizes: list[Size]) -> dict[str, Any]:
    """Return the fits, and memory and hours for the graphs in published.json."""
    published = json.loads((HERE / "published.json").read_text("utf-8"))
    costs = costs_of(sizes)
    triples = [float(n_triples(size)) for size in sizes]
    fits = {name: fit(triples, [cost.value(size) for size in sizes]) for name, cost in costs.items()}
    rules = [float(size["learn"]["kept_rules"]) for size in sizes]
    shares = {name: fit_shares(triples, rules, [read(size) for size in sizes]) for name, read in SHARED.items()}
    price = published["price"]["dollars_per_core_hour"]
    targets = {name: _projection(n, fits, shares, price) for name, n in published["targets"].items()}
    peer = published["peer"]
    ratio = peer["memory_gb"] / targets[peer["target"]]["memory_gb"]["largest"]
    return {
        "measured": [n_triples(size) for size in sizes],
        "fits": {name: {"unit": costs[name].unit, **asdict(fitted)} for name, fitted in fits.items()},
        "shares": {step: asdict(fitted) for step, fitted in shares.items()},
        "goal": GOAL,
        "price": published["price"],
        "targets": targets,
        "peer": {**peer, "ratio": ratio},
    }


def _projection(triples: int, fits: dict[str, Fit], shares: dict[str, Shares], price: float) -> dict[str, Any]:
    """Return memory, and hours by the number of cores as if work were divided without loss, for a number of triples;
    and what the hours of all cores cost.
    """
    both = {name: fitted.at(triples, GOAL["rules"]) for name, fitted in shares.items()}
    memory = {"learn": both["learning, bytes"] / 1e9, "rank": both["ranking, bytes"] / 1e9}
    if "index, peak memory per triple" in fits:
        memory["index"] = fits["index, peak memory per triple"].at(triples) * triples / 1e9
    core_hours = {
        "learn": fits["learning, time per body"].at(triples) * GOAL["bodies"] / 3.6e9,
        "rank": fits["ranking, time per query"].at(triples) * GOAL["queries"] / 3.6e6,
    }
    index = fits.get("index, time per triple")
    return {
        "triples": triples,
        "memory_gb": {**memory, "largest": max(memory.values())},
        "disk_gb": fits["index, disk per triple"].at(triples) * triples / 1e9 if index else None,
        "index_hours": index.at(triples) * triples / 3.6e9 if index else None,
        "preparation_hours": both["preparing to rank, ns"] / 3.6e12,
        "dollars": sum(core_hours.values()) * price,
        "hours": {str(cores): {step: hours / cores for step, hours in core_hours.items()} for cores in CORES},
    }


def _per_triple(size: Size, step: str, figure: str, factor: float = 1024.0**2) -> float:
    return float(factor * size[step][figure] / n_triples(size))


def _per(size: Size, what: str) -> float:
    """Core-microseconds of learning per path or body."""
    learned = size["learn"]
    return float(1e6 * learned["seconds"] * learned["threads"] / max(learned[what], 1))


def _per_query(size: Size) -> float:
    ranked = size["rank"]
    return float(1e3 * ranked["seconds"] * ranked["threads"] / ranked["queries"])


def _bytes(size: Size, step: str) -> float:
    """Peak memory of a step, without what the process held before it opened the data."""
    return float((size[step]["peak_memory_mb"] - size[step]["start_mb"]) * 1024**2)


SHARED: dict[str, Callable[[Size], float]] = {
    "learning, bytes": lambda size: _bytes(size, "learn"),
    "ranking, bytes": lambda size: _bytes(size, "rank"),
    "preparing to rank, ns": lambda size: float(1e9 * size["rank"]["index_seconds"]),
}
