"""What the paper claims of its experiments, sentence by sentence, and whether it holds here.

A claim is a sentence of the paper and a function that looks at the stored cells and says what they show: one of the
verdicts below, with the figures. A claim whose cells are not there is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from page import figure3, table2, table3, table4
from page.cells import METRICS, Cell, listed, load_cells, of_largest_scale, percent, seconds, table
from page.stats import ALPHA, welch

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
SUMMED_UP = {HOLDS: "hold", FAILS: "do not hold", OPEN: "are undecided"}
"""A verdict of several claims."""
LITTLE = 1.0
"""How many points of hits@10 are a small gain: the paper calls 0.4 slight."""

Finding = tuple[str, str]  # a verdict, and the figures behind it


@dataclass(frozen=True)
class Evidence:
    """The stored cells, by experiment, and the published figures."""

    results: Path
    published: dict[str, Any]

    def cells(self, experiment: str) -> list[Cell]:
        """Return the cells of the longest learning times."""
        return of_largest_scale(load_cells(self.results, experiment))

    @cached_property
    def object_identity(self) -> dict[str, Cell]:
        """Table 2's cells by name."""
        return {cell["name"]: cell for cell in self.cells("table2")}

    @cached_property
    def curves(self) -> figure3.Curves:
        """Figure 3 in the paper's literal mode: hits@10 of each run, by policy and moment."""
        return figure3.curves_of([cell for cell in self.cells("figure3") if cell["name"].startswith("literal")])

    @cached_property
    def harvested(self) -> list[Cell]:
        """Figure 3's cells with the harvest."""
        return [cell for cell in self.cells("figure3") if cell["name"].startswith("harvest")]

    @cached_property
    def searches(self) -> dict[str, table3.Runs]:
        """Table 3 by data set: hits@10 of each run in percent, by setting and moment."""
        by_data = table3.cells_by_data(self.results, self.published["table3"]["rows"])
        runs = {name: table3.runs_of(cells, name) for name, cells in by_data.items()}
        return {name: found for name, found in runs.items() if len(found) > 1}

    @cached_property
    def main(self) -> dict[str, list[Cell]]:
        """Table 4's cells by data set, those that are there as a whole."""
        return table4.whole_data(self.results)

    def by_max(self, name: str, *, last: bool) -> Cell | None:
        """Return the cell of `max` with the paper's settings, at the last or the first of the run's times."""
        there = [cell for cell in self.main.get(name, []) if cell["asked"]["part"] == "paper"]
        order = sorted(there, key=lambda cell: float(cell["asked"]["at"]))
        return order[-1 if last else 0] if order else None

    def ranks(self, *, last: bool) -> dict[tuple[str, str], int]:
        """Return the ranks of `max` among the paper's models, by data set and metric."""
        chosen = {name: cell for name in self.main if (cell := self.by_max(name, last=last))}
        return {
            (name, metric): table4.rank_of(metric, name, cell["results"]["metrics"][metric], self.published["table4"])
            for name, cell in chosen.items()
            for metric in METRICS
        }


def fewer_rules(evidence: Evidence) -> Finding | None:
    """With object identity, few of the strict rules stay above the thresholds."""
    if not (cell := evidence.object_identity.get("strict")):
        return None
    off, on = (cell["results"][state]["rules"] for state in ("off", "on"))
    return (HOLDS if on < off / 2 else FAILS), f"{on} of {off} rules remain ({table2.share(cell['results'])})"


def better_hits(metric: str) -> Callable[[Evidence], Finding | None]:
    """With object identity, the strict rules rank better."""

    def judge(evidence: Evidence) -> Finding | None:
        if not (cell := evidence.object_identity.get("strict")):
            return None
        off, on = (cell["results"][state]["metrics"] for state in ("off", "on"))
        words = f"exact counts: {percent(off[metric])} without, {percent(on[metric])} with object identity"
        if sampled := evidence.object_identity.get("strict-sampled"):
            before, after = (sampled["results"][state]["metrics"] for state in ("off", "on"))
            words += (
                f"; confidences from random walks, as in the paper: {percent(before[metric])}, {percent(after[metric])}"
            )
        if not table2.apart(off["interval"][metric], on["interval"][metric]):
            return OPEN, words
        return (HOLDS if on[metric] > off[metric] else FAILS), words

    return judge


