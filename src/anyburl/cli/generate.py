"""`anyburl generate`: a synthetic graph for tests and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anyburl.cli.arguments import Json, Quiet, UnusedThreads
from anyburl.cli.consoles import counted, note_console, print_json, result_console
from anyburl.cli.notes import Slow

NAME = "generate"
EXAMPLE = "Example:  anyburl generate --triples 100000 --out data/made-up"


def command(
    triples: Annotated[int, typer.Option(min=1_000, help="Approximate number of triples in all splits.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write; it must not contain a graph.")],
    entities: Annotated[
        int | None,
        typer.Option(
            help="Approximate number of entities (some may have no triple). Defaults to a tenth of the triples."
        ),
    ] = None,
    relations: Annotated[
        int | None, typer.Option(help="Number of relations. Defaults to 30 to a few hundred, depending on the triples.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
) -> None:
    """Generate a graph with typed relations, power-law degrees and planted rules of known confidence.

    FOLDER gets train.tsv, a few held-out triples in valid.tsv and test.tsv, and planted.json, which lists each planted
    rule with its true predictions, support and confidence on train.
    """
    from anyburl.synthetic import generate_graph

    notes = note_console(quiet=quiet)
    with Slow(notes, f"generating {triples:,} triples", f"generated {triples:,} triples", total=triples) as slow:
        graph = generate_graph(out, triples, entities=entities, relations=relations, seed=seed, progress=slow.advance)
    if json:
        print_json({**graph.to_json(), "out": str(out)})
    elif not quiet:
        sizes = ", ".join(f"{split} {n:,}" for split, n in graph.n_triples.items())
        results = result_console()
        results.say(f"{sizes}; {graph.n_entities:,} entities, {graph.n_relations:,} relations in {out}")
        results.say(f"{counted(len(graph.planted), 'planted rule')} in {out / 'planted.json'}")
        results.say(f"learn from it:  anyburl learn {out} --out RUN")
