"""All experiments in order, the main results first, then the page.

python benchmarks/paper/run_all.py [--scale 0.01] [--minutes 120] [--only table1,table4,...]

With --minutes, nothing is begun after that time; a later call does what is left. Options are passed on.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

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


def main() -> None:
    """Run what is wanted, and say how long each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, ", ".join(EXPERIMENTS))
    lab = make_lab(parser.parse_args())
    for name, run in EXPERIMENTS.items():
        if not lab.wants(name):
            continue
        print(f"{name} ...", flush=True)
        started = time.time()
        run(replace(lab, only=()))
        print(f"{name}: {(time.time() - started) / 60:.1f} min", flush=True)
    render.render(lab.results, render.DOCS)


if __name__ == "__main__":
    main()
