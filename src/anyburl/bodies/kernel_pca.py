"""Count predictions under the partial completeness assumption (PCA) of AMIE.

It takes a relation to be known completely for an entity that has a fact of it: as its subject or as its object,
whichever is the more functional direction. So of the pairs (x, y) that a rule predicts, it can judge those whose x (or
whose y) has a fact of the head's relation; about the others it says nothing.
"""

from __future__ import annotations

from anyburl._jit import inlined, part
from anyburl.bodies.arrays import GROUNDED, HeadArrays, PcaArrays, Scratch
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import find_segment, inverse


@inlined
def note_facts(graph: GraphArrays, entity: int, side: int, n_pairs: int, pca: PcaArrays) -> None:
    """Count `n_pairs` pairs for every relation of the entity that they start from (side 0) or end in (side 1)."""
    for segment in range(graph.segment_offsets[entity], graph.segment_offsets[entity + 1]):
        pca.having[side, graph.segment_relations[segment]] += n_pairs


@inlined
def note_ends(n_ends: int, n_pairs: int, scratch: Scratch) -> None:
    """Count `n_pairs` pairs for each of the `n_ends` ends in `scratch.reached`."""
    pca, state = scratch.pca, scratch.grounding[0]
    n_ended = state.ended
    for i in range(n_ends):
        y = scratch.reached[i]
        if pca.end_pairs[y] == 0:
            pca.ended[n_ended] = y
            n_ended += 1
        pca.end_pairs[y] += n_pairs
    state.ended = n_ended


@part
def note_facts_of_ends(graph: GraphArrays, scratch: Scratch) -> None:
    """Count the pairs of a B body, which was grounded, for every relation of their ends."""
    pca = scratch.pca
    for i in range(scratch.grounding[0].ended):
        y = int(pca.ended[i])
        note_facts(graph, y, 1, int(pca.end_pairs[y]), pca)
        pca.end_pairs[y] = 0


@inlined
def note_through(x: int, entity: int, is_first: bool, scratch: Scratch) -> None:
    """Take note that the member x satisfies the unary body only through `entity`."""
    pca, state = scratch.pca, scratch.grounding[0]
    pca.members[state.noted] = x
    pca.earlier[state.noted] = -1 if is_first else pca.latest[entity]
    pca.latest[entity] = state.noted
    state.noted += 1


@inlined
def pca_of_pairs(graph: GraphArrays, heads: HeadArrays, joining: int, scratch: Scratch) -> int:
    """Return how many pairs of a B body the assumption can judge for the head `joining`, directed as the body was
    walked.
    """
    if heads.functional[joining]:
        return int(scratch.pca.having[0, joining])
    return int(scratch.pca.having[1, inverse(graph, joining)])


@part
def pca_of_members(
    graph: GraphArrays,
    heads: HeadArrays,
    head: int,
    head_constant: int,
    predictions: int,
    kind: int,
    object_identity: bool,
    scratch: Scratch,
) -> int:
    """Return how many of the `predictions` of a unary head the assumption can judge.

    All or none if the constant decides. In h(X, self), X is both subject and object.
    """
    clock, needed = scratch.grounding[0].clock, head
    if not heads.functional[head]:
        needed = inverse(graph, head)
        if head_constant < graph.n_entities:
            return predictions if find_segment(graph, head_constant, needed) >= 0 else 0
    n_having = int(scratch.pca.having[0, needed])
    if kind == GROUNDED or not object_identity:
        return n_having
    if scratch.members[head_constant] == clock and find_segment(graph, head_constant, needed) >= 0:
        n_having -= 1
    if scratch.through_stamps[head_constant] == clock:
        place = int(scratch.pca.latest[head_constant])
        while place >= 0:
            if find_segment(graph, int(scratch.pca.members[place]), needed) >= 0:
                n_having -= 1
            place = int(scratch.pca.earlier[place])
    return n_having
