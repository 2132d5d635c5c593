"""Promises that hold: how likely proposed facts are said to be, and how many of them are true.

python benchmarks/bench_promises.py                         every part below, with max and tuned, and what each bar says
python benchmarks/bench_promises.py geo debian-0.1 --aggregations max --seeds 1 2
python benchmarks/bench_promises.py FOLDER --missing 0.1    FOLDER has `data` (train and valid) and `hidden.txt`

Parts are data sets, whose test split is hidden (with -told at the end: and its share of all facts is told);
debian-SHARE, Debian's packages with a share of the facts hidden, which `tools/debian.py` of the shared folder makes
from the package lists of this machine; `review`, the first cards on Debian; and `verified`, CoDEx-S's facts that people
found to be false. Only this file reads hidden facts: rules are learned, calibrated and completed from train and valid.
Each part is kept in benchmarks/results/promises.json when it is done and not measured again, unless `--again`; data and
runs are kept in `--scratch`. Plots by relation lie beside it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import anyburl
from anyburl.models.embedding import FILE as EMBEDDING
from anyburl.models.embedding import embed
from anyburl.tools.plotting import COLOURS, new_figure, ready_axes, short
from anyburl.tools.plotting import save as save_figure
from anyburl.tools.review import ReviewLog, review_queue
from common import HERE, machine, save, shared, timed

LEAST = (0.5, 0.8, 0.9)
ENOUGH = 300  # proposals of a relation, to say something about it alone
CHANCE = 2.0  # standard errors: what is off by less may be so by chance
KEYS = ["subject", "relation", "object"]
BIN = 0.05  # the width of a bin in a plot, in probability
COLUMNS = 4  # of plots
DEBIAN, REVIEW, VERIFIED = "debian", "review", "verified"
DEBIAN_HIDDEN = (0.1, 0.05, 0.2)
SMALL = ("geo", "umls", "nations", "CoDEx-S", "WN18RR", "FB15k-237")
PARTS = (*SMALL, "FB15k-237-told", *(f"{DEBIAN}-{share:g}" for share in DEBIAN_HIDDEN), REVIEW, VERIFIED)
LEARNING: dict[str, dict[str, Any]] = {
    DEBIAN: {"seconds": 40, "min_support": 5, "min_confidence": 0.05},
    "FB15k-237": {"seconds": 40, "min_support": 5, "min_confidence": 0.05},
}
TOLD = "-told"  # at the end of a part: calibrated with the share that is hidden, as `--missing` takes it
BRIEFLY: dict[str, Any] = {"seconds": 10}
EVALUATED = 20_000  # facts: of more, these are drawn, and the time is multiplied
CARDS = 50
HYBRID = "hybrid"  # proposes no facts: it has a part in `verified` alone
AROUND = 5  # thresholds on either side of one that count for it
WEIGHT = 10.0  # of the facts of all relations, where the threshold of one relation is chosen

Results = dict[str, Any]
Floats = NDArray[np.float64]


def main() -> None:
    """Measure what is asked for, and say which bars are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART")
    parser.add_argument("--aggregations", nargs="+", default=("max", "tuned"))
    parser.add_argument("--seeds", nargs="+", type=int, default=(1,))
    parser.add_argument("--missing", type=float, help="the share of missing facts that is told, of folders")
    parser.add_argument("--seconds", type=float, help="of learning, in place of those of the part")
    parser.add_argument("--embeddings", type=Path, help="for hybrid, as bench_tuned.py takes them")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "anyburl-promises")
    parser.add_argument("--no-times", action="store_true", help="keep no times: on a busy machine they say nothing")
    parser.add_argument("--again", action="store_true", help="measure what was measured before, too")
    chosen = parser.parse_args()
    path = HERE / "results" / "promises.json"
    results = stored(path)
    for part in chosen.parts:
        for seed in chosen.seeds:
            for aggregation in chosen.aggregations:
                key = f"{Path(part).name}, {aggregation}, seed {seed}"
                if key in results and not chosen.again:
                    print(f"{key}: measured before")
                    continue
                measure = {REVIEW: measure_review, VERIFIED: measure_verified}.get(part, measure_promises)
                figures = measure(Setting(part, aggregation, seed, chosen))
                results = stored(path) | {key: {"machine": machine(), **figures}}  # others may measure at the same time
                save("promises", dict(sorted(results.items())), "python benchmarks/bench_promises.py", quiet=True)
    show_bars(results)


