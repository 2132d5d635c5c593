"""How alike entities are by the facts they share, and what the like of a question say for its candidates.

A fact of an entity is the segment that leads back to it: two entities share "lives in Rome" if the segment of Rome for
`lives in`, read backward, lists both. Rare facts weigh more. Entities are vectors of weights, and likeness is the
cosine of their angle.

How near entities are to each other: where a few steps at random lead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, inverse, steps

Doubles = NDArray[np.float64]

N_COLUMNS = 7


class FactWeights(NamedTuple):
    """What facts weigh, and how long the vectors of entities are."""

    weights: Doubles  # segment -> the square of its weight; 0: told of too many to say anything
    lengths: Doubles  # entity -> the length of its vector, at least a little


class LikenessArrays(NamedTuple):
    """What one worker writes to; all zeros before and after a question."""

    alike: Doubles  # entity -> how like it is to that of the question
    of_known: Doubles  # segment -> how much of the known answers has it
    of_likely: Doubles  # segment -> how much of the answers of the like has it


@inlined
def add_facts(graph: GraphArrays, facts: FactWeights, entity: int, factor: float, vector: Doubles) -> None:
    """Add the facts of an entity, its vector made as long as `factor`."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = graph.partners[row]
        vector[fact] += factor * facts.weights[fact] / facts.lengths[entity]


@inlined
def clear_facts(graph: GraphArrays, entity: int, vector: Doubles) -> None:
    """Set the facts of an entity to zero."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        vector[graph.partners[row]] = 0.0


@inlined
def shared(graph: GraphArrays, facts: FactWeights, entity: int, vector: Doubles) -> float:
    """Return how much of a vector an entity shares."""
    total = 0.0
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        total += vector[graph.partners[row]]
    return float(total / facts.lengths[entity])


@part
def find_alike(graph: GraphArrays, facts: FactWeights, entity: int, alike: Doubles) -> None:
    """Write how like all others are to an entity; itself is not counted."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = int(graph.partners[row])
        weight = facts.weights[fact] / facts.lengths[entity]
        if weight > 0.0:
            for member in range(graph.segment_starts[fact], graph.segment_starts[fact + 1]):
                other = graph.targets[member]
                alike[other] += weight / facts.lengths[other]
    alike[entity] = 0.0


