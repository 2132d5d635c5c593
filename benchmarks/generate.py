"""Generate a graph with planted rules of known confidence: python benchmarks/generate.py --triples N --out DIR --seed S

DIR gets train.tsv, a few held-out triples in valid.tsv and test.tsv, and planted.json, which lists each planted rule
with its true predictions, support and confidence on train. Relations are typed, degrees follow power laws.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from anyburl.base.errors import AnyburlError
from synthetic import generate_graph


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triples", type=int, required=True, help="approximate number of triples in all splits")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write; it must not contain a graph")
    parser.add_argument("--entities", type=int, help="approximate number of entities (default: a tenth of the triples)")
    parser.add_argument("--relations", type=int, help="number of relations (default: 30 to a few hundred)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    given = parser.parse_args(arguments)
    try:
        graph = generate_graph(
            given.out, given.triples, entities=given.entities, relations=given.relations, seed=given.seed
        )
    except AnyburlError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps({**graph.to_json(), "out": given.out}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
