"""`anyburl learn`: triples in, rules out."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import InvalidOptionError, OptionError, RunError, counted
from anyburl.cli.arguments import OBJECT_IDENTITY, Json, Quiet
from anyburl.cli.loading import load_data_argument, recorded_data
from anyburl.cli.notes import PlainConsole, note_console, print_json, result_console
from anyburl.cli.reading import Reading, reading
from anyburl.cli.session import Session, require_engine, run_session
from anyburl.cli.shell_completion import complete_data, one_of
from anyburl.cli.tables import counts_table, outlook_table
from anyburl.learning.options import ENGINES, HEADS, POLICIES, REWARDS, SECONDS, LearnOptions

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.data.options import ReadOptions
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder, Update

NAME = "learn"
EXAMPLE = (
    "Example:  anyburl learn geo --seconds 10 --out runs/geo\n\n"
    "Continue a run:  anyburl learn --out runs/geo --resume --seconds 60"
)
SNAPSHOTS = ",".join(f"{moment:g}" for moment in LearnOptions.snapshots)
BUDGET, RULES, SEARCH = "Budget", "Which rules", "Search"


def _option(text: str, panel: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=panel, **more)


def _choice(text: str, panel: str, names: tuple[str, ...]) -> Any:
    return _option(f"{text}: {', '.join(names)}.", panel, metavar="NAME", autocompletion=one_of(*names))


@reading
def command(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to write.")],
    reading: Reading,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A data set name (see `anyburl datasets`), a folder with train, valid and test, a file, an index "
            "(see `anyburl index`), or an address: sparql:http://HOST/PATH, postgresql://HOST/DB#TABLE, "
            "duckdb:PATH#TABLE, sqlite:PATH#TABLE. With --resume, defaults to the data of the run.",
            autocompletion=complete_data,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue RUN with its own options, except those given now. If DATA has changed, learn "
            "anew for --seconds, replace RUN once that is done, and report how its rules have changed.",
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        _option("How long to learn, including the time before --resume.", BUDGET, show_default=f"{SECONDS:g}"),
    ] = LearnOptions.seconds,
    paths: Annotated[
        int | None, _option("Sample this many paths instead; with a seed, the rules are always the same.", BUDGET)
    ] = LearnOptions.paths,
    snapshots: Annotated[str, _option("Save a snapshot of the rules after these seconds.", BUDGET)] = SNAPSHOTS,
    max_rules: Annotated[
        int | None, _option("Keep at most this many rules, dropping the least valuable.", BUDGET)
    ] = LearnOptions.max_rules,
    max_cyclic: Annotated[int, _option("Longest body of binary rules (B).", RULES)] = LearnOptions.max_cyclic,
    max_acyclic: Annotated[
        int, _option("Longest body of unary rules (Uc, Ud) from acyclic paths.", RULES)
    ] = LearnOptions.max_acyclic,
    max_grounded: Annotated[
        int, _option("Longest body of rules with the same constant in head and body (Uc from cyclic paths).", RULES)
    ] = LearnOptions.max_grounded,
    min_support: Annotated[int, _option("Minimum number of correct predictions.", RULES)] = LearnOptions.min_support,
    min_confidence: Annotated[
        float, _option("Keep rules with a confidence above this.", RULES)
    ] = LearnOptions.min_confidence,
    relations: Annotated[
        list[str] | None,
        _option(
            "Learn rules for these relations only. Separate them with commas, or repeat the option.",
            RULES,
            metavar="A,B",
        ),
    ] = None,
    object_identity: Annotated[bool, _option(OBJECT_IDENTITY, RULES)] = LearnOptions.object_identity,
    policy: Annotated[str, _choice("How to divide cores among path profiles", SEARCH, POLICIES)] = LearnOptions.policy,
    reward: Annotated[str, _choice("How to value the new rules of a profile", SEARCH, REWARDS)] = LearnOptions.reward,
    epsilon: Annotated[float, _option("Share of cores that explore at random.", SEARCH)] = LearnOptions.epsilon,
    saturation: Annotated[
        float, _option("Share of known rules at which the policy `saturation` moves on to longer ones.", SEARCH)
    ] = LearnOptions.saturation,
    span: Annotated[float, _option("Length of a time span in seconds.", SEARCH)] = LearnOptions.span,
    heads: Annotated[
        str,
        _choice("Heads to try for a body (the paper tries only the sampled one)", SEARCH, HEADS),
    ] = LearnOptions.heads,
    budget: Annotated[
        int, _option("Edges to visit per body; beyond that, its counts are estimated.", SEARCH)
    ] = LearnOptions.budget,
    precision: Annotated[
        float,
        _option(
            "On large graphs, how precisely to estimate a confidence: its 95 % interval is within this, or within "
            "five times this share of it.",
            SEARCH,
        ),
    ] = LearnOptions.precision,
    engine: Annotated[str, _choice("The engine that runs the search", SEARCH, ENGINES)] = LearnOptions.engine,
    address: Annotated[
        str | None,
        _option(
            "The Ray cluster to run on, such as 10.0.0.1:6379. Defaults to this machine.", SEARCH, metavar="ADDRESS"
        ),
    ] = LearnOptions.address,
    threads: Annotated[
        int | None, _option("Number of threads, or of workers with --engine ray. Defaults to one per core.", SEARCH)
    ] = LearnOptions.threads,
    seed: Annotated[int, _option("Seed of all random numbers.", SEARCH)] = LearnOptions.seed,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn rules from DATA's train split into a run folder. Stop at any time: the rules found so far are saved."""
    notes = note_console(quiet=quiet)
    given = given_options(ctx)
    session = (
        _resume(data, out, given, notes, reading) if resume else _begin(data, out, given, notes, reading.options())
    )
    if json:
        print_json(session.to_json())
    elif not quiet:
        _print_summary(session)
    if session.was_interrupted:
        raise typer.Exit(130)