@part
def clear_alike(graph: GraphArrays, facts: FactWeights, entity: int, alike: Doubles) -> None:
    """Set back to zero what `find_alike` wrote."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = int(graph.partners[row])
        if facts.weights[fact] > 0.0:
            for member in range(graph.segment_starts[fact], graph.segment_starts[fact + 1]):
                alike[graph.targets[member]] = 0.0


@part
def add_known(graph: GraphArrays, facts: FactWeights, entity: int, relation: int, vector: Doubles) -> None:
    """Add the facts of the known answers to a question, so that all of them together count one."""
    first, last = steps(graph, entity, relation)
    for row in range(first, last):
        add_facts(graph, facts, int(graph.targets[row]), 1.0 / (last - first), vector)


@part
def add_likely(
    graph: GraphArrays, facts: FactWeights, relation: int, most: int, alike: Doubles, vector: Doubles
) -> None:
    """Add the facts of all answers of a relation, each as much as those that it answers are like the question's entity.

    Relations with more than `most` answers are left out.
    """
    back = inverse(graph, relation)
    if graph.domain_offsets[back + 1] - graph.domain_offsets[back] > most:
        return
    for place in range(graph.domain_offsets[back], graph.domain_offsets[back + 1]):
        answer, likely = int(graph.domains[place]), 0.0
        first, last = steps(graph, answer, back)
        for row in range(first, last):
            likely += alike[graph.targets[row]]
        if likely > 0.0:
            add_facts(graph, facts, answer, likely, vector)


@part
def clear_answers(graph: GraphArrays, entity: int, relation: int, most: int, space: LikenessArrays) -> None:
    """Set back to zero what `add_known` and `add_likely` wrote."""
    first, last = steps(graph, entity, relation)
    for row in range(first, last):
        clear_facts(graph, int(graph.targets[row]), space.of_known)
    back = inverse(graph, relation)
    if graph.domain_offsets[back + 1] - graph.domain_offsets[back] <= most:
        for place in range(graph.domain_offsets[back], graph.domain_offsets[back + 1]):
            clear_facts(graph, int(graph.domains[place]), space.of_likely)


@part
def tell_likeness(
    graph: GraphArrays,
    facts: FactWeights,
    candidate: int,
    relation: int,
    space: LikenessArrays,
    row: NDArray[np.float32],
) -> None:
    """Write how like those that a candidate answers already are to the question's entity: their sum, the highest, the
    three highest, the sum over the root of their number; then what the candidate shares with known answers and with
    likely ones, and how like it is to the entity itself.
    """
    total, best, second, third = 0.0, 0.0, 0.0, 0.0
    first, last = steps(graph, candidate, inverse(graph, relation))
    for i in range(first, last):
        alike = space.alike[graph.targets[i]]
        total += alike
        if alike > best:
            best, second, third = alike, best, second
        elif alike > second:
            second, third = alike, second
        elif alike > third:
            third = alike
    row[0], row[1], row[2] = total, best, best + second + third
    row[3] = total / np.sqrt(max(1, last - first))
    row[4] = shared(graph, facts, candidate, space.of_known)
    row[5] = shared(graph, facts, candidate, space.of_likely)
    row[6] = space.alike[candidate]


@kernel
def fill_likeness(
    graph: GraphArrays,
    facts: FactWeights,
    entities: NDArray[np.int32],
    relations: NDArray[np.int32],
    candidate_offsets: NDArray[np.int64],
    candidates: NDArray[np.int32],
    first: int,
    last: int,
    most: int,
    space: LikenessArrays,
    out: NDArray[np.float32],
) -> None:
    """Write the columns of all candidates of the questions from `first` to before `last`."""
    for question in range(first, last):
        entity, relation = int(np.int64(entities[question])), int(np.int64(relations[question]))
        find_alike(graph, facts, entity, space.alike)
        add_known(graph, facts, entity, relation, space.of_known)
        add_likely(graph, facts, relation, most, space.alike, space.of_likely)
        for i in range(candidate_offsets[question], candidate_offsets[question + 1]):
            tell_likeness(graph, facts, int(np.int64(candidates[i])), relation, space, out[i])
        clear_answers(graph, entity, relation, most, space)
        clear_alike(graph, facts, entity, space.alike)


@kernel
def fill_lengths(graph: GraphArrays, weights: Doubles, least: float, lengths: Doubles) -> None:
    """Write how long the vector of each entity is, at least `least`."""
    for entity in range(graph.n_entities):
        total = 0.0
        first, last = entity_rows(graph, entity)
        for row in range(first, last):
            total += weights[graph.partners[row]]
        lengths[entity] = max(least, np.sqrt(total))
    lengths[graph.n_entities] = 1.0  # the token self is like nobody


class WalkArrays(NamedTuple):
    """What one worker writes to, a row for each step; shares are zeros before and after a question."""

    shares: NDArray[np.float32]  # (steps + 1, entities): which share of walks is where
    reached: NDArray[np.int32]  # (steps + 1, entities): the entities with a share, one after the other
    n_reached: NDArray[np.int64]  # (steps + 1)


@part
def spread(
    graph: GraphArrays,
    before: NDArray[np.float32],
    reached: NDArray[np.int32],
    n_reached: int,
    least: float,
    after: NDArray[np.float32],
    following: NDArray[np.int32],
) -> int:
    """Take one step from each of the first `n_reached` entities, along any of its edges; return how many are reached.

    `before` and `after` hold the share of walks at each entity; `after` is zero on entry. An entity whose edges would
    get less than `least` each is left out.
    """
    n_following = 0
    for i in range(n_reached):
        entity = int(reached[i])
        first = int(graph.segment_starts[graph.segment_offsets[entity]])
        last = int(graph.segment_starts[graph.segment_offsets[entity + 1]])
        share = np.float32(before[entity] / np.float32(max(1, last - first)))
        if share < least:
            continue
        for row in range(first, last):
            target = int(graph.neighbours[row])
            if target == graph.n_entities:  # the token self
                target = entity
            if after[target] == 0.0:
                following[n_following] = target
                n_following += 1
            after[target] += share
    return n_following


@part
def walk_entity(graph: GraphArrays, entity: int, least: float, space: WalkArrays) -> None:
    """Find out where walks from an entity are after 0, 1, 2, ... steps. The first step is always taken."""
    space.shares[0, entity], space.reached[0, 0], space.n_reached[0] = 1.0, entity, 1
    for step in range(1, len(space.n_reached)):
        space.n_reached[step] = spread(
            graph,
            space.shares[step - 1],
            space.reached[step - 1],
            int(space.n_reached[step - 1]),
            0.0 if step == 1 else least,
            space.shares[step],
            space.reached[step],
        )


@part
def clear_walk(space: WalkArrays) -> None:
    """Set back to zero what `walk_entity` wrote."""
    for step in range(len(space.n_reached)):
        for i in range(space.n_reached[step]):
            space.shares[step, space.reached[step, i]] = 0.0


@kernel
def fill_walks(
    graph: GraphArrays,
    entities: NDArray[np.int32],
    candidate_offsets: NDArray[np.int64],
    candidates: NDArray[np.int32],
    first: int,
    last: int,
    least: float,
    space: WalkArrays,
    out: NDArray[np.float32],
) -> None:
    """Write which share of walks from an entity is at each of its candidates after one step, after two, ...

    Only the questions from `first` to before `last` are walked for. No walk counts that is back where it started.
    """
    for question in range(first, last):
        entity = int(np.int64(entities[question]))
        walk_entity(graph, entity, least, space)
        for i in range(candidate_offsets[question], candidate_offsets[question + 1]):
            candidate = int(np.int64(candidates[i]))
            for step in range(out.shape[1]):
                out[i, step] = 0.0 if candidate == entity else space.shares[step + 1, candidate]
        clear_walk(space)
