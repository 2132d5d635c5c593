"""Reading RDF: how long a generated Turtle file takes to become a data set, and how much memory.

python benchmarks/bench_rdf.py [MILLIONS] [--folder FOLDER]

The file has MILLIONS million triples, 10 unless you say otherwise: ten of each entity, by 100 relations. Besides, every
entity has a label, a type and a number.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import peak_memory_mb, save, timed

from anyburl.triples.dataset import load_dataset

PREFIXES = {
    "e": "http://example.org/entity/",
    "p": "http://example.org/property/",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
}
EACH = 10  # triples of an entity
N_RELATIONS, N_CLASSES = 100, 20


def write_turtle(path: Path, n_triples: int) -> None:
    """Write the file; the same size gives the same file."""
    draw = random.Random(0)
    n_entities = n_triples // EACH
    with path.open("w", encoding="utf-8") as out:
        out.writelines(f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in PREFIXES.items())
        for entity in range(n_entities):
            facts = [f"p:P{draw.randrange(N_RELATIONS)} e:Q{draw.randrange(n_entities)}" for _ in range(EACH)]
            about = f'rdfs:label "thing {entity}"@en ; p:size {draw.random():.3f} ; a e:C{entity % N_CLASSES}'
            out.write(f"e:Q{entity} " + " ;\n  ".join([about, *facts]) + " .\n")


def load(path: str) -> dict[str, Any]:
    """Load a file, in a process that does nothing else."""
    seconds, data = timed(lambda: load_dataset(path))
    return {
        "seconds": round(seconds, 2),
        "triples": len(data.train),
        "duplicates": data.train.n_duplicates,
        "entities": data.vocabulary.n_entities,
        "names": len(data.names),
        "left_out": dict(data.left_out),
        "peak_memory_mb": peak_memory_mb(),
    }


def measure(path: Path) -> dict[str, Any]:
    """Load a file in a new process."""
    done = subprocess.run([sys.executable, __file__, "--load", str(path)], capture_output=True, text=True, check=True)
    return {"file_mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}


def main() -> None:
    """Generate the file and load it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", type=float, nargs="?", default=10)
    parser.add_argument("--folder", type=Path, help="where the generated file goes, by default a temporary folder")
    parser.add_argument("--load", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        print(json.dumps(load(given.load)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / "generated.ttl"
        write_turtle(path, int(given.millions * 1_000_000))
        save("rdf", measure(path))


if __name__ == "__main__":
    main()
