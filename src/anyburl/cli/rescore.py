"""`anyburl rescore`: recount predictions and support of rules on any data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from anyburl.base.errors import DataError, InvalidOptionError, OptionError, counted
from anyburl.cli.arguments import At, Escaped, Json, ObjectIdentity, Quiet, Rules, Threads, UnusedSeed
from anyburl.cli.events import tell_progress
from anyburl.cli.loading import check_rules_output, data_of_rules, load_data_argument, load_rules_argument
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, note_console, print_json, result_console
from anyburl.learning.options import LearnOptions

if TYPE_CHECKING:
    from anyburl.data.table import TripleTable
    from anyburl.rules.ruleset import RuleSet

EXAMPLE = "Example:  anyburl rescore rules.txt --data geo --exact --out rescored.txt"


def command(
    rules: Rules,
    out: Annotated[Path, typer.Option(metavar="RULES2", help="Output file: .parquet, .txt or .txt.gz.")],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Count on the train split of this data. Defaults to the data of the run folder."
        ),
    ] = None,
    object_identity: ObjectIdentity = LearnOptions.object_identity,
    exact: Annotated[bool, typer.Option("--exact", help="Count exactly, however long it takes.")] = False,
    budget: Annotated[
        int,
        typer.Option(min=1, help="Without --exact, edges to visit per body; beyond that, its counts are estimated."),
    ] = LearnOptions.budget,
    measures: Annotated[
        bool,
        typer.Option("--measures", help="Add the columns PCA confidence, head coverage and lift to a .parquet file."),
    ] = False,
    best: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Recount only the N best rules with estimated counts, and keep all other counts."
        ),
    ] = None,
    at: At = None,
    escaped: Escaped = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
) -> None:
    """Recount predictions and support of RULES on DATA's train split, keeping their order."""
    notes = note_console(quiet=quiet)
    check_rules_output(out)
    if measures and out.suffix != ".parquet":
        raise InvalidOptionError("out", "a .parquet file with {measures}: text has no room for these", str(out))
    if best is not None and measures:
        raise OptionError("--measures covers all rules: drop --best")
    source, reading = data_of_rules(rules, data)
    old = load_rules_argument(rules, notes, at=at, escaped=escaped)
    table = load_data_argument(source, notes, reading).train
    if not len(table):
        raise DataError(f"{source} has no train triples to count on")
    from anyburl.rules.combine import match_triples

    matched = match_triples(old, table)
    if matched.n_unknown:
        verb = "uses" if matched.n_unknown == 1 else "use"
        rules_kept = f"{counted(matched.n_unknown, 'rule')} {verb} labels that are not in the data"
        notes.say(f"{rules_kept}: kept, with a support of 0", "yellow")
    options = {
        "object_identity": object_identity,
        "budget": None if exact else budget,
        "measures": measures,
        "best": best,
        "threads": threads,
    }
    new, seconds = _count(matched.rules, matched.table, options, notes)
    with Slow(notes, f"writing {len(new):,} rules", f"wrote {len(new):,} rules"):
        new.save(out, escaped=escaped)
    _report(new, seconds, out, json=json, quiet=quiet)


def _count(rules: RuleSet, table: TripleTable, options: dict[str, Any], notes: PlainConsole) -> tuple[RuleSet, float]:
    """Rescore with a progress bar; return the rules and the seconds it took, compilation not counted."""
    from anyburl.bodies.rescore import rescore

    few = table.from_ids(table.triples[:1], table.vocabulary)
    compile_kernels(lambda: rescore(rules.slice(0, 1), few, **options), notes)
    columns = (TextColumn("rescoring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    started = time.monotonic()
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal or notes.quiet) as bar:
        n_rules = len(rules) if options["best"] is None else min(options["best"], int((~rules.exact).sum()))
        task = bar.add_task("rescoring", total=n_rules)

        def advance(n: int) -> None:
            bar.advance(task, n)
            tell_progress(doing="rescoring", done=int(bar.tasks[0].completed), total=n_rules)

        new = rescore(rules, table, **options, progress=advance)
    return new, time.monotonic() - started


def _report(rules: RuleSet, seconds: float, out: Path, *, json: bool, quiet: bool) -> None:
    n_estimated = int((~rules.exact).sum())
    speed = len(rules) / seconds if seconds else 0.0
    if json:
        counts = {"rules": len(rules), "exact": n_estimated == 0, "estimated": n_estimated}
        print_json({**counts, "seconds": round(seconds, 4), "rules_per_second": round(speed, 1), "out": str(out)})
    elif not quiet:
        how = (
            "all counts exact"
            if not n_estimated
            else f"{n_estimated:,} with estimated counts (use --exact to count them)"
        )
        result_console().say(f"{counted(len(rules), 'rule')} rescored in {seconds:.1f} s, {how}; written to {out}")
