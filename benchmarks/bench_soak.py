"""Long runs, looked at from outside: an hour of learning, 100 000 predictions, a day of page views.

python benchmarks/bench_soak.py learn [--seconds 3600] [--max-rules 2000000]

Each part is one file in benchmarks/results; benchmarks/bench_faults.py --page writes docs/reliability.md.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from common import save, shared
from soak.learning import learn


def main() -> None:
    """Run one of the soaks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["learn"])
    parser.add_argument("--data", default="FB15k-237")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--max-rules", type=int, default=2_000_000)
    parser.add_argument("--every", type=float, default=60)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = shared() / "data" / chosen.data
        results = learn(data, Path(folder), chosen.seconds, chosen.max_rules, chosen.every)
        save("soak-learn", results, f"python benchmarks/bench_soak.py learn --seconds {chosen.seconds:g}")


if __name__ == "__main__":
    main()
