"""`anyburl learn`: triples in, rules out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import OptionError, RunError, counted
from anyburl.cli.arguments import Json, Quiet, command, complete_data
from anyburl.cli.loading import load_data_argument, recorded_data
from anyburl.cli.notes import PlainConsole, note_console, print_json, require_engine, result_console
from anyburl.cli.session import Session, run_session
from anyburl.cli.tables import counts_table, outlook_table
from anyburl.data.options import ReadOptions
from anyburl.learning.options import DISTILLED, LearnOptions

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder, Update


@command(
    "learn",
    "Example:  anyburl learn geo --seconds 10 --out runs/geo\n\n"
    "Continue a run:  anyburl learn --out runs/geo --resume --seconds 60",
    takes_long=True,
)
def learn_command(
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to write.")],
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
    distil: Annotated[
        bool,
        typer.Option("--distil", help="Keep as few rules as rank held-out facts nearly as well: --keep distilled."),
    ] = False,
    *,
    given: Annotated[dict[str, Any], LearnOptions],
    quiet: Quiet = False,
    json: Json = False,
    reading: ReadOptions,
) -> None:
    """Learn rules from DATA's train split into a run folder. Stop at any time: the rules found so far are saved."""
    notes = note_console(quiet=quiet)
    if distil:
        if given.get("keep", DISTILLED) != DISTILLED:
            raise OptionError(f"--distil is --keep {DISTILLED}, got --keep {given['keep']}")
        given["keep"] = DISTILLED
    session = (_resume if resume else _begin)(data, out, given, notes, reading)
    if json:
        print_json(session.to_json())
    elif not quiet:
        _print_summary(session)
    if session.was_interrupted:
        raise typer.Exit(130)


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

    from anyburl.learning.engine import target_relations
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


def _resume(data: str | None, out: Path, given: dict[str, Any], notes: PlainConsole, reading: ReadOptions) -> Session:
    """Continue a run; its data is read as before, but for the reading options that are given now."""
    from anyburl.learning.recorder import check_budget, resume
    from anyburl.learning.run import RunDirectory, claim_run

    run = RunDirectory.open(out)
    claim_run(out).release()  # refuse at once what another process is writing
    described = dict(run.described()["data"])
    described["source"] = data or described.get("source")
    source, before = recorded_data(described, f"{out} does not record where its data came from: pass DATA")
    dataset = load_data_argument(source, notes, before.changed(reading))
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
