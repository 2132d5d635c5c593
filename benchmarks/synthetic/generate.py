"""`generate_graph`: a graph of any size, in a folder that `load_dataset` reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyburl.base.checking import callback
from anyburl.base.errors import DataError
from anyburl.base.writing import replace_text
from synthetic.background import draw_relation, plan_relations
from synthetic.entities import make_types
from synthetic.options import RELATIONS_PER_FAMILY, GraphOptions
from synthetic.planted import PlantedRule, plant_families
from synthetic.writing import GraphWriter

PLANTED = "planted.json"


@dataclass(frozen=True)
class GeneratedGraph:
    """A generated graph: its folder, its size, and the rules planted in it."""

    folder: Path
    options: GraphOptions
    n_triples: dict[str, int]  # of each split
    n_entities: int  # that occur
    n_relations: int
    planted: tuple[PlantedRule, ...]

    def to_json(self) -> dict[str, Any]:
        """Return what planted.json holds."""
        return {
            "asked": {
                "triples": self.options.triples,
                "entities": self.options.entities,
                "relations": self.options.relations,
                "seed": self.options.seed,
            },
            **self.n_triples,
            "entities": self.n_entities,
            "relations": self.n_relations,
            "rules": [rule.to_json() for rule in self.planted],
        }


def generate_graph(
    folder: str | os.PathLike[str],
    triples: int,
    *,
    entities: int | None = None,
    relations: int | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> GeneratedGraph:
    """Write a graph of about `triples` triples to a new folder: train.tsv, valid.tsv, test.tsv and planted.json.

    Entities have types, every relation connects two types, and degrees follow power laws. Rules of every type (B of
    length 1 to 3, Uc, Ud) are planted in relations of their own, and planted.json lists their true predictions, support
    and confidence on the train split. There are about 10 triples per entity unless `entities` says otherwise (some may
    have no triple). The same arguments give the same files. `progress` is called with the number of triples just
    written.
    """
    callback("progress", progress)
    options = GraphOptions(triples=triples, entities=entities, relations=relations, seed=seed)
    path = _new_folder(Path(folder))
    types = make_types(options.n_entities, options.n_types)
    rng = np.random.default_rng([seed, 0])
    with GraphWriter(path, triples, options.n_held_out, rng, progress) as writer:
        planted = plant_families(types, options.n_families, triples, writer, seed)
        n_background = options.n_relations - RELATIONS_PER_FAMILY * options.n_families
        planned = plan_relations(types, n_background, triples - writer.n_triples, np.random.default_rng([seed, 2]))
        missing = 0
        for number, relation in enumerate(planned):
            wanted = min(relation.n_triples + missing, relation.room)
            pairs = draw_relation(relation, wanted, np.random.default_rng([seed, 3, number]))
            missing += relation.n_triples - len(pairs)
            writer.add(relation, pairs)
        writer.write_held_out()
        graph = GeneratedGraph(path, options, writer.counts, writer.n_entities, len(writer.relations), tuple(planted))
        replace_text(path / PLANTED, json.dumps(graph.to_json(), indent=2) + "\n")
    return graph


def _new_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create the folder {folder}: {error.strerror}") from error
    if any(folder.glob("train.*")):
        raise DataError(f"{folder} already contains a graph: choose another folder")
    return folder
