"""Table 3: policies and rewards against the random policy, at four points in time.

python benchmarks/paper/table3.py [--scale 0.01] [--seeds 3] [--data FB15k-237]

In the paper's literal mode (`heads="sampled"`), where sampling effort is what is compared. At small scales time spans
are shorter than a second, a hundredth of the run, so that a policy has decisions to make; the cells say how long they
were. Hits@10 is taken on a sample of the test triples, the same one for all runs (--full asks them all).
"""

from __future__ import annotations

from typing import Any

from lab import Cell, Lab, arguments, find_data, in_child
from work import Run, curves

NAMES = ("FB15k-237", "FB15k", "YAGO3-10")
PAPER_TIMES = (50, 100, 500, 1000)
SAMPLE = 2000
REWARDS = ("support", "support-confidence", "length-discounted")
SETTINGS = (("random", "support-confidence"), *((policy, r) for policy in ("greedy", "weighted") for r in REWARDS))


def span_of(lab: Lab) -> float:
    """Return the length of a time span: a second, as in the paper, or a hundredth of a shorter run's time."""
    return min(1.0, max(0.02, lab.seconds(1000) / 100))


def literal_run(lab: Lab, data: str, seed: int, **search: Any) -> Run:
    """Return a run in the paper's literal mode; figure 3 shares some of them."""
    longest = lab.seconds(PAPER_TIMES[-1])
    moments = [lab.seconds(moment) for moment in PAPER_TIMES]
    options = {"seconds": longest, "snapshots": moments, "span": span_of(lab), "heads": "sampled", **search}
    return Run(data, {**options, "seed": seed})


def jobs_of(lab: Lab, name: str) -> list[tuple[Cell, Run]]:
    """Return all cells of a data set; seeds go round outside, so that every setting has a run early."""
    jobs = []
    for seed in range(1, lab.seeds + 1):
        for policy, reward in SETTINGS:
            run = literal_run(lab, find_data(name), seed, policy=policy, reward=reward)
            asked = {**run.asked, "moments": run.options["snapshots"], "sample": None if lab.full else SAMPLE}
            jobs.append((Cell("table3", f"{name}-{policy}-{reward}-{seed}", asked), run))
    return jobs


def main(lab: Lab) -> None:
    """Measure every setting on every data set, one child for each."""
    for name in NAMES:
        due = [job for job in jobs_of(lab, name) if lab.wants(job[1].options["policy"]) and job[0].is_due(lab)]
        if due and (lab.wants_data(name) or lab.wants_data(find_data(name))):
            moments = due[0][1].options["snapshots"]
            in_child(curves, due, moments, None if lab.full else SAMPLE, lab)


if __name__ == "__main__":
    main(arguments(__doc__, "random, greedy, weighted"))