def stored(path: Path) -> Results:
    """Return what was measured before, by part, aggregation and seed."""
    return dict(json.loads(path.read_text("utf-8"))["results"]) if path.is_file() else {}


class Setting:
    """One part with one aggregation and seed: its data, and its run, which all aggregations share."""

    def __init__(self, part: str, aggregation: str, seed: int, chosen: argparse.Namespace) -> None:
        self.label, part = Path(part).name, part.removesuffix(TOLD)
        self.part, self.aggregation, self.seed, self.chosen = part, aggregation, seed, chosen
        self.name, self.scratch, self.missing = Path(part).name, chosen.scratch, chosen.missing
        family = DEBIAN if part.startswith(DEBIAN) else part
        self.learning = LEARNING.get(family, BRIEFLY) | ({"seconds": chosen.seconds} if chosen.seconds else {})
        if part.startswith(f"{DEBIAN}-"):
            self.missing = float(part.removeprefix(f"{DEBIAN}-"))

    def data(self) -> tuple[Path, pl.DataFrame]:
        """Return a folder with train and valid alone, and the facts that are hidden from it."""
        given = Path(self.part)
        if self.part.startswith(f"{DEBIAN}-"):
            given = self.scratch / self.part
            if not (given / "hidden.txt").is_file():
                make = [sys.executable, str(shared() / "tools" / "debian.py"), str(given)]
                subprocess.run([*make, "--hidden", f"{self.missing:g}"], check=True)
        if (given / "hidden.txt").is_file():
            return given / "data", read_triples(given / "hidden.txt")
        whole = anyburl.load_dataset(self.part if self.part == "geo" else shared() / "data" / self.part)
        folder = self.scratch / self.name / "data"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("train", "valid"):
            stated = whole.split(name).to_polars()
            stated.write_csv(folder / f"{name}.txt", separator="\t", include_header=False, quote_style="never")
        return folder, whole.test.to_polars()

    def run(self, data: Any) -> Path:
        """Return the run on the data; it is learned when it is first asked for."""
        run: Path = self.scratch / f"{self.name}-run-{self.seed}-{self.learning['seconds']:g}"
        if not run.is_dir():
            anyburl.learn(data, seed=self.seed, out=run, keep="all", **self.learning)
        return run


def read_triples(path: Path) -> pl.DataFrame:
    """Return the facts of a plain file."""
    return pl.read_csv(path, separator="\t", has_header=False, new_columns=KEYS, quote_char=None, infer_schema=False)


def measure_promises(setting: Setting) -> Results:
    """Calibrate and complete; return what was promised, what is true, and how long it took."""
    folder, hidden = setting.data()
    data = anyburl.load_dataset(folder)
    run, n_stated, missing = setting.run(data), len(data.train) + len(data.valid), setting.missing
    if setting.label.endswith(TOLD):
        missing = len(hidden) / (n_stated + len(hidden))
    with anyburl.Reasoner.open(run, data, aggregation=setting.aggregation, seed=setting.seed) as reasoner:
        sampled, evaluating = min(len(data.valid), EVALUATED), 0.0
        if not setting.chosen.no_times:
            evaluating, _ = timed(lambda: reasoner.evaluate("valid", sample=sampled))
        calibrating, report = timed(lambda: reasoner.calibrate(missing=missing))
        completing, first = timed(lambda: pl.concat(list(reasoner.complete(min_probability=LEAST[0]))))
        n_rules = len(reasoner.rules)
    seconds = {
        "evaluate": evaluating * len(data.valid) / sampled,
        "calibrate": calibrating,
        f"complete from {LEAST[0]}": completing,
    }
    first = first.join(hidden.with_columns(true=True), on=KEYS, how="left").with_columns(
        pl.col("true").fill_null(value=False)
    )
    share = report.missing["share"]
    ratio = share / (1 - share) * n_stated / len(data.valid)
    promises = {str(least): kept(first.filter(pl.col("probability") >= least), len(hidden), ratio) for least in LEAST}
    figures = {
        "learning": setting.learning,
        "rules": n_rules,
        "missing": report.missing,
        "facts": {"stated": n_stated, "hidden": len(hidden)},
        "seconds": {name: round(took, 2) for name, took in seconds.items()},
        "promises": promises,
    }
    key = f"{setting.label}, {setting.aggregation}, seed {setting.seed}"
    show(key, figures)
    if setting.chosen.no_times:
        del figures["seconds"]
    if setting.seed == 1:
        draw(key, first, HERE / "results" / f"promises-{setting.label}-{setting.aggregation.replace(':', '')}.png")
    return figures


