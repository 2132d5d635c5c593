"""Engines by name."""

from __future__ import annotations

from anyburl.cores import available_cores
from anyburl.learning.engines.base import Engine
from anyburl.learning.engines.ray import RayEngine
from anyburl.learning.engines.threads import ThreadsEngine
from anyburl.learning.options import LearnOptions
from anyburl.triples.table import TripleTable


def make_engine(table: TripleTable, options: LearnOptions) -> Engine:
    """Return the engine that `options` ask for."""
    if options.engine == "ray":
        return RayEngine(table, options)
    return ThreadsEngine(table, options, options.threads or available_cores())
