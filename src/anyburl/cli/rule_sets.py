"""`anyburl rescore`, `distil`, `diff` and `convert`: from rule sets to others, or to how they differ."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from anyburl.base.errors import DataError, InvalidOptionError, OptionError, RuleError, RunError, counted
from anyburl.cli.arguments import At, Escaped, ObjectIdentity, Rules, Run, Without, command
from anyburl.cli.events import tell_progress
from anyburl.cli.loading import (
    AskingOptions,
    Common,
    CommonOneThread,
    check_rules_output,
    data_of_rules,
    load_data_argument,
    load_rules_argument,
    read_names_argument,
    read_rules_argument,
    require_run,
)
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, print_json, print_whole, result_console
from anyburl.cli.tables import bold_rule
from anyburl.learning.options import DistilOptions, LearnOptions
from anyburl.ranking.options import parse_aggregation

if TYPE_CHECKING:
    import polars as pl

    from anyburl.data.names import Names
    from anyburl.data.table import TripleTable
    from anyburl.models.distilling.distil import Distilled
    from anyburl.rules.difference import RuleDifference
    from anyburl.rules.ruleset import RuleSet


@command("rescore", "Example:  anyburl rescore rules.txt --data geo --exact --out rescored.txt", takes_long=True)
def rescore_command(
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
    *,
    common: Common,
) -> None:
    """Recount predictions and support of RULES on DATA's train split, keeping their order."""
    notes = common.notes()
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
        "threads": common.threads,
    }
    new, seconds = _count(matched.rules, matched.table, options, notes)
    with Slow(notes, f"writing {len(new):,} rules", f"wrote {len(new):,} rules"):
        new.save(out, escaped=escaped)
    _report_rescore(new, seconds, out, common)


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


def _report_rescore(rules: RuleSet, seconds: float, out: Path, common: Common) -> None:
    n_estimated = int((~rules.exact).sum())
    speed = len(rules) / seconds if seconds else 0.0
    if common.json:
        counts = {"rules": len(rules), "exact": n_estimated == 0, "estimated": n_estimated}
        print_json({**counts, "seconds": round(seconds, 4), "rules_per_second": round(speed, 1), "out": str(out)})
    elif not common.quiet:
        how = (
            "all counts exact"
            if not n_estimated
            else f"{n_estimated:,} with estimated counts (use --exact to count them)"
        )
        result_console().say(f"{counted(len(rules), 'rule')} rescored in {seconds:.1f} s, {how}; written to {out}")


FOR_MODELS = "noisy-or-top:10"
"""Whose rules a model is given: it looks at several of each answer."""


@command(
    "distil",
    "Example:  anyburl distil runs/geo --out runs/small --rules 100, then anyburl rules runs/small --sort worth",
    takes_long=True,
)
def distil_command(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="SMALL", help="The run folder to write.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curve as .png, .svg or .pdf.")] = None,
    *,
    chosen: DistilOptions,
    common: Annotated[AskingOptions, Without("names", "escaped", "with_scores", "seed", "top_k")],
) -> None:
    """Keep the rules of RUN that rank held-out facts best, and write them as a run folder that every command takes.

    Rules are chosen for an aggregation, by facts of the valid and train splits; test is never read. The table shows
    what other numbers of rules would be worth.
    """
    from anyburl.learning.run import RunDirectory
    from anyburl.models.distilling.keeping import check_out, save_distilled
    from anyburl.reasoning.shortcuts import warm_up_distilling

    require_run(run)
    source, notes = common.source(run, None), common.notes()
    check_out(source.path, out)
    started = time.monotonic()
    dataset = source.dataset
    compile_kernels(lambda: warm_up_distilling(dataset.vocabulary.n_relations), notes)
    ranking, for_model = common.ranking, parse_aggregation(common.ranking.aggregation).needs_model
    if for_model:
        ranking = replace(ranking, aggregation=FOR_MODELS)
    with source.open(ranking, seed=chosen.seed) as reasoner:
        if not len(reasoner.rules):
            raise RunError(f"{run} has no rules to distil")
        distilled = reasoner.distil(options=chosen, watch=source.feedback().watch, for_model=for_model)
    save_distilled(out, distilled, reasoner.dataset, RunDirectory.open(source.path).options(), str(source.path))
    if plot is not None:
        from anyburl.tools.plotting import plot_distilled

        plot_distilled(distilled, plot)
    if common.json:
        print_json({**distilled.to_json(), "run": str(out), "seconds": round(time.monotonic() - started, 3)})
    elif not common.quiet:
        _print_distil(distilled, out)


def _print_distil(distilled: Distilled, out: Path) -> None:
    console = result_console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rules", justify="right")
    table.add_column("share of the MRR", justify="right")
    for n_rules, share in distilled.curve:
        table.add_row(f"{n_rules:,}", f"{share:.1%}")
    table.add_row(f"{distilled.n_rules:,} (all)", "100.0%")
    console.print(table)
    console.say(f"measured on {distilled.judged_by}, held back until the last step")
    console.say(
        f"kept {len(distilled.rules):,} of {distilled.n_rules:,} rules ({distilled.quality:.1%} of the MRR), "
        f"chosen by {distilled.n_facts:,} facts, in {out}"
    )
    console.say(f"see the best:      anyburl rules {out} --sort worth")


