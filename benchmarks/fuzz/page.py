"""What docs/reliability.md says of fuzzing, from the stored JSON and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENOUGH_SECONDS, ENOUGH_RUNS = 1200, 1_000_000
INTRODUCTION = """## Fuzzing

Every parser was fed inputs mutated by atheris, guided by which lines of anyburl they reach: arbitrary bytes for text,
damaged bytes and odd columns for Parquet, one damaged file in a folder. The parser must return the right answer or
raise one of anyburl's own errors; any other exception, more than 10 seconds of processor time or more than 3 GB of
memory is a finding. Where it makes sense, what was read is written and read back, and must be unchanged. A run ends
after 20 minutes of processor time, after a million executions or at a finding, and is repeated once the finding is
fixed. Processor time includes the processes in which Parquet files are tried first. It has been recorded since
2026-11-17; earlier executions are counted without it. A parser marked *short* has reached neither limit yet. Every
finding is kept as an input in `tests/corpus`, which the tests replay, beside inputs that were found by reading the
parsers.
"""


def fuzz_section(results: Path, abouts: dict[str, str]) -> str:
    """Return the section; `abouts` says what each target is, see `fuzz.all.abouts`."""
    stored = json.loads((results / "fuzz.json").read_text("utf-8"))
    none: dict[str, Any] = {"executions": 0, "edges": 0, "findings": []}
    targets = {**dict.fromkeys(abouts, none), **stored["results"]}
    rows = [_row(name, abouts.get(name, name), found) for name, found in sorted(targets.items())]
    total = sum(found["executions"] for found in stored["results"].values())
    table = "\n".join(
        [
            "| parser | executions | processor minutes | edges reached | findings, all fixed |",
            "| --- | --: | --: | --: | --: |",
            *rows,
        ]
    )
    end = f"\n\n{total:,} executions in all, the last on {stored['date']} (UTC), by `{stored['command']}`.\n"
    return f"{INTRODUCTION}\n{table}{end}"


def _row(name: str, about: str, found: dict[str, Any]) -> str:
    seconds = found.get("processor_seconds", 0.0)
    enough = seconds >= ENOUGH_SECONDS or found["executions"] >= ENOUGH_RUNS
    minutes = f"{seconds / 60:.1f}" + ("" if enough else " (short)")
    return (
        f"| {about} (`{name}`) | {found['executions']:,} | {minutes} | {found['edges']:,} | {len(found['findings'])} |"
    )