def relaxed_is_better(evidence: Evidence) -> Finding | None:
    """Under object identity, the larger rule set ranks better."""
    if not {"strict", "relaxed"} <= set(evidence.object_identity):
        return None
    strict, relaxed = (evidence.object_identity[name]["results"]["on"]["metrics"] for name in ("strict", "relaxed"))
    gains = {metric: relaxed[metric] - strict[metric] for metric in table2.METRICS}
    clear = all(table2.apart(strict["interval"][metric], relaxed["interval"][metric]) for metric in gains)
    words = ", ".join(f"{metric} {table2.change(gain)}" for metric, gain in gains.items())
    if min(gains.values()) <= 0:
        return FAILS, words
    return (HOLDS, words) if clear else (OPEN, f"{words}, within the intervals")


def compare(
    curves: figure3.Curves, one: str, other: str, moments: list[float]
) -> tuple[list[float], list[float | None]]:
    """Return how many points one policy is above another at some moments, and the p-values of that."""
    pairs = [(curves[one][at], curves[other][at]) for at in moments]
    return [100 * (fmean(a) - fmean(b)) for a, b in pairs], [welch(a, b) for a, b in pairs]


def above(one: str, other: str, first: int, end: int) -> Callable[[Evidence], Finding | None]:
    """Say that one policy is above another at the moments `first` to `end` of Figure 3."""

    def judge(evidence: Evidence) -> Finding | None:
        curves = evidence.curves
        if one not in curves or other not in curves:
            return None
        moments = sorted(set(curves[one]) & set(curves[other]))[first:end]
        gains, tests = compare(curves, one, other, moments)
        pieces = [
            f"{gain:+.1f} after {seconds(at)}" + (f" (p = {p:.2g})" if p is not None else "")
            for at, gain, p in zip(moments, gains, tests, strict=True)
        ]
        sure = [gain for gain, p in zip(gains, tests, strict=True) if p is not None and p < ALPHA]
        verdict = HOLDS if min(gains) > 0 and sure else FAILS if max(gains) <= 0 and sure else OPEN
        return verdict, f"{listed(pieces)} points"

    return judge


def weighted_rises_fastest(evidence: Evidence) -> Finding | None:
    """The weighted policy is ahead of all others early on."""
    curves = evidence.curves
    if "weighted" not in curves or len(curves) < 2:
        return None
    moments = sorted(curves["weighted"])[:4]
    firsts = [max(curves, key=lambda policy: fmean(curves[policy].get(at, [0.0]))) for at in moments]
    words = [f"{best.replace('-', ' ')} after {seconds(at)}" for best, at in zip(firsts, moments, strict=True)]
    n_first = firsts.count("weighted")
    return (HOLDS if n_first == len(moments) else FAILS if not n_first else OPEN), f"ahead: {listed(words)}"


def little_after(evidence: Evidence) -> Finding | None:
    """After a fifth of the time, the weighted policy gains little."""
    curve = evidence.curves.get("weighted", {})
    moments = sorted(curve)
    if len(moments) < 5:
        return None
    early, last = moments[3], moments[-1]
    gain = 100 * (fmean(curve[last]) - fmean(curve[early]))
    words = (
        f"{percent(fmean(curve[early]))} after {seconds(early)}, {percent(fmean(curve[last]))} after {seconds(last)}"
    )
    return (HOLDS if gain < LITTLE else FAILS), words


def length_one_never_saturates(evidence: Evidence) -> Finding | None:
    """The harvest counts all bodies of length 1, so that nothing is left of them."""
    if not evidence.harvested:
        return None
    runs = [cell["results"]["run"] for cell in evidence.harvested]
    complete = [run for run in runs if run["stopped_by"] == "complete"]
    longest = max((run["seconds"] for run in complete), default=0.0)
    words = f"{len(complete)} of {len(runs)} runs with the harvest had counted every body of every profile"
    return (FAILS if complete else OPEN), words + (f", the last after {longest:.1f} s" if complete else "")


def always_better(*names: str) -> Callable[[Evidence], Finding | None]:
    """Every policy and reward is above random at all times."""

    def judge(evidence: Evidence) -> Finding | None:
        gains = [gain for name in names for gain in gains_of(evidence.searches.get(name, {}))]
        if not gains:
            return None
        better, worse = ([p for gain, p in gains if gain * sign > 0] for sign in (1, -1))
        sure, sure_worse = (sum(p is not None and p < ALPHA for p in tests) for tests in (better, worse))
        words = f"{len(better)} of {len(gains)} differences are above 0 ({sure} significant; {sure_worse} below 0 are)"
        return (HOLDS if len(better) == len(gains) else FAILS if sure_worse > sure else OPEN), words

    return judge