def kept(proposed: pl.DataFrame, n_hidden: int, ratio: float) -> dict[str, Any]:
    """Return what was promised, and what is true, overall and by relation, those with the most facts first; `ratio`
    facts are missing for each one of valid.
    """
    said = [pl.len().alias("facts"), pl.mean("probability").alias("promised"), pl.mean("true").alias("true")]
    rounded = pl.col("promised", "true").round(4)
    relations = proposed.group_by("relation").agg(said).sort(["facts", "relation"], descending=[True, False])
    enough = relations.filter(pl.col("facts") >= ENOUGH).with_columns(off=pl.col("promised") - pl.col("true"))
    by_chance = (pl.col("promised") * (1 - pl.col("promised") + ratio) / pl.col("facts")).sqrt()
    enough = enough.with_columns(error=by_chance.round(4))
    worst = enough.sort(pl.col("off").abs(), descending=True).head(1).with_columns(rounded, pl.col("off").round(4))
    back = int(proposed["true"].sum())
    return {
        **proposed.select(said).with_columns(rounded).row(0, named=True),
        "sampling_error": sampling_error(proposed),
        "ratio": round(ratio, 3),
        "hidden_found": back,
        "hidden_found_share": round(back / n_hidden, 4),
        "worst_relation": worst.row(0, named=True) if len(worst) else None,
        "by_relation": relations.with_columns(rounded).to_dicts(),
    }


def sampling_error(proposed: pl.DataFrame) -> float | None:
    """Return the standard error of promised minus true: the binomial one, or that of subjects if it is larger, since
    facts about one subject are right or wrong together.
    """
    if not len(proposed):
        return None
    by_subject = proposed.group_by("subject").agg((pl.col("true").cast(pl.Float64) - pl.col("probability")).sum())
    off, likely = by_subject["true"].to_numpy(), proposed["probability"].to_numpy()
    of_subjects = np.sqrt(np.square(off - off.mean()).sum()) / len(proposed)
    binomial = np.sqrt((likely * (1 - likely)).sum()) / len(proposed)
    return round(float(max(of_subjects, binomial)), 4)


def whole_error(said: dict[str, Any]) -> float:
    """Return the standard error of promised minus true, that of the promise itself included.

    If m facts are missing for each one that was hidden, b of which came back beside N proposals that did not, the
    promise is m b / N, and b is a Poisson number: its standard error is the root of m promised / N.
    """
    return float(np.sqrt(said["sampling_error"] ** 2 + said.get("ratio", 1.0) * said["promised"] / said["facts"]))


def measure_review(setting: Setting) -> Results:
    """Return how many of the first cards on Debian are true."""
    debian = Setting(f"{DEBIAN}-0.1", setting.aggregation, setting.seed, setting.chosen)
    folder, hidden = debian.data()
    data = anyburl.load_dataset(folder)
    with (
        anyburl.Reasoner.open(debian.run(data), data, aggregation=setting.aggregation, seed=setting.seed) as reasoner,
        tempfile.TemporaryDirectory() as reviews,
    ):
        if reasoner.calibration is None:
            reasoner.calibrate(missing=debian.missing)
        cards = review_queue(reasoner, ReviewLog(Path(reviews) / "reviews.jsonl"), top=CARDS, seconds=600)
    true = set(hidden.rows())
    figures = {"cards": len(cards), "true": sum(card.triple in true for card in cards)}
    print(f"review, {setting.aggregation}: {figures['true']} of the first {figures['cards']} cards are true")
    return figures


