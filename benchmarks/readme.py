"""Writes the figures of the README from the results of the benchmarks: python benchmarks/readme.py

Tables stand between a comment that names them and `<!-- end -->`; a sentence with a figure is found by how its line
begins. `tests/docs/test_readme_figures.py` fails if the README says anything else than the results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

HERE = Path(__file__).parent
README = HERE.parent / "README.md"


FILES = (
    "learn-fb237",
    "learn-wn18rr",
    "learn-fb15k",
    "rescore",
    "rank-peers-WN18RR",
    "reason-rank-FB15k-237-peers",
    "reason-fb237",
    "complete-fb237-max",
    "scale-100",
    "start",
    "tuned",
)
"""The results whose figures the README has."""


def stored(name: str) -> Any:
    """Return a file of results: the command, the machine, and the results themselves."""
    return json.loads((HERE / "results" / f"{name}.json").read_text("utf-8"))


def results(name: str) -> Any:
    """Return what a benchmark of `FILES` stored."""
    return stored(FILES[FILES.index(name)])["results"]


def peers() -> Any:
    """Return the figures of other tools."""
    return stored("peers")


def between(values: Sequence[float], form: str) -> str:
    """Return the lowest and the highest value: "2.7 to 3.0", or one of them if they read the same."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def many(number: int) -> str:
    """Return a number of rules: "36,521", "14.4 million"."""
    return f"{number:,}" if number < 1_000_000 else f"{number / 1e6:.1f} million"


def binary(learned: Any) -> int:
    """Return how many binary rules a run has."""
    return sum(n for kind, n in learned["by_length"].items() if kind.startswith("B "))


def learning_row(name: str, file: str, words: str) -> tuple[str, ...]:
    """Return the row of a learning benchmark beside AnyBURL's."""
    ours, theirs = results(f"learn-{file}"), peers()["AnyBURL-23-1"][f"{name}, 100 s"]
    return (
        f"Learn {name}{words}",
        f"{ours['options']['seconds']} s: {many(ours['rules'])} rules, {binary(ours):,} binary",
        f"AnyBURL-23-1, 100 s: {theirs['rules']:,} rules, {theirs['binary']:,} binary",
        f"`python benchmarks/bench_learn.py {file}`",
    )


def ranking_row(name: str, seconds: Sequence[float], command: str) -> tuple[str, ...]:
    """Return the row of a ranking benchmark beside PyClause's."""
    theirs = peers()["PyClause"][f"rank {name}"]["seconds"]
    return f"Rank {name}'s test set", f"{between(seconds, '.2f')} s", f"PyClause: {theirs} s", f"`{command}`"


def task_rows() -> list[tuple[str, ...]]:
    """Return the table of tasks."""
    counted = results("rescore")["FB15k-237 B 2"]
    (by_max, *_) = results("rank-peers-WN18RR")
    peer_rounds = results("reason-rank-FB15k-237-peers")["now"]
    reasoned, completed, scaled = results("reason-fb237"), results("complete-fb237-max"), results("scale-100")["index"]
    rounds = completed["rounds"]
    return [
        ("Task", "anyburl", "Other tools", "Command"),
        ("---",) * 4,
        learning_row("FB15k-237", "fb237", ""),
        learning_row("WN18RR", "wn18rr", " to length 5"),
        (
            "Count binary rules of length 2, FB15k-237",
            f"{counted['rules_per_second']} rules/s, exact",
            f"PyClause: {counted['pyclause_rules_per_second']:.0f} rules/s, sampled rules of the same kind",
            "`python benchmarks/bench_rescore.py`",
        ),
        ranking_row("WN18RR", [by_max["seconds"]["rank"]], "python benchmarks/bench_rank.py peers WN18RR max"),
        ranking_row(
            "FB15k-237",
            [seconds for one in peer_rounds for seconds in one["rank"]],
            "python benchmarks/bench_reason.py rank FB15k-237 peers",
        ),
        (
            f"First answer from {reasoned['prepare']['rules'] / 1e6:.1f} million prepared rules",
            f"{between(reasoned['first_answer_seconds'], '.1f')} s",
            "",
            "`python benchmarks/bench_reason.py prepare RUN`",
        ),
        (
            f"Find every missing fact of FB15k-237 scoring {completed['min_score']} or more",
            f"{rounds[0]['facts']:,} facts in {between([one['seconds'] for one in rounds], '.1f')} s",
            "",
            "`python benchmarks/bench_complete.py RUN max 0.5`",
        ),
        (
            "Index 100 million triples",
            f"{scaled['seconds']:.0f} s, {scaled['said']['peak_bytes'] / 1e9:.1f} GB",
            "",
            "`python benchmarks/bench_scale.py 100 --folder FOLDER`",
        ),
    ]


COLUMNS = ("max", "tuned", "embedding", "hybrid")
MODELS = ("FB15k-237", "WN18RR", "CoDEx-S")


def quality_rows() -> list[tuple[str, ...]]:
    """Return the table of MRR, means over seeds."""
    headings = ("`max`", "`tuned`: a model over the rules", "ComplEx alone", "`hybrid`: rules and ComplEx")
    rows = [("Data set", *headings, "Published graph neural networks"), ("---", *("---:",) * len(COLUMNS), "---")]
    for name in MODELS:
        seeds = list(results("tuned")[name].values())
        means = (f"{fmean(seed[column]['mrr'] for seed in seeds if column in seed):.3f}" for column in COLUMNS)
        published = peers()["published MRR"].get(name, {})
        rows.append((name, *means, ", ".join(f"{model} {mrr:.3f}" for model, mrr in published.items())))
    return rows


TABLES: dict[str, Callable[[], list[tuple[str, ...]]]] = {"tasks": task_rows, "quality": quality_rows}


def sentences() -> dict[str, str]:
    """Return the lines with figures outside of tables, by how they begin."""
    all_of_fb15k = results("learn-fb15k")
    demo = fmean(one["seconds"] for one in results("start")["demo, empty kernel cache"])
    machines = [stored(name)["machine"] for name in FILES]
    first, last = (choose(machine["date"][:10] for machine in machines) for choose in (min, max))
    processors = " or ".join(sorted({machine["processor"] for machine in machines}))
    return {
        "Measured from": f"Measured from {first} to {last} on 2 cores ({processors}), Python 3.11, with compiled "
        "kernels. Each file in",
        "The first run compiles": "The first run compiles the kernels, so the demo takes about "
        f"{demo:.0f} seconds on two cores, or longer on a busy machine. After",
        "- **Fast.**": f"- **Fast.** All {all_of_fb15k['rules'] / 1e6:.1f} million rules of length 1 in FB15k, counted "
        f"exactly, in {all_of_fb15k['seconds']:.1f} seconds on two cores.",
    }


def rendered(text: str) -> str:
    """Return the README with the figures of the results."""
    for name, rows in TABLES.items():
        table = "\n".join(f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows())
        begin, end = f"<!-- figures: {name} -->", "<!-- end -->"
        text = re.sub(f"{begin}.*?{end}", lambda _, new=f"{begin}\n{table}\n{end}": new, text, flags=re.DOTALL)
    lines = text.split("\n")
    for start, sentence in sentences().items():
        (number,) = (number for number, line in enumerate(lines) if line.startswith(start))
        lines[number] = sentence
    return "\n".join(lines)


if __name__ == "__main__":
    README.write_text(rendered(README.read_text("utf-8")), "utf-8")
