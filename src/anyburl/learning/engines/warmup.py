"""Compile the kernels of a run before its clock starts."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.bodies.sweep import followers
from anyburl.learning.engines.threads import ThreadsEngine
from anyburl.learning.options import LearnOptions
from anyburl.triples.table import TripleTable
from anyburl.warmup import on_tiny_table


def warm_up(options: LearnOptions, n_relations: int) -> None:
    """Compile every kernel of a run with `options` on data with `n_relations`, or load what was compiled before."""
    sweeps = options.heads == "all" and max(options.max_cyclic, options.max_acyclic) > 1
    work = TinyRun(options.max_cyclic > 0, options.max_acyclic > 0, options.heads, sweeps=sweeps)
    on_tiny_table(work, n_relations)


@dataclass(frozen=True)
class TinyRun:
    """One span of learning rules of length 1; longer ones take the same kernels, but for sweeping."""

    cyclic: bool
    acyclic: bool
    heads: str
    sweeps: bool

    def __call__(self, table: TripleTable) -> None:
        options = LearnOptions(
            paths=1, threads=1, heads=self.heads, max_cyclic=int(self.cyclic), max_acyclic=int(self.acyclic)
        )
        engine = ThreadsEngine(table, options, threads=1)
        engine.run_span(1, options.profiles, None)
        engine.close()
        if self.sweeps:
            followers(engine.graph)
