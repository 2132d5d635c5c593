"""What reading finds in a graph besides its triples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Gathered:
    """Prefixes and readable names, and how much was left out, by what it was ("literals").

    Readers write into it, batch by batch; whoever reads all batches may rely on it afterwards. The rest is what
    readers of RDF remember from one file to the next: how good a name is, where the ranges of a relation end, how many
    nodes without a name there were.
    """

    prefixes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    name_ranks: dict[str, int] = field(default_factory=dict)
    cuts: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=dict)
    n_unnamed: int = 0
