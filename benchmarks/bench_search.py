"""Search for misspelt names of FB15k's entities with `LabelSearch` and with rapidfuzz, if it is installed.

python benchmarks/bench_search.py ../shared/data/names/FB15k_entities.tsv.gz
"""

from __future__ import annotations

import gzip
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

from anyburl.reasoning.search import LabelSearch

N_QUERIES = 200
TOP = 20


def read_names(path: Path) -> list[str]:
    """Return the distinct names of a compressed file with lines of label, tab, name."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return list(dict.fromkeys(line.split("\t")[1].strip() for line in lines if "\t" in line))


def misspell(name: str, rng: random.Random) -> str:
    """Leave out a letter."""
    place = rng.randrange(1, len(name) - 1)
    return name[:place] + name[place + 1 :]


def measure(title: str, search: Callable[[str], list[str]], names: list[str]) -> None:
    """Print the CPU time of a query, and how often the name that is meant is among the first hits."""
    rng = random.Random(1)
    meant = [rng.choice([name for name in names if len(name) > 7]) for _ in range(N_QUERIES)]
    queries = [misspell(name, rng) for name in meant]
    search(queries[0])  # kernels are loaded
    start = time.process_time()
    hits = [search(query) for query in queries]
    milliseconds = (time.process_time() - start) / N_QUERIES * 1000
    n_right = sum(name in found for name, found in zip(meant, hits, strict=True))
    print(f"{title}: {milliseconds:.1f} ms of CPU a query, {n_right} of {N_QUERIES} among the first {TOP}")


def main() -> None:
    names = read_names(Path(sys.argv[1]))
    print(f"{len(names):,} names")
    ours = LabelSearch.build(pl.Series(names), pl.Series(["relation"]))
    measure("LabelSearch", lambda text: [match.label for match in ours.find(text, top=TOP)], names)
    try:
        from rapidfuzz import fuzz, process, utils
    except ImportError:
        print("rapidfuzz is not installed")
        return
    folded = [utils.default_process(name) for name in names]
    for scorer in (fuzz.ratio, fuzz.partial_ratio, fuzz.WRatio):

        def extract(text: str, scorer: Callable[..., float] = scorer) -> list[str]:
            hits = process.extract(utils.default_process(text), folded, scorer=scorer, limit=TOP)
            return [names[row] for _, _, row in hits]

        measure(f"rapidfuzz {scorer.__name__}", extract, names)


if __name__ == "__main__":
    main()
