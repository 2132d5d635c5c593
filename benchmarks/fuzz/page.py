"""What docs/reliability.md says of fuzzing, from the stored JSON and from nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENOUGH_SECONDS, ENOUGH_RUNS = 1200, 1_000_000
INTRODUCTION = """## Fuzzing

Every parser was given inputs that atheris changes at random, guided by the lines of anyburl that they reach: arbitrary
bytes for text, damaged bytes and odd columns for Parquet, one damaged file in a folder. The answer has to be right, or
an error of ours; another exception, more than 10 seconds of processor time or 3 GB of memory is a finding. Where it
makes sense, what was read is written and read again, and has to be the same. A run ends after 20 minutes, a million
executions, or at a finding, and starts again when that is fixed. Minutes are those of the clock: where there are few
executions, other work had the cores, and the parser is not yet shown to be sound. Each finding is an input in
`tests/corpus`, which the tests replay.
"""


def fuzz_section(results: Path, abouts: dict[str, str]) -> str:
    """Return the section; `abouts` says what each target is, see `fuzz.all.abouts`."""
    stored = json.loads((results / "fuzz.json").read_text("utf-8"))
    rows = [_row(name, abouts.get(name, name), found) for name, found in sorted(stored["results"].items())]
    total = sum(found["executions"] for found in stored["results"].values())
    table = "\n".join(
        [
            "| parser | executions | minutes | edges reached | findings, all fixed |",
            "| --- | --: | --: | --: | --: |",
            *rows,
        ]
    )
    end = f"\n\n{total:,} executions in all, until {stored['date']} (UTC), by `{stored['command']}`.\n"
    return f"{INTRODUCTION}\n{table}{end}"


def _row(name: str, about: str, found: dict[str, Any]) -> str:
    enough = found["seconds"] >= ENOUGH_SECONDS or found["executions"] >= ENOUGH_RUNS
    minutes = f"{found['seconds'] / 60:.1f}" + ("" if enough else " (cut short)")
    return (
        f"| {about} (`{name}`) | {found['executions']:,} | {minutes} | {found['edges']:,} | {len(found['findings'])} |"
    )
