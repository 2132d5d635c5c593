"""Compile the kernels before the clock runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anyburl.learning.engines.threads import ThreadsEngine
from anyburl.learning.options import LearnOptions
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary


def warm_up(options: LearnOptions, n_relations: int = 1) -> None:
    """Learn on six triples: compiles every kernel of a run, or loads what was compiled before.

    `n_relations` is that of the data to come: with many, relation numbers are wider and kernels are compiled for that.
    """
    vocabulary = Vocabulary.from_labels(list("abcd"), [f"r{number:06d}" for number in range(n_relations)])
    triples = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [0, 0, 2], [1, 0, 3], [3, 0, 0], [0, 0, 0]], np.int32)
    table = TripleTable.from_ids(triples, vocabulary)
    small = replace(options, paths=1, seconds=None, threads=1, relations=None, max_rules=None, policy="weighted")
    engine = ThreadsEngine(table, small, threads=1)
    engine.run_span(1, small.profiles, None)
    engine.close()