def measure_verified(setting: Setting) -> Results:
    """Tell CoDEx-S's facts from those that people found to be false, by what `check` says of them.

    Without known false facts, `check` gives scores and the probability that a proposal is true; a threshold for each
    relation is taken from valid: the one that is right most often about its facts, those of all relations counting a
    little too. With those of valid as known false facts, its probability is learned from them, and valid, whose facts
    are scored by forests that have not seen them, tells one threshold: where accuracy and F1 together are highest, as a
    mean over the thresholds around it.
    """
    data, folder = anyburl.load_dataset(shared() / "data" / "CoDEx-S"), shared() / "data" / "negatives"
    run = setting.run(data)
    if setting.aggregation == HYBRID and not (run / EMBEDDING).is_file():
        if given := setting.chosen.embeddings:
            shutil.copy(given / f"CoDEx-S-{setting.seed}" / EMBEDDING, run)
        else:
            embed(data, out=run, seed=setting.seed)
    facts: dict[str, pl.DataFrame] = {}
    for split in ("valid", "test"):
        false = read_triples(folder / f"CoDEx-S-{split}.txt.gz").with_columns(true=pl.lit(value=False))
        facts[split] = pl.concat([data.split(split).to_polars().with_columns(true=pl.lit(value=True)), false])
    both, known_false = pl.concat(facts.values()), facts["valid"].filter(~pl.col("true"))
    with anyburl.Reasoner.open(run, aggregation=setting.aggregation, seed=setting.seed) as reasoner:
        if setting.aggregation != HYBRID:
            reasoner.calibrate()
        checked = reasoner.check(both.select(KEYS), as_if_unstated=True)
        learning, learned = timed(
            lambda: reasoner.check(both.select(KEYS), as_if_unstated=True, known_false=known_false)
        )
    likely = both.with_columns(
        checked["probability"].fill_null(0.0), checked["score"], learned=learned["probability"].fill_null(0.0)
    )
    valid, test = likely.head(len(facts["valid"])), likely.tail(len(facts["test"]))
    figures: Results = {"learning": setting.learning, "seconds_learned": round(learning, 1)}
    for column in ("score",) if setting.aggregation == HYBRID else ("probability", "score"):
        figures |= {f"by_{column}": verified_figures(test, at_least(test, column, *thresholds_of(valid, column)))}
    thresholds = np.arange(0.3, 0.7, 0.01)
    sums = [sum(verified_figures(valid, valid["learned"].to_numpy() >= least)[:2]) for least in thresholds]
    smoothed = np.convolve(sums, np.ones(2 * AROUND + 1), mode="valid")
    best = thresholds[AROUND + int(np.argmax(smoothed))]
    figures["valid"] = verified_figures(valid, valid["learned"].to_numpy() >= best)
    figures["learned"] = verified_figures(test, test["learned"].to_numpy() >= best)
    figures |= {"threshold": round(float(best), 2), "accuracy": figures["learned"][0], "f1": figures["learned"][1]}
    for name in [name for name in ("by_probability", "by_score", "valid", "learned") if name in figures]:
        right, precise, error = figures[name]
        print(f"verified, {setting.aggregation}, {name}: accuracy {right:.4f} ± {error:.4f}, F1 {precise:.4f}")
    return figures


def verified_figures(facts: pl.DataFrame, positive: NDArray[np.bool_]) -> tuple[float, float, float]:
    """Return accuracy, F1, and the standard error of the accuracy, of facts that are taken for true."""
    true = facts["true"].to_numpy()
    right, both = float((positive == true).mean()), float((positive & true).sum())
    error = np.sqrt(right * (1 - right) / len(true))
    return round(right, 4), round(2 * both / float(positive.sum() + true.sum()), 4), round(float(error), 4)


def thresholds_of(valid: pl.DataFrame, column: str) -> tuple[dict[str, float], float]:
    """Return the best threshold of a column for each relation, and for those that valid lacks."""
    relations, likely, true = (valid[name].to_numpy() for name in ("relation", column, "true"))
    candidates = np.append(np.unique(likely), 2.0)
    overall = n_right(likely, true, candidates) / len(true)
    thresholds = {
        name: float(candidates[np.argmax(n_right(likely[own], true[own], candidates) + WEIGHT * overall)])
        for name in set(relations)
        for own in [relations == name]
    }
    return thresholds, float(candidates[np.argmax(overall)])


