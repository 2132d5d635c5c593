"""All experiments in order, the main results first, then the page.

python benchmarks/paper/run_all.py [--scale 0.01] [--scales table2=0.1,table3=0.02] [--minutes 120] [--only table4]

With --minutes, nothing is begun after that time; a later call does what is left. Options are passed on. --scales gives
experiments a scale of their own. By default table 2 has ten times the scale of the others: what object identity does
shows with many long rules, which take time to find.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import beyond
import figure3
import render
import table1
import table2
import table3
import table4
from lab import add_options, make_lab

EXPERIMENTS = {
    "table1": table1.main,
    "table4": table4.main,
    "table2": table2.main,
    "table3": table3.main,
    "figure3": figure3.main,
    "beyond": beyond.main,
}


def read_scales(text: str, parser: argparse.ArgumentParser) -> dict[str, float]:
    """Read `table2=0.1,figure3=0.02`."""
    try:
        pairs = dict(part.split("=") for part in text.split(",") if part)
        scales = {name: float(scale) for name, scale in pairs.items()}
    except ValueError:
        parser.error(f"--scales must be like table2=0.1,figure3=0.02, got {text!r}")
    if unknown := set(scales) - set(EXPERIMENTS):
        parser.error(f"--scales must name {', '.join(EXPERIMENTS)}, got {', '.join(sorted(unknown))}")
    return scales


def main() -> None:
    """Run what is wanted, and say how long each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, ", ".join(EXPERIMENTS))
    parser.add_argument("--scales", default="", help="other scales for some experiments, as table2=0.1,figure3=0.02")
    parser.add_argument("--docs", type=Path, default=render.DOCS, help="where the page goes (default: docs)")
    chosen = parser.parse_args()
    lab = make_lab(chosen)
    scales = {"table2": 10 * lab.scale, **read_scales(chosen.scales, parser)}
    for name, run in EXPERIMENTS.items():
        if not lab.wants(name):
            continue
        print(f"{name} ...", flush=True)
        started = time.time()
        run(replace(lab, only=(), scale=scales.get(name, lab.scale)))
        print(f"{name}: {(time.time() - started) / 60:.1f} min", flush=True)
    print(render.render(lab.results, chosen.docs))


if __name__ == "__main__":
    main()
