"""Figure 3: anytime curves on YAGO3-10 (or the part of it that is there): hits@10 over time.

python benchmarks/paper/figure3.py [--scale 0.01] [--only literal,harvest]

Saturation with three boundaries, the random and the weighted policy; in the paper's literal mode with as many runs as
--seeds says, and again with the harvest, one run each. Hits@10 is taken on a sample of the test triples (--full: all).
"""

from __future__ import annotations

from typing import Any

from lab import Cell, Lab, arguments, find_data, in_child
from table3 import literal_run
from work import Run, curves

PAPER_MOMENTS = (25, 50, 100, 200, 300, 400, 600, 800, 1000)
SAMPLE = 2000
POLICIES: dict[str, dict[str, Any]] = {
    "saturation-0.9": {"policy": "saturation", "saturation": 0.9},
    "saturation-0.99": {"policy": "saturation", "saturation": 0.99},
    "saturation-0.999": {"policy": "saturation", "saturation": 0.999},
    "random": {"policy": "random", "reward": "support-confidence"},
    "weighted": {"policy": "weighted", "reward": "support-confidence"},
}


def jobs_of(lab: Lab, mode: str) -> list[tuple[Cell, Run]]:
    """Return the cells of one mode."""
    moments = [lab.seconds(moment) for moment in PAPER_MOMENTS]
    jobs = []
    for seed in range(1, (lab.seeds if mode == "literal" else 1) + 1):
        for name, search in POLICIES.items():
            run = literal_run(lab, find_data("YAGO3-10"), seed, **search)
            if mode == "harvest":
                run = Run(run.data, {**run.options, "heads": "all"})
            asked = {**run.asked, "moments": moments, "sample": None if lab.full else SAMPLE}
            jobs.append((Cell("figure3", f"{mode}-{name}-{seed}", asked), run))
    return jobs


def main(lab: Lab) -> None:
    """Measure both modes."""
    for mode in ("literal", "harvest"):
        due = [job for job in jobs_of(lab, mode) if job[0].is_due(lab)]
        if due and lab.wants(mode):
            in_child(curves, due, due[0][0].asked["moments"], None if lab.full else SAMPLE, lab)


if __name__ == "__main__":
    main(arguments(__doc__, "literal, harvest"))
