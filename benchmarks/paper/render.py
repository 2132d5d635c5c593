"""Make docs/results.md and its pictures from the stored JSON, and from nothing else.

python benchmarks/paper/render.py [--results benchmarks/paper/results] [--docs docs]

The only figures not measured here are those in published.json: the paper's and the peers'.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from page import ablations, benchmarks, claims, figure3, growth, inductive, peers, table1, table2, table3, table4, tuned
from page.cells import Cell, listed, load_cells

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
EXPERIMENTS = ("table1", "table2", "table3", "table4", "figure3", "beyond")
SECTIONS = {
    "what the paper claims": claims.section,
    "Table 1": table1.section,
    "Table 2": table2.section,
    "Figure 3": figure3.section,
    "Table 3": table3.section,
    "Table 4": table4.section,
    "quality per core-second": peers.section,
    "ablations": ablations.section,
    "growth": growth.section,
    "new entities": inductive.section,
    "with an embedding": tuned.section,
    "forecasts": benchmarks.forecasts,
    "promises": benchmarks.promises,
    "few rules": benchmarks.distilled,
}


def render(results: Path, docs: Path) -> Path:
    """Write the page and return where it is."""
    published: dict[str, Any] = json.loads((HERE / "published.json").read_text("utf-8"))
    cells = {experiment: load_cells(results, experiment) for experiment in EXPERIMENTS}
    cells = {experiment: found for experiment, found in cells.items() if found}
    sections = {name: section(results, published, docs / "results") for name, section in SECTIONS.items()}
    missing = [name for name, text in sections.items() if not text]
    parts = [introduction(cells, published, missing), table4.summary(results, published), *sections.values()]
    page = docs / "results.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(part.rstrip() + "\n" for part in parts if part), "utf-8")
    return page


def introduction(cells: dict[str, list[Cell]], published: dict[str, Any], missing: list[str]) -> str:
    """Say where the figures come from."""
    authors, title = published["paper"].split(": ", 1)
    return "\n".join(
        [
            "# Results: the paper's experiments and beyond\n",
            f"The paper is *{title}* ({authors}). `python benchmarks/paper/render.py` generates this page from "
            "`benchmarks/paper/results/*/*.json`; each file records the options, command, version, seed and machine of "
            "one measurement. Published figures are in `benchmarks/paper/published.json`, each with its source. Ranks "
            "are filtered, over both directions, with realistic ties.\n",
            *(measured(cells) if cells else ["Nothing has been measured yet.\n"]),
            *([f"Not measured yet: {listed(missing)}.\n"] if missing and cells else []),
            "To repeat the measurements, run `python benchmarks/paper/run_all.py --scale 0.01`; `--scale 1` uses the "
            "paper's own times, `--since DATE` measures again what is older, and `--help` lists more options.",
        ]
    )


def measured(cells: dict[str, list[Cell]]) -> list[str]:
    """Say when, where and at which scale."""
    all_cells = [cell for found in cells.values() for cell in found]
    machines = [cell["machine"] for cell in all_cells]
    dates = sorted(machine["date"] for machine in machines)
    processors = sorted({f"{machine['cores']} cores of an {machine['processor']}" for machine in machines})
    versions = sorted({cell["anyburl"] for cell in all_cells})
    commits = sorted({machine["commit"] for machine in machines if machine["commit"]})
    scales = {name: max(cell["scale"] for cell in found) for name, found in cells.items() if name != "table1"}
    times = [f"{scale:g} in {name}" for name, scale in scales.items()]
    return [
        f"Measured from {dates[0]} to {dates[-1]} (UTC) on {listed(processors)}, Python {machines[0]['python']}, Numba "
        f"{machines[0]['numba']}, NumPy {machines[0]['numpy']}; anyburl {listed(versions)}, commit {listed(commits)}. "
        + (f"The paper's learning times were multiplied by {listed(times)}.\n" if times else "\n")
    ]


def main() -> None:
    """Render what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--docs", type=Path, default=DOCS)
    chosen = parser.parse_args()
    print(render(chosen.results, chosen.docs))


if __name__ == "__main__":
    main()
