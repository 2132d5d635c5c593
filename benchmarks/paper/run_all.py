"""All experiments in order, the main results first, then the other benchmarks, the page, and the README's figures.

python benchmarks/paper/run_all.py [--scale 0.01] [--scales table2=0.1,table3=0.1] [--minutes 120] [--only table4]
python benchmarks/paper/run_all.py --scales table3=0.1,figure3=0.1 --since "2026-11-19 00:00"    everything anew

With --minutes, nothing is begun after that time; a later call does what is left, as it does after an interrupt. With
--since, what was measured before counts as not measured: the same call measures everything once, in as many nights as
it takes. `--only benchmarks` runs those of `BENCHMARKS`, in a process each. Options are passed on. --scales gives
experiments a scale of their own. By default table 2 has ten times the scale of the others: what object identity does
shows with many long rules, which take time to find.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
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
from lab import HERE, Lab, add_options, load, make_lab

import anyburl

RUN = "fb237-30s"
"""A run of FB15k-237 that some benchmarks look at, made below --runs."""
BENCHMARKS = {
    **{f"learn-{part}": f"bench_learn.py {part}" for part in ("fb237", "wn18rr", "fb15k", "threads")},
    "rescore": "bench_rescore.py",
    **{f"rank-peers-{name}": f"bench_rank.py peers {name} max" for name in ("WN18RR", "FB15k-237")},
    **{f"reason-rank-{name}-peers": f"bench_reason.py rank {name} peers" for name in ("WN18RR", "FB15k-237")},
    "reason-fb237": f"bench_reason.py prepare {RUN}",
    "complete-fb237-max": f"bench_complete.py {RUN} max 0.5",
    "start": "bench_start.py",
    "tuned": "bench_tuned.py",
    "inductive": "bench_inductive.py",
    **{f"temporal-quality-{name}": f"bench_temporal.py quality {name}" for name in ("ICEWS14", "ICEWS18", "YAGO")},
    **{f"temporal-speed-{name}": f"bench_temporal.py speed {name}" for name in ("ICEWS14", "ICEWS18")},
    "promises": "bench_promises.py",
    **{f"distil-curve-{name}": f"bench_distil.py curve {name}" for name in ("WN18RR", "CoDEx-S", "FB15k-237")},
    **{f"numbers-{name}": f"bench_numbers.py ranks {name}" for name in ("LitWD1K", "FB15k-237")},
    "numbers-planted": "bench_numbers.py planted 1000000",
    "ray": "bench_ray.py",
}
"""Files of `benchmarks/results`, each with the command that writes it."""


def run_benchmarks(lab: Lab) -> None:
    """Run the benchmarks whose results are not there, are old, or were begun and not ended."""
    for name, command in BENCHMARKS.items():
        stored, begun = HERE.parent / "results" / f"{name}.json", lab.runs / f"{name}.begun"
        if time.time() > lab.until:
            return
        if stored.is_file() and not begun.exists():
            if not lab.again and not lab.is_old(json.loads(stored.read_text("utf-8"))):
                continue
            stored.unlink()  # some benchmarks go on with what is stored
        script, *words = [str(lab.runs / word) if word == RUN else word for word in command.split()]
        if str(lab.runs / RUN) in words and not (lab.runs / RUN).is_dir():
            anyburl.learn(load("FB15k-237"), seconds=30, seed=1, keep="all", out=lab.runs / RUN)
        print(f"  {command}", flush=True)
        begun.parent.mkdir(parents=True, exist_ok=True)
        begun.touch()
        done = subprocess.run([sys.executable, str(HERE.parent / script), *words], stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f"  {command}: failed with exit code {done.returncode}", file=sys.stderr, flush=True)
        else:
            begun.unlink()


EXPERIMENTS = {
    "table1": table1.main,
    "table4": table4.main,
    "table2": table2.main,
    "table3": table3.main,
    "figure3": figure3.main,
    "beyond": beyond.main,
    "benchmarks": run_benchmarks,
}
"""What is run, by name, in this order."""


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
    subprocess.run([sys.executable, str(HERE.parent / "readme.py")], check=True)


if __name__ == "__main__":
    main()
