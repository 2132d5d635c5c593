"""Reading RDF: how long a generated Turtle file takes to become a data set, and how much memory.

python benchmarks/bench_rdf.py [MILLIONS] [--folder FOLDER]                  Turtle
python benchmarks/bench_rdf.py MILLIONS --dump wikidata|freebase [--gzip]    lines of the form of a dump

The file of Turtle has MILLIONS million triples, 10 unless you say otherwise: ten of each entity, by 100 relations.
Besides, every entity has a label, a type and a number. An excerpt of a dump has MILLIONS million lines, a quarter of
them statements between entities.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyburl.data.dataset import load_dataset
from anyburl.data.options import DUMPS, ReadOptions
from common import peak_memory_mb, save, timed

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


WD, FB = "http://www.wikidata.org/", "http://rdf.freebase.com/ns/"
LINES = 20  # of an entity
LANGUAGES = ("en", "de", "fr", "nl")


def wikidata_lines(draw: random.Random, entity: int, n_entities: int) -> Iterator[str]:
    """Yield what the truthy dump of Wikidata would say of an entity."""
    subject, page = f"<{WD}entity/Q{entity}>", f"<https://en.wikipedia.org/wiki/Thing_{entity}>"
    for language in LANGUAGES:
        yield f'{subject} <http://www.w3.org/2000/01/rdf-schema#label> "thing {entity}"@{language} .'
        yield f'{subject} <http://schema.org/description> "a made-up thing, \\"{entity}\\""@{language} .'
    yield f'{subject} <http://www.w3.org/2004/02/skos/core#altLabel> "no. {entity}"@en .'
    yield f"{page} <http://schema.org/about> {subject} ."
    yield f'{page} <http://schema.org/inLanguage> "en" .'
    yield f"{page} <http://schema.org/isPartOf> <https://en.wikipedia.org/> ."
    yield f'{subject} <{WD}prop/direct/P569> "1952-03-11T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .'
    yield f'{subject} <{WD}prop/direct/P214> "{draw.randrange(10**9)}" .'
    yield f"{subject} <{WD}prop/direct-normalized/P214> <http://viaf.org/viaf/{draw.randrange(10**9)}> ."
    for _ in range(LINES // 4):
        yield f"{subject} <{WD}prop/direct/P{draw.randrange(1000)}> <{WD}entity/Q{draw.randrange(n_entities)}> ."


def freebase_lines(draw: random.Random, entity: int, n_entities: int) -> Iterator[str]:
    """Yield what the dump of Freebase would say of an entity."""
    subject, kind = f"<{FB}m.{entity:x}>", f"<{FB}base.class{entity % N_CLASSES}>"
    for language in LANGUAGES:
        yield f'{subject}\t<{FB}type.object.name>\t"thing {entity}"@{language}\t.'
        yield f'{subject}\t<http://www.w3.org/2000/01/rdf-schema#label>\t"thing {entity}"@{language}\t.'
        yield f'{subject}\t<http://rdf.freebase.com/key/wikipedia.{language}>\t"Thing_{entity}"\t.'
    yield f"{subject}\t<{FB}type.object.type>\t{kind}\t."
    yield f"{kind}\t<{FB}type.type.instance>\t{subject}\t."
    yield f"{subject}\t<{FB}common.topic.notable_for>\t<{FB}g.{entity:x}>\t."
    for _ in range(LINES // 4):
        yield f"{subject}\t<{FB}base.thing.r{draw.randrange(1000)}>\t<{FB}m.{draw.randrange(n_entities):x}>\t."


def write_dump(path: Path, dump: str, n_lines: int) -> None:
    """Write an excerpt; the same size gives the same file."""
    draw, lines_of = random.Random(0), wikidata_lines if dump == "wikidata" else freebase_lines
    n_entities = n_lines // LINES
    with gzip.open(path, "wt", 1) if path.suffix == ".gz" else path.open("w", encoding="utf-8") as out:
        for entity in range(n_entities):
            out.writelines(f"{line}\n" for line in lines_of(draw, entity, n_entities))


def load(path: str, dump: str | None) -> dict[str, Any]:
    """Load a file, in a process that does nothing else."""
    seconds, data = timed(lambda: load_dataset(path, ReadOptions(dump=dump)))
    n_lines = len(data.train) + data.train.n_duplicates + sum(data.left_out.values())
    return {
        "seconds": round(seconds, 2),
        **({} if dump is None else {"lines": n_lines, "lines_per_second": round(n_lines / seconds)}),
        "triples": len(data.train),
        "duplicates": data.train.n_duplicates,
        "entities": data.vocabulary.n_entities,
        "names": len(data.names),
        "left_out": dict(data.left_out),
        "peak_memory_mb": peak_memory_mb(),
    }


def measure(path: Path, dump: str | None) -> dict[str, Any]:
    """Load a file in a new process."""
    asked = [sys.executable, __file__, "--load", str(path), *(["--dump", dump] if dump else [])]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    return {"file_mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}


def main() -> None:
    """Generate the file and load it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("millions", type=float, nargs="?", default=10)
    parser.add_argument("--folder", type=Path, help="where the generated file goes, by default a temporary folder")
    parser.add_argument("--dump", choices=DUMPS, help="an excerpt of this dump instead of Turtle")
    parser.add_argument("--gzip", action="store_true", help="compress it")
    parser.add_argument("--load", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        print(json.dumps(load(given.load, given.dump)))
        return
    size = int(given.millions * 1_000_000)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = Path(folder) / f"generated{'.nt' if given.dump else '.ttl'}{'.gz' * given.gzip}"
        if given.dump:
            write_dump(path, given.dump, size)
        else:
            write_turtle(path, size)
        save("rdf" if given.dump is None else f"rdf_{given.dump}", measure(path, given.dump))


if __name__ == "__main__":
    main()