HEADINGS = {
    "gone": "rules gone, the most valuable",
    "new": "new rules, the most valuable",
    "changed": "rules whose confidence changed most",
}


@command("diff", "Example:  anyburl diff yesterday runs/geo --top 10")
def diff_command(
    rules1: Annotated[str, typer.Argument(metavar="RULES1", help="A run folder, a .parquet file, or a text file.")],
    rules2: Annotated[str, typer.Argument(metavar="RULES2", help="The rules to compare with.")],
    top: Annotated[int, typer.Option(min=0, help="Number of gone, new and changed rules to show.")] = 20,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all differences to this .parquet or .tsv file.")
    ] = None,
    escaped: Escaped = False,
    *,
    common: CommonOneThread,
) -> None:
    """Compare two rule sets: gone, new and changed rules."""
    _check_output(out)
    notes = common.notes()
    first, second = (load_rules_argument(rules, notes, escaped=escaped) for rules in (rules1, rules2))

    from anyburl.rules.difference import RuleDifference

    with Slow(notes, "comparing rules", "compared rules"):
        difference = RuleDifference(first, second)
    if out is not None:
        _write_diff(difference, out, notes)
    if common.json:
        print_json(difference.to_json(top))
    elif not common.quiet:
        _print_difference(difference, top, read_names_argument(None, rules1, rules2))


def _check_output(out: Path | None) -> None:
    """Refuse, before any work is done, a file that cannot be written."""
    if out is None:
        return
    if out.suffix not in (".parquet", ".tsv"):
        raise OptionError(f"--out must end in .parquet or .tsv, got {out}")
    if not out.parent.is_dir():
        raise OptionError(f"{out}: the folder {out.parent} does not exist")


def _write_diff(difference: RuleDifference, out: Path, notes: PlainConsole) -> None:
    from anyburl.base.writing import replacing

    with Slow(notes, f"writing {out}", f"wrote {out}"), replacing(out) as unfinished:
        rows = difference.to_polars()
        if out.suffix == ".parquet":
            rows.write_parquet(unfinished)
        else:
            rows.write_csv(unfinished, separator="\t")


def _print_difference(difference: RuleDifference, top: int, names: Names) -> None:
    import polars as pl

    rows = difference.to_polars(top)
    if names:
        rows = rows.with_columns(rule=pl.Series([_named(rule, names) for rule in rows["rule"]], dtype=pl.String))
    for change, heading in HEADINGS.items():
        part = rows.filter(pl.col("change") == change)
        if len(part):
            print_whole(_diff_table(heading, part))
    out = result_console()
    out.say("rules: " + ", ".join(f"{n:,} {name}" for name, n in difference.counts().items()))


def _named(rule: str, names: Names) -> str:
    """Return a rule in readable names."""
    from anyburl.rules.rule import parse_rule

    try:
        return parse_rule(rule).named(names)
    except RuleError:  # a text that can be read in two ways
        return rule


def _diff_table(heading: str, rows: pl.DataFrame) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=heading, title_justify="left")
    for name in ("confidence", "support", "predictions"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold", ratio=1)
    for row in rows.iter_rows(named=True):
        counts = [
            _step(row["confidence_before"], row["confidence_after"], ".4f"),
            _step(row["support_before"], row["support_after"], ","),
            _step(row["predictions_before"], row["predictions_after"], ","),
        ]
        table.add_row(*counts, bold_rule(row["rule"]))
    return table


def _step(before: float | None, after: float | None, form: str) -> str:
    """Return a number, or the numbers before and after if there are two that differ."""
    shown = [format(number, form) for number in (before, after) if number is not None]
    return shown[0] if len(set(shown)) == 1 else " → ".join(shown)


@command("convert", "Example:  anyburl convert runs/geo rules.txt.gz")
def convert_command(
    rules: Rules,
    target: Annotated[
        Path,
        typer.Argument(metavar="RULES2", help="Output file: .parquet, or .txt or .tsv, also with .gz or .zst."),
    ],
    at: At = None,
    escaped: Escaped = False,
    *,
    common: CommonOneThread,
) -> None:
    """Convert RULES to the format given by the suffix of RULES2: Parquet or AnyBURL's text."""
    notes = common.notes()
    check_rules_output(target)
    read, report = read_rules_argument(rules, notes, at=at, escaped=escaped)
    if not len(read) and not _is_native(rules):
        raise RuleError(f"{rules}: the file contains no rules")
    with Slow(notes, f"writing {len(read):,} rules", f"wrote {len(read):,} rules"):
        read.save(target, escaped=escaped)
    if common.json:
        rejected = [{"line": line, "reason": reason} for line, reason in report.rejected]
        print_json({"rules": len(read), "comments": report.n_comments, "rejected": rejected, "out": str(target)})
    elif not common.quiet:
        result_console().say(f"{counted(len(read), 'rule')} written to {target}")


def _is_native(rules: str) -> bool:
    """A run folder or a Parquet file may hold no rules; text without any is probably a mistake."""
    return Path(rules).is_dir() or rules.lower().endswith(".parquet")
