"""`anyburl prepare`: prepare a run folder, so that it opens at once."""

from __future__ import annotations

import time
from typing import Any

from anyburl.base.errors import RunError
from anyburl.cli.arguments import Json, Quiet, Run, UnusedSeed, UnusedThreads
from anyburl.cli.asking import RulesAndData
from anyburl.cli.loading import load_rules_argument, require_run
from anyburl.cli.notes import note_console, print_json, result_console

EXAMPLE = "Example:  anyburl prepare runs/geo, then anyburl predict runs/geo France official_language '?'"


def command(
    run: Run,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Prepare a run folder, so that commands that ask questions open it at once.

    The first of these commands also does this. You can still choose smoothing, weights and aggregation per command.
    """
    from anyburl.reasoning.opening import make_prepared
    from anyburl.reasoning.prepared import PREPARED, NotPreparedError, can_prepare, open_prepared

    require_run(run)
    notes = note_console(quiet=quiet)
    source = RulesAndData(run, None, notes)
    if not can_prepare(source.path):
        raise RunError(f"{run} is still learning, or was interrupted: continue it with --resume first")
    started = time.monotonic()
    try:
        prepared, was_ready = open_prepared(source.path), True
    except NotPreparedError:
        source.compile(explaining=True)
        started = time.monotonic()
        prepared = make_prepared(source.path, lambda: (load_rules_argument(run, notes), source.dataset), source.front())
        was_ready = False
    n_bytes = sum(file.stat().st_size for file in (source.path / PREPARED).rglob("*") if file.is_file())
    told: dict[str, Any] = {
        "run": run,
        "rules": len(prepared.rules),
        "bytes": n_bytes,
        "bytes_per_rule": round(n_bytes / max(1, len(prepared.rules)), 1),
        "seconds": round(time.monotonic() - started, 3),
        "was_ready": was_ready,
    }
    if json:
        print_json(told)
    elif not quiet:
        size = f"{told['rules']:,} rules, {n_bytes / 1e6:,.1f} MB, {told['bytes_per_rule']:g} bytes per rule"
        state = "was already prepared" if was_ready else f"prepared in {told['seconds']:.1f} s"
        result_console().say(f"{run} {state}: {size}")