def gains_of(runs: table3.Runs, n_moments: int | None = None) -> list[tuple[float, float | None]]:
    """Return the differences from random at the first moments, each with its p-value."""
    moments = sorted(runs.get(table3.BASE, {}))[:n_moments]
    return [
        (fmean(runs[setting][at]) - fmean(runs[table3.BASE][at]), welch(runs[setting][at], runs[table3.BASE][at]))
        for setting in table3.SETTINGS
        if setting in runs
        for at in moments
        if at in runs[setting]
    ]


def best_setting(runs: table3.Runs) -> str:
    """Return the setting that is best on average over the times."""
    there = [setting for setting in table3.SETTINGS if setting in runs]
    return max(there, key=lambda setting: fmean(fmean(values) for values in runs[setting].values()))


def no_best_setting(evidence: Evidence) -> Finding | None:
    """No combination of policy and reward is best everywhere."""
    if len(evidence.searches) < 2:
        return None
    best = {name: table3.SETTINGS[best_setting(runs)] for name, runs in evidence.searches.items()}
    words = listed([f"{setting} on {name}" for name, setting in best.items()])
    return (HOLDS if len(set(best.values())) > 1 else FAILS), f"best on average: {words}"


def half_the_time(evidence: Evidence) -> Finding | None:
    """Weighted, s x c, reaches after half of the time what random has at the end."""
    runs = evidence.searches.get("YAGO3-10", {})
    if "weighted-support-confidence" not in runs:
        return None
    half, last = sorted(runs[table3.BASE])[-2:]
    ours, theirs = fmean(runs["weighted-support-confidence"][half]), fmean(runs[table3.BASE][last])
    words = f"{ours:.2f} after {seconds(half)}; random {theirs:.2f} after {seconds(last)}"
    return (HOLDS if ours >= theirs else FAILS), words


def wrong_way_first(evidence: Evidence) -> Finding | None:
    """On FB15k, rewards mislead at the beginning."""
    gains = [gain for gain, _ in gains_of(evidence.searches.get("FB15k", {}), 2)]
    if not gains:
        return None
    below = sum(gain < 0 for gain in gains)
    verdict = HOLDS if below == len(gains) else FAILS if below < len(gains) / 2 else OPEN
    return verdict, f"{below} of {len(gains)} differences from random are below 0 at the first two times"


def length_counts_on_fb15k(evidence: Evidence) -> Finding | None:
    """On FB15k, greedy with the reward that favours short rules is best."""
    if not (runs := evidence.searches.get("FB15k")):
        return None
    best = best_setting(runs)
    return (HOLDS if best == "greedy-length-discounted" else FAILS), f"best on average: {table3.SETTINGS[best]}"


def blocking_helps(evidence: Evidence) -> Finding | None:
    """Blocking connected pairs improves FB15k-237."""
    cells = evidence.main.get("FB15k-237", [])
    blocked = evidence.by_max("FB15k-237", last=True)
    if blocked is None:
        return None
    at = blocked["asked"]["at"]
    plain = [cell for cell in cells if cell["asked"]["part"] == "unblocked" and cell["asked"]["at"] == at]
    if not plain:
        return None
    with_it, without = blocked["results"]["metrics"], plain[0]["results"]["metrics"]
    words = ", ".join(f"{metric} {table2.change(with_it[metric] - without[metric])}" for metric in table2.METRICS)
    clear = all(table2.apart(with_it["interval"][metric], without["interval"][metric]) for metric in table2.METRICS)
    return (HOLDS if clear and with_it["hits@10"] > without["hits@10"] else FAILS), words


def high_ranks(evidence: Evidence) -> Finding | None:
    """The rules take the first places among the models."""
    if not (ranks := evidence.ranks(last=True)):
        return None
    counts = {place: sum(rank == place for rank in ranks.values()) for place in (1, 2)}
    others = sorted(rank for rank in ranks.values() if rank > 2)
    words = f"`max`: {counts[1]} of {len(ranks)} first, {counts[2]} second" + (
        f", others {listed(list(map(str, others)))}" if others else ""
    )
    return (HOLDS if counts[1] + counts[2] > len(ranks) * 12 / 15 - 0.5 else FAILS), words


