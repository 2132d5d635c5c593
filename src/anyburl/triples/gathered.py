"""What reading finds in a graph besides its triples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Gathered:
    """Prefixes and readable names, and how much was left out, by what it was ("literals").

    Readers write into it, batch by batch; whoever reads all batches may rely on it afterwards.
    """

    prefixes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
