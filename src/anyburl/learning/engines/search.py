"""What every worker of a run reads: flat, frozen arrays that threads and an object store can share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import HeadArrays, head_arrays
from anyburl.bodies.sweep import can_list, followers
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import with_loops
from anyburl.graph.stored import graph_of, graph_to_walk
from anyburl.learning.options import LearnOptions
from anyburl.learning.source import is_large
from anyburl.learning.targets import target_relations
from anyburl.paths.arrays import HeadTriples
from anyburl.paths.heads import heads_of_graph, listed_heads
from anyburl.triples.table import TripleTable


class SearchArrays(NamedTuple):
    """The graph, the heads to learn rules for and the triples that paths start from.

    On a large graph these are drawn from the graph itself: a list of them would take a third as much memory again.

    On a large graph, finding out which relations can follow each other takes a second or more: that is done here, not
    in the time span that asks for it.
    """

    graph: GraphArrays
    heads: HeadArrays
    triples: HeadTriples
    follows: NDArray[np.bool_] | None


def search_arrays(table: TripleTable, options: LearnOptions) -> SearchArrays:
    """Index `table` for a run with `options`."""
    graph = graph_to_walk(table) if is_large(2 * len(table), options) else graph_of(table)
    if not options.object_identity:
        graph = with_loops(graph)
    relations = target_relations(table, options)
    heads = head_arrays(graph, relations)
    lists_more = any(profile.rule_length > 1 for profile in options.profiles)
    is_listed = lists_more and is_large(len(graph.targets), options) and can_list(graph)
    return SearchArrays(
        graph, heads, _head_triples(table, graph, heads, options), followers(graph) if is_listed else None
    )


def _head_triples(table: TripleTable, graph: GraphArrays, heads: HeadArrays, options: LearnOptions) -> HeadTriples:
    if heads.wanted.all():
        return heads_of_graph(graph) if is_large(2 * len(table), options) else listed_heads(table.triples)
    return listed_heads(table.triples[heads.wanted[table.triples[:, 1]]])
