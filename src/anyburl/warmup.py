"""Compile kernels before they are needed: each stage does a tiny piece of its work, once in a process.

A stage writes the work as a function of a table and calls it by `on_tiny_table`; whoever wants to show what is being
compiled does that within `anyburl._jit.compiling`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary

MANY_RELATIONS = 2**14  # from here on relations are numbered by 32 bits, and kernels are compiled for that

TRIPLES = [(0, 0, 1), (1, 0, 2), (2, 0, 3), (0, 0, 2), (1, 0, 3), (3, 0, 0), (0, 0, 0)]


def on_tiny_table(work: Callable[[TripleTable], object], n_relations: int) -> None:
    """Do `work` on a table that kernels read like one with `n_relations`, unless this process did so before.

    Works that compare equal are the same: give a function or a frozen dataclass, not a lambda.
    """
    _do_once(work, MANY_RELATIONS if n_relations >= MANY_RELATIONS else 1)


@cache
def _do_once(work: Callable[[TripleTable], object], n_relations: int) -> None:
    work(tiny_table(n_relations))


def tiny_table(n_relations: int) -> TripleTable:
    """Return seven triples of the first relation between four entities, a reflexive one among them."""
    vocabulary = Vocabulary.from_labels(list("abcd"), [f"r{number:06d}" for number in range(n_relations)])
    return TripleTable.from_ids(np.array(TRIPLES, np.int32), vocabulary)
