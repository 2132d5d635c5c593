"""The engine ray beside threads: the same work, and how much two workers gain over one.

python benchmarks/bench_ray.py              FB15k-237, a path budget and a seed; two workers on two simulated nodes
python benchmarks/bench_ray.py umls 20000   another data set, fewer paths

All rules, which are millions a second and have to be sent, and binary rules alone, which are few for their work.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import anyburl
from anyburl.base.cluster import import_ray
from common import save, shared, timed

ROUNDS = 3
NODE = {"num_cpus": 1}
WORK: dict[str, dict[str, int]] = {"all rules": {}, "binary rules": {"max_acyclic": 0, "max_grounded": 0}}
CASES = (("threads", 1), ("threads", 2), ("ray", 1), ("ray", 2))


@contextmanager
def simulated_nodes(n_nodes: int) -> Iterator[None]:
    """Nodes with a core each, on this machine. Their workers have the priority of threads, which Ray would lower."""
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray = import_ray()
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **NODE})
    for _ in range(n_nodes - 1):
        cluster.add_node(**NODE)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


class Timing(NamedTuple):
    """What a run took, in seconds, without those that engines take to start."""

    learning: float
    sorting: float  # joining and sorting the rules, after learning, in this process: a path budget promises an order
    busy: float  # of all cores, whoever kept them busy: on a quiet machine, about the same for every engine


def time_of(data: anyburl.Dataset, **options: Any) -> tuple[Timing, int]:
    """Learn; return what it took, and how many rules there are."""
    learner = anyburl.Learner(data.train, anyburl.LearnOptions(seed=1, **options))
    busy = busy_seconds()
    for _ in learner.spans():
        pass
    busy = busy_seconds() - busy
    sorting, rules = timed(learner.rules)
    return Timing(learner.elapsed, sorting, busy), len(rules)


def busy_seconds() -> float:
    """Return for how long the cores of this machine were not idle since it started."""
    user, nice, system, _, _, *other = map(int, Path("/proc/stat").read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + sum(other)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run every case in turns, several times."""
    name = sys.argv[1] if len(sys.argv) > 1 else "FB15k-237"
    paths = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    data = anyburl.load_dataset(shared() / "data" / name)
    with simulated_nodes(2):
        results = {what: compare(data, {"paths": paths, **options}) for what, options in WORK.items()}
    save("ray", {"data": name, "paths": paths, **results})


def compare(data: anyburl.Dataset, options: dict[str, int]) -> dict[str, Any]:
    """Let all cases do the same work in turns; return their seconds and ratios, those of learning and those of all."""
    timings: dict[str, list[Timing]] = {f"{engine} {threads}": [] for engine, threads in CASES}
    rules = set()
    for _ in range(ROUNDS):
        for engine, threads in CASES:
            timing, n_rules = time_of(data, engine=engine, threads=threads, **options)
            timings[f"{engine} {threads}"].append(timing)
            rules.add(n_rules)
    learning = {case: median(one.learning for one in times) for case, times in timings.items()}
    whole = {case: median(one.learning + one.sorting for one in times) for case, times in timings.items()}
    return {
        "rules": sorted(rules),  # one number: all cases find the same
        "seconds": {case: [round(one.learning, 3) for one in times] for case, times in timings.items()},
        "seconds_of_sorting": {case: [round(one.sorting, 3) for one in times] for case, times in timings.items()},
        "seconds_of_busy_cores": {case: [round(one.busy, 1) for one in times] for case, times in timings.items()},
        **ratios(learning),
        "with_sorting": ratios(whole),
    }


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    """Return what two cores gain over one, and what Ray costs."""
    return {
        "threads_one_over_two": round(seconds["threads 1"] / seconds["threads 2"], 2),
        "ray_one_over_two": round(seconds["ray 1"] / seconds["ray 2"], 2),
        "ray_over_threads_with_two": round(seconds["ray 2"] / seconds["threads 2"], 2),
    }


if __name__ == "__main__":
    main()