def first_or_second(evidence: Evidence) -> Finding | None:
    """In hits@1, the rules are first or second everywhere."""
    ranks = {name: rank for (name, metric), rank in evidence.ranks(last=True).items() if metric == "hits@1"}
    if not ranks:
        return None
    return (HOLDS if max(ranks.values()) <= 2 else FAILS), listed([f"{rank} on {name}" for name, rank in ranks.items()])


def soon_competitive(evidence: Evidence) -> Finding | None:
    """After the shortest time, the rules are in the upper half of the models."""
    if not (ranks := evidence.ranks(last=False)):
        return None
    n_models = len(evidence.published["table4"]["models"])
    times = sorted(
        {float(cell["asked"]["at"]) for name in evidence.main if (cell := evidence.by_max(name, last=False))}
    )
    all_ranks = f"median rank {median(ranks.values()):g}, the worst {max(ranks.values())} of {n_models + 1}"
    words = f"after {listed([seconds(at) for at in times])}: {all_ranks}"
    return (HOLDS if max(ranks.values()) <= (n_models + 1) / 2 else FAILS), words


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and how it is judged."""

    section: str
    sentence: str
    judge: Callable[[Evidence], Finding | None]


CLAIMS = (
    Claim(
        "4.2",
        "With object identity, a tenth of the rules with high confidence remain above the thresholds.",
        fewer_rules,
    ),
    Claim("4.2", "Hits@1 rises from 73.9 to 93.8.", better_hits("hits@1")),
    Claim("4.2", "Hits@10 improves significantly as well.", better_hits("hits@10")),
    Claim("4.2", "Under object identity, lower thresholds give better hits@1 and hits@10.", relaxed_is_better),
    Claim("4.3", "The weighted policy causes the fastest increase.", weighted_rises_fastest),
    Claim("4.3", "What it has after 200 s is only slightly improved after 1000 s.", little_after),
    Claim("4.3", "After 50 to 200 s, random is better than saturation 0.99.", above("random", "saturation-0.99", 1, 4)),
    Claim(
        "4.3",
        "A boundary of 0.9 is too low: some rules are not found.",
        above("saturation-0.99", "saturation-0.9", -1, 9),
    ),
    Claim("4.3", "After 1000 s, 0.999 is better than 0.99.", above("saturation-0.999", "saturation-0.99", -1, 9)),
    Claim("4.3", "A boundary of 0.999 prevents good scores early.", above("saturation-0.99", "saturation-0.999", 0, 4)),
    Claim("4.3", "Unary rules of length 1 do not saturate within 1000 s.", length_one_never_saturates),
    Claim(
        "4.3",
        "Each policy and reward improves on random, on FB15k-237 and YAGO3-10.",
        always_better("FB15k-237", "YAGO3-10"),
    ),
    Claim("4.3", "No combination performs clearly better than the others.", no_best_setting),
    Claim("4.3", "On YAGO3-10, weighted with s x c needs half of random's time.", half_the_time),
    Claim("4.3", "On FB15k, all policies guide the search into the wrong direction at first.", wrong_way_first),
    Claim("4.3", "On FB15k, greedy with s x c / 2^l is best.", length_counts_on_fb15k),
    Claim("4.4", "Blocking connected pairs improves FB15k-237 by about 2 %.", blocking_helps),
    Claim("4.4", "Of 15 ranks among the models, 6 are first, 6 second, the others 3, 5 and 9.", high_ranks),
    Claim("4.4", "In hits@1, AnyBURL is first or second on each data set.", first_or_second),
    Claim("4.4", "The rules of 100 s are already competitive.", soon_competitive),
)


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return all claims whose cells are there, each with what the cells show."""
    evidence = Evidence(results, published)
    findings = [(claim, claim.judge(evidence)) for claim in CLAIMS]
    rows = [[claim.sentence, claim.section, *finding] for claim, finding in findings if finding]
    if not rows:
        return ""
    counts = Counter(row[2] for row in rows)
    words = listed([f"{counts[verdict]} {said}" for verdict, said in SUMMED_UP.items() if counts[verdict]])
    return "\n".join(
        [
            "## What the paper claims, and what holds here\n",
            f"Of {len(rows)} claims, {words}. A claim is *{OPEN}* where the difference is within the 95 % intervals or "
            f"the spread over runs (p >= {ALPHA} in Welch's t-test). The times of the paper are scaled as said above; "
            "YAGO3-10 is the part of it that was there.\n",
            table(["claim", "section", "here", "evidence"], rows).replace(
                "| ---: | ---: | ---: |", "| --- | --- | --- |", 1
            ),
            "",
        ]
    )
