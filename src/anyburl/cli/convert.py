"""`anyburl convert`: between Parquet and text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyburl.base.errors import RuleError, counted
from anyburl.cli.arguments import At, Escaped, Json, Quiet, Rules, UnusedSeed, UnusedThreads
from anyburl.cli.loading import check_rules_output, read_rules_argument
from anyburl.cli.notes import Slow, note_console, print_json, result_console

EXAMPLE = "Example:  anyburl convert runs/geo rules.txt.gz"


def command(
    rules: Rules,
    target: Annotated[
        Path,
        typer.Argument(metavar="RULES2", help="Output file: .parquet, or .txt or .tsv, also with .gz or .zst."),
    ],
    at: At = None,
    escaped: Escaped = False,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Convert RULES to the format given by the suffix of RULES2: Parquet or AnyBURL's text."""
    notes = note_console(quiet=quiet)
    check_rules_output(target)
    found, report = read_rules_argument(rules, notes, at=at, escaped=escaped)
    if not len(found) and not _is_native(rules):
        raise RuleError(f"{rules}: the file contains no rules")
    with Slow(notes, f"writing {len(found):,} rules", f"wrote {len(found):,} rules"):
        found.save(target, escaped=escaped)
    if json:
        rejected = [{"line": line, "reason": reason} for line, reason in report.rejected]
        print_json({"rules": len(found), "comments": report.n_comments, "rejected": rejected, "out": str(target)})
    elif not quiet:
        result_console().say(f"{counted(len(found), 'rule')} written to {target}")


def _is_native(rules: str) -> bool:
    """A run folder or a Parquet file may hold no rules; text without any is probably a mistake."""
    return Path(rules).is_dir() or rules.lower().endswith(".parquet")
