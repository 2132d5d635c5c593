"""What the tests of compiled kernels share: graphs for them, and how many examples to try."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable

import numpy as np
from hypothesis import strategies as st

from anyburl.data import TripleTable, Vocabulary
from anyburl.graph.build import build_graph, with_loops
from anyburl.graph.kernel import GraphArrays
from strategies import SmallGraph

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
RANDOM = bool(os.environ.get("ANYBURL_RANDOM"))
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0")
"""Whether bounds are checked. Tests of a part that is long to compile then call the kernel that it is part of."""


def examples(compiled: int, interpreted: int | None = None) -> int:
    """How many examples to try: `compiled`, or where kernels run as plain Python a tenth of it or `interpreted`.

    That is if they are new ones (ANYBURL_RANDOM). If they are not, a sixth of it is enough, and of those interpreted a
    quarter.
    """
    n = compiled
    if INTERPRETED:
        n = compiled // 10 if interpreted is None else interpreted
    return max(2, n if RANDOM else n // (4 if INTERPRETED else 6))


def table_of(graph: SmallGraph) -> TripleTable:
    """The triples as a table, with the ids that they have here."""
    n_entities, n_relations, triples = graph
    vocabulary = Vocabulary.from_labels(
        [f"e{i:06}" for i in range(n_entities)], [f"r{i:06}" for i in range(n_relations)]
    )
    return TripleTable.from_ids(np.array(triples, np.int32).reshape(-1, 3), vocabulary)


def arrays_of(graph: SmallGraph, object_identity: bool = True) -> GraphArrays:
    """The graph as kernels read it."""
    arrays = build_graph(table_of(graph))
    return arrays if object_identity else with_loops(arrays)


def random_graph(seed: int, n_entities: int, n_relations: int, n_triples: int) -> SmallGraph:
    """Distinct triples drawn at random, reflexive ones among them."""
    size = n_entities * n_relations * n_entities
    drawn = random.Random(seed).sample(range(size), min(n_triples, size))
    return (
        n_entities,
        n_relations,
        [(i // n_relations % n_entities, i % n_relations, i // n_relations // n_entities) for i in drawn],
    )


def random_graphs(n_entities: int, relations: Iterable[int], n_triples: int) -> st.SearchStrategy[SmallGraph]:
    """Graphs with that many triples, for what only shows where there are many ways."""
    return st.builds(
        random_graph,
        seed=st.integers(0, 2**32 - 1),
        n_entities=st.just(n_entities),
        n_relations=st.sampled_from(list(relations)),
        n_triples=st.just(n_triples),
    )
