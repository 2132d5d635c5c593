"""`anyburl plot`: plots of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import DataError, OptionError
from anyburl.cli.arguments import Data, Without, command
from anyburl.cli.loading import AskingOptions, RulesAndData
from anyburl.cli.notes import Slow, note_console, print_json, result_console

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anyburl.learning.run import RunDirectory
    from anyburl.ranking.options import RankOptions

    Draw = Callable[[Axes], Axes]

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
    asked: Annotated[
        AskingOptions, Without("names", "weights", "object_identity", "prepare", "escaped", "with_scores")
    ],
) -> None:
    """Plot runs: quality over time, rules by type and confidence, reward and cores per profile, calibration."""
    from anyburl.tools.plotting import new_figure

    new_figure()
    names = _chosen(what)
    _check_out(out)
    _check_metric(metric)
    plots = Plots(runs, data, asked.ranking, split, metric, asked.seed, quiet=asked.quiet)
    if what is None and not plots.can_rank():
        names = [name for name in names if name not in RANKED]
    files = _write_plot(out, {name: plots.drawing(name) for name in names})
    if asked.json:
        print_json({"files": [str(file) for file in files], "plots": names})
    elif not asked.quiet:
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
    from anyburl.tools.plotting import SUFFIXES

    if out.suffix and out.suffix.lower() not in SUFFIXES and not out.is_dir():
        raise DataError(f"{out}: expected a folder, or a file that ends in one of {', '.join(SUFFIXES)}")
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

    def drawing(self, name: str) -> Draw:
        """Work out a picture, and return what draws it."""
        draw: Draw = getattr(self, f"_{name}")()
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

    def _anytime(self) -> Draw:
        from anyburl.tools.plotting import AnytimePoint, anytime_points, plot_anytime

        found: dict[str, list[AnytimePoint]] = {}
        for label, run in zip(self._labels(), self.runs, strict=True):
            source = self._source(run)
            source.compile(explaining=False)
            with Slow(self.notes, f"evaluating the snapshots of {run.path}", f"evaluated {run.path}"):
                found[label] = anytime_points(run, source.dataset, split=self.split, options=self.options)
        return lambda axes: plot_anytime(found, metric=self.metric, axes=axes)

    def _labels(self) -> list[str]:
        """Name the runs by their policies, or by their folders where those are the same."""
        policies = [run.options().policy for run in self.runs]
        folders = [run.path.resolve().name for run in self.runs]
        names = next((names for names in (policies, folders) if len(set(names)) == len(names)), None)
        return names or [str(run.path) for run in self.runs]

    def _rules(self) -> Draw:
        from anyburl.tools.plotting import plot_rules

        rules = self.runs[0].load_rules()
        return lambda axes: plot_rules(rules, axes=axes)

    def _rewards(self) -> Draw:
        from anyburl.tools.plotting import plot_rewards

        return lambda axes: plot_rewards(self.runs[0].trace(), axes=axes)

    def _cores(self) -> Draw:
        from anyburl.tools.plotting import plot_cores

        return lambda axes: plot_cores(self.runs[0].trace(), axes=axes)

    def _calibration(self) -> Draw:
        from anyburl.tools.plotting import calibration_table, plot_calibration

        source = self._source(self.runs[0])
        with (
            source.open(self.options) as reasoner,
            Slow(self.notes, "comparing predictions with the split", "compared predictions with the split"),
        ):
            table = calibration_table(reasoner, split=self.split, seed=self.seed)
        return lambda axes: plot_calibration(table, split=self.split, axes=axes)


def _write_plot(out: Path, drawings: dict[str, Draw]) -> list[Path]:
    """Write one picture with all drawings, or one for each into a folder; return the files."""
    from anyburl.tools.plotting import SIZE, new_figure, save

    if out.suffix and not out.is_dir():
        columns = min(2, len(drawings))
        rows = -(-len(drawings) // columns)
        figure: Any = new_figure(SIZE[0] * columns, SIZE[1] * rows)
        for place, draw in enumerate(drawings.values(), 1):
            draw(figure.add_subplot(rows, columns, place))
        save(figure, out)
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    files = {out / f"{name}.png": draw for name, draw in drawings.items()}
    for file, draw in files.items():
        figure = new_figure()
        draw(figure.add_subplot())
        save(figure, file)
    return list(files)
