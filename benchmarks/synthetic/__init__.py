"""Generated graphs for tests and benchmarks: power-law degrees, typed relations, rules of known confidence."""

from __future__ import annotations

from synthetic.generate import GeneratedGraph, generate_graph
from synthetic.planted import PlantedRule

__all__ = ["GeneratedGraph", "PlantedRule", "generate_graph"]
