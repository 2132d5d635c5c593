"""How alike entities are by the facts they share, and what the like of a question say for its candidates.

A fact of an entity is the segment that leads back to it: two entities share "lives in Rome" if the segment of Rome for
`lives in`, read backward, lists both. Rare facts weigh more. Entities are vectors of weights, and likeness is the
cosine of their angle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, part
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import entity_rows, inverse, steps

Doubles = NDArray[np.float64]

N_COLUMNS = 7


class FactArrays(NamedTuple):
    """What facts weigh, and how long the vectors of entities are."""

    weights: Doubles  # segment -> the square of its weight; 0: told of too many to say anything
    lengths: Doubles  # entity -> the length of its vector, at least a little


class LikenessArrays(NamedTuple):
    """What one worker writes to; all zeros before and after a question."""

    alike: Doubles  # entity -> how like it is to that of the question
    of_known: Doubles  # segment -> how much of the known answers has it
    of_likely: Doubles  # segment -> how much of the answers of the like has it


@inlined
def add_facts(graph: GraphArrays, facts: FactArrays, entity: int, factor: float, vector: Doubles) -> None:
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
def shared(graph: GraphArrays, facts: FactArrays, entity: int, vector: Doubles) -> float:
    """Return how much of a vector an entity shares."""
    total = 0.0
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        total += vector[graph.partners[row]]
    return float(total / facts.lengths[entity])


@part
def find_alike(graph: GraphArrays, facts: FactArrays, entity: int, alike: Doubles) -> None:
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
def clear_alike(graph: GraphArrays, facts: FactArrays, entity: int, alike: Doubles) -> None:
    """Set back to zero what `find_alike` wrote."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = int(graph.partners[row])
        if facts.weights[fact] > 0.0:
            for member in range(graph.segment_starts[fact], graph.segment_starts[fact + 1]):
                alike[graph.targets[member]] = 0.0


@part
def add_known(graph: GraphArrays, facts: FactArrays, entity: int, relation: int, vector: Doubles) -> None:
    """Add the facts of the known answers to a question, so that all of them together count one."""
    first, last = steps(graph, entity, relation)
    for row in range(first, last):
        add_facts(graph, facts, int(graph.targets[row]), 1.0 / (last - first), vector)


@part
def add_likely(
    graph: GraphArrays, facts: FactArrays, relation: int, most: int, alike: Doubles, vector: Doubles
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
    facts: FactArrays,
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
    facts: FactArrays,
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
