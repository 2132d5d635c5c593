"""Promises that hold: how likely proposed facts are said to be, and how many of them are true.

python benchmarks/bench_promises.py DATA [--aggregation tuned] [--missing 0.1] [--seconds 40] [--run RUN]

DATA is the name of a data set, whose test split is hidden, or a folder with `data` (train and valid) and `hidden.txt`,
facts that are true and stated nowhere. Only this file reads hidden facts: rules are learned, calibrated and completed
from train and valid. Figures go to benchmarks/results/promises.json, one entry for each data set, aggregation and
share of hidden facts, and a plot for each relation with enough proposals goes to a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

import anyburl
from anyburl.tools.plotting import COLOURS, new_figure, ready_axes, short
from anyburl.tools.plotting import save as save_figure
from common import HERE, save, shared, timed

LEAST = (0.5, 0.8, 0.9)
ENOUGH = 300  # proposals of a relation, to say something about it alone
KEYS = ["subject", "relation", "object"]
BIN = 0.05  # the width of a bin in a plot, in probability
COLUMNS = 4  # of plots


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--name", help="of the data set in results, if DATA is a folder")
    parser.add_argument("--run", type=Path, help="a run folder on train and valid, in place of learning")
    parser.add_argument("--aggregation", default="max")
    parser.add_argument("--missing", type=float, help="the share of missing facts, if it is told")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20, help="of learning")
    parser.add_argument("--paths", type=int, help="learn from so many paths instead")
    parser.add_argument("--min-support", type=int)
    parser.add_argument("--min-confidence", type=float)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, hidden = split(chosen.data, Path(scratch))
        n_stated, found, proposed = measure(chosen.run, folder, hidden, chosen, Path(scratch) / "run")
    name = chosen.name or Path(chosen.data).name
    share = round(len(hidden) / (len(hidden) + n_stated), 3)
    key = f"{name}, {chosen.aggregation}, {share:g} hidden"
    show(key, found)
    path = HERE / "results" / "promises.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    results[key] = {"command": command(chosen, name), **found}
    save("promises", dict(sorted(results.items())), "python benchmarks/bench_promises.py DATA", quiet=True)
    draw(key, proposed, path.with_name(f"promises-{name}-{chosen.aggregation.replace(':', '')}-{share:g}.png"))


def split(data: str, scratch: Path) -> tuple[Path, pl.DataFrame]:
    """Return a folder with train and valid alone, and the facts that are hidden from it."""
    given = Path(data)
    if (given / "hidden.txt").is_file():
        columns = pl.read_csv(
            given / "hidden.txt",
            separator="\t",
            has_header=False,
            new_columns=KEYS,
            quote_char=None,
            infer_schema=False,
        )
        return given / "data", columns
    built_in = data == "geo"
    whole = anyburl.load_dataset(data if built_in or given.is_dir() else shared() / "data" / data)
    if not len(whole.test):
        raise SystemExit(f"{data} has no test split to hide")
    folder = scratch / "data"
    folder.mkdir()
    for name in ("train", "valid"):
        stated = whole.split(name).to_polars()
        stated.write_csv(folder / f"{name}.txt", separator="\t", include_header=False, quote_style="never")
    return folder, whole.test.to_polars()


def measure(
    run: Path | None, folder: Path, hidden: pl.DataFrame, chosen: argparse.Namespace, scratch: Path
) -> tuple[int, dict[str, Any], pl.DataFrame]:
    """Learn, calibrate, complete; return how many facts are stated, the figures, and the facts that were proposed."""
    data, found = anyburl.load_dataset(folder), {}
    if run is None:
        run, options = scratch, {"paths": chosen.paths} if chosen.paths else {"seconds": chosen.seconds}
        options |= {
            name: value for name in ("min_support", "min_confidence") if (value := getattr(chosen, name)) is not None
        }
        learning, _ = timed(lambda: anyburl.learn(data, seed=chosen.seed, out=scratch, **options))
        found["learned"] = {**options, "took": round(learning, 1)}
    with anyburl.Reasoner.open(run, data, aggregation=chosen.aggregation, seed=chosen.seed) as reasoner:
        evaluating, _ = timed(lambda: reasoner.evaluate("valid"))
        calibrating, report = timed(lambda: reasoner.calibrate(missing=chosen.missing))
        found |= {"rules": len(reasoner.rules), "missing": report.missing}
        seconds = {"evaluate": evaluating, "calibrate": calibrating}
        promises, first = {}, pl.DataFrame()
        for least in LEAST:
            seconds[f"complete from {least}"], proposed = timed(
                lambda least=least: pl.concat(list(reasoner.complete(min_probability=least)))
            )
            proposed = proposed.join(hidden.with_columns(true=True), on=KEYS, how="left")
            proposed = proposed.with_columns(pl.col("true").fill_null(value=False))
            promises[str(least)] = kept(proposed, len(hidden))
            first = proposed if least == LEAST[0] else first
    found["seconds"] = {name: round(took, 2) for name, took in seconds.items()}
    n_stated = len(data.train) + len(data.valid)
    return n_stated, {**found, "facts": {"stated": n_stated, "hidden": len(hidden)}, "promises": promises}, first


def kept(proposed: pl.DataFrame, n_hidden: int) -> dict[str, Any]:
    """Return what was promised, and what is true, overall and by relation, those with the most facts first."""
    said = [pl.len().alias("facts"), pl.mean("probability").alias("promised"), pl.mean("true").alias("true")]
    rounded = pl.col("promised", "true").round(4)
    relations = proposed.group_by("relation").agg(said).sort(["facts", "relation"], descending=[True, False])
    enough = relations.filter(pl.col("facts") >= ENOUGH).with_columns(off=pl.col("promised") - pl.col("true"))
    worst = enough.sort(pl.col("off").abs(), descending=True).head(1).with_columns(rounded, pl.col("off").round(4))
    back = int(proposed["true"].sum())
    return {
        **proposed.select(said).with_columns(rounded).row(0, named=True),
        "hidden_found": back,
        "hidden_found_share": round(back / n_hidden, 4),
        "worst_relation": worst.row(0, named=True) if len(worst) else None,
        "by_relation": relations.with_columns(rounded).to_dicts(),
    }


def show(key: str, found: dict[str, Any]) -> None:
    """Print the figures as tables."""
    print(f"{key}: {found['rules']:,} rules, missing {found['missing']['share']:.3f} ({found['missing']['because']})")
    print(f"{'from':>5} {'facts':>9} {'promised':>9} {'true':>6} {'hidden found':>17}  worst of {ENOUGH} or more")
    for least, one in found["promises"].items():
        back = f"{one['hidden_found']:,} ({one['hidden_found_share']:.1%})"
        worst = one["worst_relation"]
        told = f"{worst['relation']}: {worst['promised']:.3f}, true {worst['true']:.3f}" if worst else "-"
        print(f"{least:>5} {one['facts']:>9,} {figure(one['promised'])} {figure(one['true'])} {back:>17}  {told}")
    width = max((len(row["relation"]) for row in found["promises"][str(LEAST[0])]["by_relation"]), default=8)
    print(f"{'relation':<{width}}" + "".join(f" | {least:>8} promised   true" for least in LEAST))
    rows: dict[str, list[str]] = {}
    for place, one in enumerate(found["promises"].values()):
        for row in one["by_relation"]:
            cells = rows.setdefault(row["relation"], [f"{'':>24}"] * len(LEAST))
            cells[place] = f"{row['facts']:>8,} {figure(row['promised'])} {figure(row['true'])}"
    for relation, cells in rows.items():
        print(f"{relation:<{width}}" + "".join(f" | {cell}" for cell in cells))
    print(", ".join(f"{name} {took:.1f} s" for name, took in found["seconds"].items()))


def figure(share: float | None) -> str:
    """Return a share in six or more characters."""
    return "     -" if share is None else f"{share:>6.3f}"


def draw(key: str, proposed: pl.DataFrame, path: Path) -> None:
    """Draw promised against true, with numbers of facts, for each relation with enough proposals; all have the same
    axes.
    """
    sizes = proposed.group_by("relation").len().filter(pl.col("len") >= ENOUGH).sort(["len", "relation"])[::-1]
    names = sizes["relation"].to_list()
    if not names:
        path.unlink(missing_ok=True)
        return
    n_rows = -(-len(names) // COLUMNS)
    drawing: Any = new_figure(3.2 * min(len(names), COLUMNS), 2.8 * n_rows + 0.4)
    drawing.suptitle(key, fontsize=11)
    for place, name in enumerate(names, 1):
        axes = ready_axes(drawing.add_subplot(n_rows, min(len(names), COLUMNS), place), name[-40:], "promised", "true")
        axes.title.set_fontsize(9)
        own = proposed.filter(pl.col("relation") == name).with_columns(bin=(pl.col("probability") / BIN).floor())
        bins = own.group_by("bin").agg(pl.mean("probability", "true"), pl.len()).sort("bin")
        axes.plot([LEAST[0], 1], [LEAST[0], 1], color="#999999", linestyle="--", linewidth=1)
        axes.plot(bins["probability"], bins["true"], color=COLOURS[0], marker="o", markersize=4)
        for likely, true, n_facts in bins.select("probability", "true", "len").iter_rows():
            place_of_text = {"xytext": (0, 6), "textcoords": "offset points", "ha": "center"}
            axes.annotate(short(n_facts), (likely, true), fontsize=7, color=COLOURS[0], **place_of_text)
        axes.set_xlim(LEAST[0] - 0.02, 1.02)
        axes.set_ylim(-0.05, 1.12)
    save_figure(drawing, path)


def command(chosen: argparse.Namespace, name: str) -> str:
    """Return the command to write down: without the folders of this machine."""
    words = ["python benchmarks/bench_promises.py", name]
    for option in ("aggregation", "missing", "paths", "min_support", "min_confidence", "seed"):
        if (value := getattr(chosen, option)) is not None:
            words.append(f"--{option.replace('_', '-')} {value}")
    words.append("--run RUN" if chosen.run else f"--seconds {chosen.seconds:g}" if not chosen.paths else "")
    return " ".join(filter(None, words))


if __name__ == "__main__":
    main()