def given_options(ctx: typer.Context) -> dict[str, Any]:
    """Return the options of `LearnOptions` that were given on the command line; the others keep their defaults."""
    names = {field.name for field in fields(LearnOptions)}
    given = {name: value for name, value in ctx.params.items() if name in names and _is_given(ctx, name)}
    if "snapshots" in given:
        given["snapshots"] = _moments(given["snapshots"])
    return given


def _is_given(ctx: typer.Context, name: str) -> bool:
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _moments(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InvalidOptionError("snapshots", "seconds such as 10,50,100", text) from None


def _begin(data: str | None, out: Path, given: dict[str, Any], notes: PlainConsole, reading: ReadOptions) -> Session:
    """Start a new run; wrong input is reported before anything is compiled."""
    if data is None:
        raise OptionError("DATA is missing: name a data set (such as geo), a folder or a file")
    options = LearnOptions(**{**given, "relations": None})
    require_engine(options.engine)
    if (out / "options.json").exists():
        raise RunError(f"{out} already contains a run: choose another folder, or continue the run with --resume")
    dataset = load_data_argument(data, notes, reading)
    options = LearnOptions(**_with_labels(given, dataset))

    from anyburl.learning.engines.base import target_relations
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder
    from anyburl.learning.run import RunDirectory

    def start() -> tuple[Learner, Recorder]:
        learner = Learner(dataset.train, options)
        return learner, Recorder(RunDirectory.create(out, dataset, options))

    target_relations(dataset.train, options)
    _make_folder(out)
    return run_session(dataset, options, start, notes)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write the run folder {out}: {error.strerror}") from error
    if not os.access(out, os.W_OK):
        raise RunError(f"cannot write the run folder {out}: permission denied")


def _resume(data: str | None, out: Path, given: dict[str, Any], notes: PlainConsole, reading: Reading) -> Session:
    """Continue a run; its data is read as before, but for the reading options that are given now."""
    from anyburl.learning.learn import resume
    from anyburl.learning.recorder import check_budget
    from anyburl.learning.run import RunDirectory, claim_run

    run = RunDirectory.open(out)
    claim_run(out).release()  # refuse at once what another process is writing
    described = dict(run.described()["data"])
    described["source"] = data or described.get("source")
    source, before = recorded_data(described, f"{out} does not record where its data came from: pass DATA")
    dataset = load_data_argument(source, notes, before.changed(reading.options()))
    changes = _with_labels(given, dataset)
    options = run.options().changed(**changes)

    has_changed = run.described()["data"].get("fingerprint") != dataset.fingerprint
    if has_changed:
        check_budget(options)

    def start() -> tuple[Learner, Recorder]:
        learner, recorder = resume(run, dataset, **changes)
        if has_changed:
            notes.say(f"the data of {out} has changed: learning its rules anew")
        else:
            notes.say(f"continuing {out}: {learner.store.n_rules:,} rules after {learner.elapsed:.1f} s")
        return learner, recorder

    return run_session(dataset, options, start, notes, replacing=str(out) if has_changed else None)


def _with_labels(given: dict[str, Any], dataset: Dataset) -> dict[str, Any]:
    """Replace `relations` by labels: each value is one label, or several separated by commas."""
    if not given.get("relations"):
        return given
    labels, names, vocabulary = list[str](), dataset.names, dataset.vocabulary
    for value in given["relations"]:
        is_label = names.label_of(value, vocabulary.relations, "relation") in vocabulary.relations
        parts = [value] if is_label else [part for part in value.split(",") if part]
        labels += [vocabulary.relation_label(names.relation_id(part, vocabulary)) for part in parts]
    if not labels:
        raise OptionError("--relations is empty: name at least one relation")
    return {**given, "relations": tuple(labels)}


def _print_summary(session: Session) -> None:
    """Print how many rules there are, where they are and what to do with them."""
    run = session.recorder.run.path
    out = result_console()
    if session.recorder.update:
        _print_update(session.recorder.update, out)
    if not len(session.rules):
        out.say(f"no rules found in {session.learner.elapsed:.1f} s; the run is in {run}")
        return
    out.print(counts_table(session.rules.counts_by_length()))
    if session.learner.stopped_by != "complete":
        out.print(outlook_table(session.learner.outlook()))
        out.say("seen: estimated share of further paths, or of all bodies where they are listed, that is known")
    out.say(f"{counted(len(session.rules), 'rule')} in {session.learner.elapsed:.1f} s, saved in {run}")
    out.say(f"see the best:      anyburl rules {run}")
    out.say(f"in a browser:      anyburl serve {run}")
    if session.was_interrupted:
        out.say(f"continue the run:  anyburl learn --out {run} --resume")


def _print_update(update: Update, out: PlainConsole) -> None:
    """Print what has changed in the data and, as a consequence, in the rules."""
    facts = f"{counted(update.triples_added, 'triple')} added, {update.triples_removed:,} removed"
    changes = f"{update.changed:,} changed (confidence up {update.rose:,}, down {update.fell:,})"
    out.say(f"{facts}; learned anew in {update.seconds:.1f} s")
    out.say(f"rules: {update.gone:,} gone, {update.new:,} new, {changes}, {update.unchanged:,} unchanged")
