"""Long runs, looked at from outside: an hour of learning, 100 000 predictions, a day of page views.

python benchmarks/bench_soak.py learn [--seconds 3600] [--max-rules 2000000]
python benchmarks/bench_soak.py predict --data nations [--n 100000]
python benchmarks/bench_soak.py serve --run RUN [--n 20000]
python benchmarks/bench_soak.py agents --run RUN [--n 10000]

Each part is one file in benchmarks/results; benchmarks/bench_faults.py page writes docs/reliability.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import save, shared
from soak.asking import agents, predict, serve
from soak.learning import learn


def main() -> None:
    """Run one of the soaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["learn", "predict", "serve", "agents"])
    parser.add_argument("--data", default="FB15k-237")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--max-rules", type=int, default=2_000_000)
    parser.add_argument("--every", type=float, default=60)
    parser.add_argument("--n", type=int)
    parser.add_argument("--run", type=Path)
    chosen = parser.parse_args()
    data = shared() / "data" / chosen.data
    if chosen.part == "predict":
        save("soak-predict", predict(data, chosen.n or 100_000), "python benchmarks/bench_soak.py predict")
    elif chosen.part == "serve":
        save("soak-serve", serve(chosen.run, chosen.n or 20_000), "python benchmarks/bench_soak.py serve")
    elif chosen.part == "agents":
        save("soak-agents", agents(chosen.run, chosen.n or 10_000), "python benchmarks/bench_soak.py agents")
    else:
        with tempfile.TemporaryDirectory() as folder:
            results = learn(data, Path(folder), chosen.seconds, chosen.max_rules, chosen.every)
        save("soak-learn", results, f"python benchmarks/bench_soak.py learn --seconds {chosen.seconds:g}")


if __name__ == "__main__":
    main()
