"""`anyburl learn` and `plot`: learn rules into a run folder, and draw how runs went."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import DataError, OptionError, RunError, counted
from anyburl.cli.arguments import Data, Json, Quiet, Without, command, complete_data
from anyburl.cli.loading import AskingOptions, RulesAndData, load_data_argument, recorded_data
from anyburl.cli.notes import PlainConsole, Slow, note_console, print_json, require_engine, result_console
from anyburl.cli.session import Session, run_session
from anyburl.cli.tables import counts_table, outlook_table
from anyburl.data.options import ReadOptions
from anyburl.learning.options import DISTILLED, LearnOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anyburl.data.dataset import Dataset
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder, Update
    from anyburl.learning.run import RunDirectory
    from anyburl.ranking.options import RankOptions


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


PLOTS = ("anytime", "rules", "rewards", "cores", "calibration")
RANKED = ("anytime", "calibration")


@command(
    "plot",
    "Example:  anyburl plot runs/geo --out geo.png\n\n"
    "Compare policies:  anyburl plot runs/weighted runs/random --what anytime --out pictures",
)
def plot_command(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders. `anytime` compares them; the other plots show the first."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER|FILE", help="A folder for one file per plot, or a .png, .svg or .pdf file for all."
        ),
    ],
    what: Annotated[
        str | None, typer.Option(metavar="NAME,...", help=f"Plots to draw: {', '.join(PLOTS)}. Defaults to all.")
    ] = None,
    metric: Annotated[
        str, typer.Option(metavar="mrr|hits@1|hits@3|hits@10", help="The metric that `anytime` shows.")
    ] = "mrr",
    split: Annotated[str, typer.Option(metavar="test|valid", help="The split to rank.")] = "test",
    data: Data = None,
    *,
    common: Annotated[
        AskingOptions, Without("names", "weights", "object_identity", "prepare", "escaped", "with_scores")
    ],
) -> None:
    """Plot runs: quality over time, rules by type and confidence, reward and cores per profile, calibration."""
    from anyburl.tools.plotting import new_figure

    new_figure()
    names = _chosen(what)
    _check_out(out)
    _check_metric(metric)
    plots = Plots(runs, data, common.ranking, split, metric, common.seed, quiet=common.quiet)
    if what is None and not plots.can_rank():
        names = [name for name in names if name not in RANKED]
    files = _write_plot(out, {name: plots.drawing(name) for name in names})
    if common.json:
        print_json({"files": [str(file) for file in files], "plots": names})
    elif not common.quiet:
        for file in files:
            result_console().say(f"wrote {file}")


def _chosen(what: str | None) -> list[str]:
    if what is None:
        return list(PLOTS)
    names = [name.strip() for name in what.split(",") if name.strip()]
    if not names or set(names) - set(PLOTS):
        raise OptionError(f"--what takes {', '.join(PLOTS)}, separated by commas, got {what!r}")
    return names


def _check_out(out: Path) -> None:
    """Refuse, before any work is done, what pictures cannot be written to."""
    from anyburl.tools.plotting import PLOT_SUFFIXES

    if out.suffix and out.suffix.lower() not in PLOT_SUFFIXES and not out.is_dir():
        raise DataError(f"{out}: expected a folder, or a file that ends in one of {', '.join(PLOT_SUFFIXES)}")
    if out.suffix and not out.parent.is_dir():
        raise DataError(f"{out}: the folder {out.parent} does not exist")


def _check_metric(metric: str) -> None:
    from anyburl.tools.plotting import METRICS

    if metric not in METRICS:
        raise OptionError(f"--metric takes {', '.join(METRICS)}, got {metric!r}")


class Plots:
    """The runs, and what can be drawn of them."""

    def __init__(
        self,
        runs: list[Path],
        data: str | None,
        options: RankOptions,
        split: str,
        metric: str,
        seed: int,
        *,
        quiet: bool,
    ) -> None:
        from anyburl.learning.run import RunDirectory

        self.runs = [RunDirectory.open(run) for run in runs]
        self.options, self.split, self.metric, self.seed = options, split, metric, seed
        self.notes = note_console(quiet=quiet)
        self.data = data
        self._sources: dict[Path, RulesAndData] = {}

    def drawing(self, name: str) -> Callable[[Axes], Axes]:
        """Work out a picture, and return what draws it."""
        draw: Callable[[Axes], Axes] = getattr(self, f"_{name}")()
        return draw

    def can_rank(self) -> bool:
        """Return whether there are triples to ask for; say what is left out if not."""
        dataset = self._source(self.runs[0]).dataset
        if len(dataset.split(self.split)):
            return True
        self.notes.say(
            f"{dataset.name} has no triples in its {self.split} split: skipping {' and '.join(RANKED)}", "yellow"
        )
        return False

    def _source(self, run: RunDirectory) -> RulesAndData:
        """Return the rules and data of a run, loaded once."""
        if run.path not in self._sources:
            self._sources[run.path] = RulesAndData(str(run.path), self.data, self.notes)
        return self._sources[run.path]

    def _anytime(self) -> Callable[[Axes], Axes]:
        from anyburl.tools.plotting import AnytimePoint, anytime_points, plot_anytime

        points: dict[str, list[AnytimePoint]] = {}
        for label, run in zip(self._labels(), self.runs, strict=True):
            source = self._source(run)
            source.compile(explaining=False)
            with Slow(self.notes, f"evaluating the snapshots of {run.path}", f"evaluated {run.path}"):
                points[label] = anytime_points(run, source.dataset, split=self.split, options=self.options)
        return lambda axes: plot_anytime(points, metric=self.metric, axes=axes)

    def _labels(self) -> list[str]:
        """Name the runs by their policies, or by their folders where those are the same."""
        policies = [run.options().policy for run in self.runs]
        folders = [run.path.resolve().name for run in self.runs]
        names = next((names for names in (policies, folders) if len(set(names)) == len(names)), None)
        return names or [str(run.path) for run in self.runs]

    def _rules(self) -> Callable[[Axes], Axes]:
        from anyburl.tools.plotting import plot_rules

        rules = self.runs[0].load_rules()
        return lambda axes: plot_rules(rules, axes=axes)

    def _rewards(self) -> Callable[[Axes], Axes]:
        from anyburl.tools.plotting import plot_rewards

        return lambda axes: plot_rewards(self.runs[0].trace(), axes=axes)

    def _cores(self) -> Callable[[Axes], Axes]:
        from anyburl.tools.plotting import plot_cores

        return lambda axes: plot_cores(self.runs[0].trace(), axes=axes)

    def _calibration(self) -> Callable[[Axes], Axes]:
        from anyburl.tools.plotting import calibration_table, plot_calibration

        source = self._source(self.runs[0])
        with (
            source.open(self.options) as reasoner,
            Slow(self.notes, "comparing predictions with the split", "compared predictions with the split"),
        ):
            table = calibration_table(reasoner, split=self.split, seed=self.seed)
        return lambda axes: plot_calibration(table, split=self.split, axes=axes)


def _write_plot(out: Path, drawings: dict[str, Callable[[Axes], Axes]]) -> list[Path]:
    """Write one picture with all drawings, or one for each into a folder; return the files."""
    from anyburl.tools.plotting import SIZE, new_figure, save

    if out.suffix and not out.is_dir():
        columns = min(2, len(drawings))
        rows = -(-len(drawings) // columns)
        figure: Any = new_figure(SIZE[0] * columns, SIZE[1] * rows)
        for number, draw in enumerate(drawings.values(), 1):
            draw(figure.add_subplot(rows, columns, number))
        save(figure, out)
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    files = {out / f"{name}.png": draw for name, draw in drawings.items()}
    for file, draw in files.items():
        figure = new_figure()
        draw(figure.add_subplot())
        save(figure, file)
    return list(files)
