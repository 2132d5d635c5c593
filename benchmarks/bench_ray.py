"""The engine ray beside threads: the same work, and how much two workers gain over one.

python benchmarks/bench_ray.py              FB15k-237, a path budget and a seed; two workers on two simulated nodes
python benchmarks/bench_ray.py umls 20000   another data set, fewer paths

All rules, which are millions a second and have to be sent, and binary rules alone, which are few for their work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from common import save, shared

import anyburl
from anyburl.cluster import import_ray

ROUNDS = 3
NODE = {"num_cpus": 1}
WORK: dict[str, dict[str, int]] = {"all rules": {}, "binary rules": {"max_acyclic": 0, "max_grounded": 0}}
CASES = (("threads", 1), ("threads", 2), ("ray", 1), ("ray", 2))


@contextmanager
def simulated_nodes(n_nodes: int) -> Iterator[None]:
    """Nodes with a core each, on this machine."""
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


def seconds_of(data: anyburl.Dataset, **options: Any) -> tuple[float, int]:
    """Learn; return the seconds of learning, without those that engines take to start, and the rules."""
    learner = anyburl.Learner(data.train, anyburl.LearnOptions(seed=1, **options))
    for _ in learner.spans():
        pass
    return learner.elapsed, len(learner.rules())


def main() -> None:
    """Run every case in turns, several times."""
    name = sys.argv[1] if len(sys.argv) > 1 else "FB15k-237"
    paths = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
    data = anyburl.load_dataset(shared() / "data" / name)
    with simulated_nodes(2):
        results = {what: compare(data, {"paths": paths, **options}) for what, options in WORK.items()}
    save("ray", {"data": name, "paths": paths, **results})


def compare(data: anyburl.Dataset, options: dict[str, int]) -> dict[str, Any]:
    """Let all cases do the same work in turns; return their seconds and ratios."""
    seconds: dict[str, list[float]] = {f"{engine} {threads}": [] for engine, threads in CASES}
    rules = set()
    for _ in range(ROUNDS):
        for engine, threads in CASES:
            elapsed, n_rules = seconds_of(data, engine=engine, threads=threads, **options)
            seconds[f"{engine} {threads}"].append(round(elapsed, 3))
            rules.add(n_rules)
    middle = {case: median(times) for case, times in seconds.items()}
    return {
        "rules": sorted(rules),  # one number: all cases find the same
        "seconds": seconds,
        "threads_one_over_two": round(middle["threads 1"] / middle["threads 2"], 2),
        "ray_one_over_two": round(middle["ray 1"] / middle["ray 2"], 2),
        "ray_over_threads_with_two": round(middle["ray 2"] / middle["threads 2"], 2),
    }


if __name__ == "__main__":
    main()