def at_least(facts: pl.DataFrame, column: str, thresholds: dict[str, float], otherwise: float) -> NDArray[np.bool_]:
    """Return which facts reach the threshold of their relation."""
    least = np.array([thresholds.get(name, otherwise) for name in facts["relation"]])
    return np.asarray(facts[column].to_numpy() >= least)


def n_right(likely: Floats, true: NDArray[np.bool_], thresholds: Floats) -> Floats:
    """Return how many facts are rightly judged at each threshold."""
    return np.array([((likely >= threshold) == true).sum() for threshold in thresholds], np.float64)


def show_bars(results: Results) -> None:
    """Print for each part whether what is asked of it is met."""
    print(f"\n{'part':<28} {'what is asked':<44} {'measured':<40} met")
    for key, one in results.items():
        for bar, measured, is_met in bars(key.split(",")[0], one):
            answer = "no, within chance" if is_met is None else "yes" if is_met else "NO"
            print(f"{key:<28} {bar:<44} {measured:<40} {answer}")


def bars(part: str, one: Results) -> list[tuple[str, str, bool | None]]:
    """Return what is asked of a part, what was measured, and whether that is enough: None if it is not, but facts are
    too few to tell that from chance.
    """
    if "cards" in one:
        return [("40 of the first 50 cards are true", f"{one['true']} of {one['cards']}", one["true"] >= 40)]
    if "f1" in one:
        measured = f"{one['accuracy']:.3f}, {one['f1']:.3f}"
        return [("accuracy .855, F1 .862", measured, one["accuracy"] >= 0.855 and one["f1"] >= 0.862)]
    rows: list[tuple[str, str, bool | None]] = []
    debian = part.startswith(DEBIAN)
    for least, said in one["promises"].items():
        if said["facts"]:
            off, most = abs(said["promised"] - said["true"]), 0.03 if debian else 0.05
            error = whole_error(said)
            measured = f"{said['promised']:.3f}, true {said['true']:.3f} ± {error:.3f} of {said['facts']:,}"
            is_met = off <= most or (None if off <= CHANCE * error else False)
            rows.append((f"from {least} promised and true within {most}", measured, is_met))
        if debian and (worst := said["worst_relation"]):
            error = worst.get("error", 0.0)
            measured = f"{worst['relation']} {worst['off']:+.3f} ± {error:.3f}"
            is_met = abs(worst["off"]) <= 0.08 or (None if abs(worst["off"]) <= CHANCE * error else False)
            rows.append((f"from {least} every relation within .08", measured, is_met))
    if part == f"{DEBIAN}-0.1":
        n_found = one["promises"]["0.8"]["hidden_found"]
        rows.append(("from 0.8 at least 25,000 hidden facts found", f"{n_found:,}", n_found >= 25_000))
    if "seconds" not in one:
        return rows
    seconds = one["seconds"]
    slowest = max(took for name, took in seconds.items() if name != "evaluate")
    measured = f"{slowest:.1f} s, evaluate {seconds['evaluate']:.1f} s"
    return [*rows, ("at most 3 times as long as evaluate", measured, slowest <= 3 * seconds["evaluate"])]


def show(key: str, found: Results) -> None:
    """Print the figures as tables."""
    print(f"{key}: {found['rules']:,} rules, missing {found['missing']['share']:.3f} ({found['missing']['because']})")
    print(f"{'from':>5} {'facts':>9} {'promised':>9} {'true':>6} {'hidden found':>17}  worst of {ENOUGH} or more")
    for least, one in found["promises"].items():
        back = f"{one['hidden_found']:,} ({one['hidden_found_share']:.1%})"
        worst = one["worst_relation"]
        told = f"{worst['relation']}: {worst['promised']:.3f}, true {worst['true']:.3f}" if worst else "-"
        print(f"{least:>5} {one['facts']:>9,} {figure(one['promised'])} {figure(one['true'])} {back:>17}  {told}")
    print(", ".join(f"{name} {took:.1f} s" for name, took in found["seconds"].items() if took), flush=True)


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


if __name__ == "__main__":
    main()
