"""The losses that trees are fitted to, the scores of trees, and the similarity and proximity of entities.

A row stands for `weights` candidates, since few of those far down a list are used; answers stand for themselves.

Entities are similar by the facts they share: a fact of an entity is the segment that leads back to it, so two entities
share "lives in Rome" if the segment of Rome for `lives in`, read backward, lists both. Entities are vectors of weights
of facts, rare facts weigh more, and similarity is the cosine. Proximity is where a few random steps lead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.kernel import GraphArrays, entity_rows, inverse, steps

LEAST_HESSIAN = 1e-6
LEAST_DISTANCE = 0.01  # of scores

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]


@kernel
def fill_choice(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    offsets: NDArray[np.int64],
    gradients: Doubles,
    hessians: Doubles,
) -> None:
    """Write the derivatives of the cross-entropy of a choice among the candidates of each list, one for each answer."""
    for i in range(len(offsets) - 1):
        highest, n_answers, total = -np.inf, 0.0, 0.0
        for row in range(offsets[i], offsets[i + 1]):
            highest = max(highest, scores[row])
            n_answers += labels[row]
        for row in range(offsets[i], offsets[i + 1]):
            hessians[row] = weights[row] * np.exp(scores[row] - highest)
            total += hessians[row]
        for row in range(offsets[i], offsets[i + 1]):
            share = hessians[row] / total
            gradients[row] = n_answers * share - labels[row]
            hessians[row] = max(n_answers * share * (1.0 - share), LEAST_HESSIAN)


@part
def put_in_order(scores: Doubles, first: int, last: int, order: NDArray[np.int64]) -> None:
    """Sort the rows of a list by their scores, the highest first; of equal scores, the first row first.

    Insertion sort, since little changes from one round to the next.
    """
    for unsorted in range(first + 1, last):
        row, i = order[unsorted], unsorted
        while i > first and (
            scores[order[i - 1]] < scores[row] or (scores[order[i - 1]] == scores[row] and order[i - 1] > row)
        ):
            order[i] = order[i - 1]
            i -= 1
        order[i] = row


@part
def fill_gains(weights: Doubles, first: int, last: int, order: NDArray[np.int64], gains: Doubles) -> None:
    """Write the gain of an answer at the rank of each candidate, as in DCG."""
    before = 0.0
    for i in range(first, last):
        row = order[i]
        gains[row] = 1.0 / np.log2(2.0 + before + 0.5 * (weights[row] - 1.0))
        before += weights[row]


@part
def ideal_gain(labels: NDArray[np.float32], first: int, last: int) -> float:
    """Return the gain of all answers if they ranked first."""
    total, n_answers = 0.0, 0
    for row in range(first, last):
        if labels[row] > 0.0:
            total += 1.0 / np.log2(2.0 + n_answers)
            n_answers += 1
    return total


@part
def add_pairs(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    first: int,
    last: int,
    gains: Doubles,
    gradients: Doubles,
    hessians: Doubles,
) -> float:
    """Add the derivatives of every pair of an answer and another candidate; return their sum."""
    total, ideal = 0.0, ideal_gain(labels, first, last)
    for answer in range(first, last):
        if labels[answer] == 0.0:
            continue
        for other in range(first, last):
            if labels[other] > 0.0:
                continue
            distance = scores[answer] - scores[other]
            wrong = 1.0 / (1.0 + np.exp(distance))
            lost = abs(gains[answer] - gains[other]) / ideal / (LEAST_DISTANCE + abs(distance))
            gradient = weights[other] * lost * wrong
            hessian = gradient * (1.0 - wrong)
            gradients[answer] -= gradient
            gradients[other] += gradient
            hessians[answer] += hessian
            hessians[other] += hessian
            total += 2.0 * gradient
    return total


@kernel
def fill_pairs(
    scores: Doubles,
    labels: NDArray[np.float32],
    weights: Doubles,
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    gains: Doubles,
    gradients: Doubles,
    hessians: Doubles,
) -> None:
    """Write the derivatives of LambdaMART's loss: of pairs in the wrong order, by the gain of the right order.

    As in LightGBM, pairs with close scores count more, and the logarithm keeps lists with many pairs in check. `order`
    holds the rows of each list, in any order on the first call.
    """
    for i in range(len(offsets) - 1):
        first, last = int(offsets[i]), int(offsets[i + 1])
        put_in_order(scores, first, last, order)
        fill_gains(weights, first, last, order, gains)
        gradients[first:last], hessians[first:last] = 0.0, 0.0
        total = add_pairs(scores, labels, weights, first, last, gains, gradients, hessians)
        if total > 0.0:
            scale = np.log2(1.0 + total) / total
            for row in range(first, last):
                gradients[row] *= scale
                hessians[row] *= scale


class ForestArrays(NamedTuple):
    """Binary trees, one after the other. A row goes left where its value is at most the threshold, and ends at a leaf.

    Children are nodes if they are not negative, otherwise leaves, as -1 - leaf.
    """

    roots: NDArray[np.int32]  # tree -> its first node, or leaf
    columns: NDArray[np.int32]  # node -> the column that it compares
    thresholds: NDArray[np.float64]
    children: NDArray[np.int32]  # left and right of each node, side by side
    leaves: NDArray[np.float64]  # leaf -> its score


MOST_LEAVES = 32  # of a tree: a bit for each
ALL_LEAVES = np.uint32(0xFFFFFFFF)
TOGETHER = 64
PLACES = np.zeros(32, np.int64)  # of a bit: by the highest five bits of its product with SPREAD
SPREAD = 0x077CB531
PLACES[[(SPREAD << bit & 0xFFFFFFFF) >> 27 for bit in range(32)]] = np.arange(32)


class ComparisonArrays(NamedTuple):
    """The same trees as lists of comparisons, column by column, lowest threshold first; the leaves of a tree from left
    to right are bits, the lowest first.
    """

    offsets: NDArray[np.int64]  # column -> its first comparison
    thresholds: NDArray[np.float32]
    trees: NDArray[np.int32]
    kept: NDArray[np.uint32]  # the leaves that a row with a higher value may still reach
    leaves: NDArray[np.float64]  # (trees, MOST_LEAVES): scores


@kernel
def score_rows(
    trees: ComparisonArrays,
    rows: NDArray[np.float32],
    first: int,
    last: int,
    values: NDArray[np.float32],
    possible: NDArray[np.uint32],
    out: NDArray[np.float64],
) -> None:
    """Write the score of each row from `first` to before `last`: the sum of the leaves where it ends, tree by tree.

    A row reaches the first leaf that no comparison rules out (QuickScorer, Lucchese et al. 2015). `values` and
    `possible` (trees, TOGETHER) are scratch for the rows that are compared at once, by vector instructions: a sixth
    of the time of walking down the trees.
    """
    for start in range(first, last, TOGETHER):
        n = min(TOGETHER, last - start)
        possible[:] = ALL_LEAVES
        for column in range(len(trees.offsets) - 1):
            highest = np.float32(-np.inf)
            for i in range(n):
                values[i] = rows[start + i, column]
                highest = max(highest, values[i])
            for comparison in range(trees.offsets[column], trees.offsets[column + 1]):
                threshold = trees.thresholds[comparison]
                if threshold >= highest:
                    break
                tree, kept = trees.trees[comparison], trees.kept[comparison]
                for i in range(TOGETHER):
                    possible[tree, i] &= kept if values[i] > threshold else ALL_LEAVES
        for i in range(n):
            out[start + i] = 0.0
        for tree in range(len(trees.leaves)):
            for i in range(n):
                leaves = np.int64(possible[tree, i])
                first_leaf = PLACES[((leaves & -leaves) * SPREAD & 0xFFFFFFFF) >> 27]
                out[start + i] += trees.leaves[tree, first_leaf]


N_COLUMNS = 7
MUCH = 8  # more than this part of all numbers changed: faster to set all to zero than one by one


class FactWeights(NamedTuple):
    """The weights of facts, the lengths of the vectors of entities, and where the answers of relations are.

    Four bytes a number: what a question touches at random then fits into the cache of a core.
    """

    weights: Floats  # segment -> the square of its weight; 0 if too many entities share it
    scales: Floats  # entity -> 1 / the length of its vector; 1 for the token self
    domain_segments: NDArray[np.int32]  # position in the graph's `domains` -> the segment of the entity there


class SimilarityArrays(NamedTuple):
    """Scratch of one worker; all zeros before and after a question. Facts have to be multiplied by their weights."""

    similar: Floats  # entity -> its similarity to that of the question
    of_known: Floats  # segment -> its share in the known answers
    of_likely: Floats  # segment -> its share in the answers of similar entities


@inlined
def add_facts(graph: GraphArrays, entity: int, factor: float, vector: Floats) -> int:
    """Add `factor` to all facts of an entity; return how many it has."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        vector[graph.partners[row]] += np.float32(factor)
    return last - first


@inlined
def clear_facts(graph: GraphArrays, entity: int, vector: Floats) -> None:
    """Set the facts of an entity to zero."""
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        vector[graph.partners[row]] = 0.0


@inlined
def shared(graph: GraphArrays, facts: FactWeights, entity: int, vector: Floats) -> float:
    """Return the product of the vector of an entity and another one."""
    total = 0.0
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = graph.partners[row]
        total += vector[fact] * facts.weights[fact]
    return float(total * facts.scales[entity])


@inlined
def entities_of(graph: GraphArrays, segment: int) -> tuple[int, int]:
    """Return the rows of the entities of a segment, without the token self: it has the largest id and comes last."""
    first, last = int(graph.segment_starts[segment]), int(graph.segment_starts[segment + 1])
    if graph.targets[last - 1] == graph.n_entities:
        last -= 1
    return first, last


@part
def find_similar(graph: GraphArrays, facts: FactWeights, entity: int, similar: Floats) -> int:
    """Write the similarity of all others to an entity; 0 for itself. Return how many numbers were added."""
    n_added = 0
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = int(graph.partners[row])
        weight = np.float32(facts.weights[fact] * facts.scales[entity])
        if weight > 0.0:
            for member in range(graph.segment_starts[fact], graph.segment_starts[fact + 1]):
                other = graph.targets[member]
                similar[other] += weight * facts.scales[other]
            n_added += int(graph.segment_starts[fact + 1] - graph.segment_starts[fact])
    similar[entity] = 0.0
    return n_added


@part
def clear_similar(graph: GraphArrays, facts: FactWeights, entity: int, n_added: int, similar: Floats) -> None:
    """Set back to zero what `find_similar` wrote: everything, where much was added."""
    if n_added > len(similar) // MUCH:
        similar[:] = 0.0
        return
    first, last = entity_rows(graph, entity)
    for row in range(first, last):
        fact = int(graph.partners[row])
        if facts.weights[fact] > 0.0:
            for member in range(graph.segment_starts[fact], graph.segment_starts[fact + 1]):
                similar[graph.targets[member]] = 0.0


@part
def add_known(graph: GraphArrays, facts: FactWeights, entity: int, relation: int, vector: Floats) -> int:
    """Add the facts of the known answers to a question, so that all of them together count one; return how many
    answers there are.
    """
    first, last = steps(graph, entity, relation)
    for row in range(first, last):
        answer = int(graph.targets[row])
        add_facts(graph, answer, facts.scales[answer] / (last - first), vector)
    return last - first


@part
def add_likely(
    graph: GraphArrays, facts: FactWeights, relation: int, most: int, similar: Floats, vector: Floats
) -> int:
    """Add the facts of all answers of a relation, by the similarity of the entities they answer to the question's.

    Relations with more than `most` answers are left out. Return how many facts were added.
    """
    n_added, back = 0, inverse(graph, relation)
    if graph.domain_offsets[back + 1] - graph.domain_offsets[back] > most:
        return n_added
    for i in range(graph.domain_offsets[back], graph.domain_offsets[back + 1]):
        answer, likely = int(graph.domains[i]), 0.0
        first, last = entities_of(graph, int(facts.domain_segments[i]))
        for row in range(first, last):
            likely += similar[graph.targets[row]]
        if likely > 0.0:
            n_added += add_facts(graph, answer, likely * facts.scales[answer], vector)
    return n_added


@part
def clear_known(graph: GraphArrays, entity: int, relation: int, vector: Floats) -> None:
    """Set back to zero what `add_known` wrote."""
    first, last = steps(graph, entity, relation)
    for row in range(first, last):
        clear_facts(graph, int(graph.targets[row]), vector)


@part
def clear_likely(graph: GraphArrays, relation: int, n_added: int, vector: Floats) -> None:
    """Set back to zero what `add_likely` wrote: everything, where much was added."""
    if n_added > len(vector) // MUCH:
        vector[:] = 0.0
    elif n_added:
        back = inverse(graph, relation)
        for i in range(graph.domain_offsets[back], graph.domain_offsets[back + 1]):
            clear_facts(graph, int(graph.domains[i]), vector)


@part
def write_similarity(
    graph: GraphArrays,
    facts: FactWeights,
    candidate: int,
    relation: int,
    n_known: int,
    n_likely: int,
    space: SimilarityArrays,
    row: Floats,
) -> None:
    """Write the features of a candidate: similarities of the entities it answers already to the question's entity (sum,
    highest, three highest, sum over the root of their number), those of the candidate to known and to likely answers,
    and to the entity itself.
    """
    total, best, second, third = 0.0, 0.0, 0.0, 0.0
    first, last = steps(graph, candidate, inverse(graph, relation))
    for i in range(first, last):
        similar = space.similar[graph.targets[i]]
        total += similar
        if similar > best:
            best, second, third = similar, best, second
        elif similar > second:
            second, third = similar, second
        elif similar > third:
            third = similar
    row[0], row[1], row[2] = total, best, best + second + third
    row[3] = total / np.sqrt(max(1, last - first))
    row[4] = shared(graph, facts, candidate, space.of_known) if n_known else 0.0
    row[5] = shared(graph, facts, candidate, space.of_likely) if n_likely else 0.0
    row[6] = space.similar[candidate]


@kernel
def fill_similarity(
    graph: GraphArrays,
    facts: FactWeights,
    entities: NDArray[np.int32],
    relations: NDArray[np.int32],
    candidate_offsets: NDArray[np.int64],
    candidates: NDArray[np.int32],
    first: int,
    last: int,
    most: int,
    space: SimilarityArrays,
    out: Floats,
) -> None:
    """Write the columns of all candidates of the questions from `first` to before `last`.

    Similar entities are found once for questions about the same entity that follow each other.
    """
    similar_to, n_similar = -1, 0
    for question in range(first, last):
        entity, relation = int(np.int64(entities[question])), int(np.int64(relations[question]))
        if entity != similar_to:
            if similar_to >= 0:
                clear_similar(graph, facts, similar_to, n_similar, space.similar)
            n_similar = find_similar(graph, facts, entity, space.similar)
            similar_to = entity
        n_known = add_known(graph, facts, entity, relation, space.of_known)
        n_likely = add_likely(graph, facts, relation, most, space.similar, space.of_likely)
        for i in range(candidate_offsets[question], candidate_offsets[question + 1]):
            candidate = int(np.int64(candidates[i]))
            write_similarity(graph, facts, candidate, relation, n_known, n_likely, space, out[i])
        clear_known(graph, entity, relation, space.of_known)
        clear_likely(graph, relation, n_likely, space.of_likely)
    if similar_to >= 0:
        clear_similar(graph, facts, similar_to, n_similar, space.similar)


@kernel
def fill_scales(graph: GraphArrays, weights: Doubles, least: float, scales: Floats) -> None:
    """Write 1 / the length of the vector of each entity; lengths are at least `least`."""
    for entity in range(graph.n_entities):
        total = 0.0
        first, last = entity_rows(graph, entity)
        for row in range(first, last):
            total += weights[graph.partners[row]]
        scales[entity] = 1.0 / max(least, np.sqrt(total))
    scales[graph.n_entities] = 1.0  # the token self


class WalkArrays(NamedTuple):
    """Scratch of one worker, a row for each step; shares are zeros before and after a question."""

    shares: NDArray[np.float32]  # (steps + 1, entities): the share of walks at each entity
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
    """Write the shares of walks from an entity after 0, 1, 2, ... steps. The first step is always taken."""
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
        space.n_reached[step] = 0


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
    """Write the share of walks at each candidate after one step, two, ..., for questions `first` to before `last`.

    Walks that are back at their start do not count. Questions about the same entity that follow each other share walks.
    """
    walked_from = -1
    for question in range(first, last):
        entity = int(np.int64(entities[question]))
        if entity != walked_from:
            clear_walk(space)
            walk_entity(graph, entity, least, space)
            walked_from = entity
        for i in range(candidate_offsets[question], candidate_offsets[question + 1]):
            candidate = int(np.int64(candidates[i]))
            for step in range(out.shape[1]):
                out[i, step] = 0.0 if candidate == entity else space.shares[step + 1, candidate]
    clear_walk(space)


class Nearness(NamedTuple):
    """How walks count: the weight of their logarithm, that of two steps, and what is added to the share of walks."""

    weight: float
    second_step: float
    least: float


@kernel
def add_nearness(
    graph: GraphArrays,
    entities: NDArray[np.int32],
    first: int,
    last: int,
    least_share: float,
    nearness: Nearness,
    space: WalkArrays,
    scores: Floats,
) -> None:
    """Add to the scores of all entities how near they are, for questions `first` to before `last`.

    The logarithm is taken for those that a walk reaches.
    """
    shares, of_none = space.shares, nearness.weight * np.log(nearness.least)
    for question in range(first, last):
        entity = int(np.int64(entities[question]))
        walk_entity(graph, entity, least_share, space)
        for candidate in range(graph.n_entities):
            scores[question, candidate] += np.float32(of_none)
        for step in range(1, len(space.n_reached)):
            for i in range(space.n_reached[step]):
                candidate = int(space.reached[step, i])
                is_new = candidate != entity
                for before in range(1, step):
                    is_new = is_new and shares[before, candidate] == 0.0
                if is_new:
                    near = shares[1, candidate] + nearness.second_step * shares[2, candidate] + shares[3, candidate]
                    scores[question, candidate] += np.float32(nearness.weight * np.log(near + nearness.least) - of_none)
        clear_walk(space)


@kernel
def fill_best(
    scores: Floats,
    questions: NDArray[np.int64],
    offsets: NDArray[np.int64],
    candidates: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write the entities with the highest scores of each row, the highest first; of equal scores, the first entity.

    Those with a score of -inf and the `candidates` that the row's question has already become -1.
    """
    for row in range(len(scores)):
        n, least = 0, np.float32(-np.inf)
        for entity in range(scores.shape[1]):
            score = scores[row, entity]
            if score > least:
                i = min(n, out.shape[1] - 1)
                while i > 0 and scores[row, out[row, i - 1]] < score:
                    out[row, i] = out[row, i - 1]
                    i -= 1
                out[row, i] = entity
                n = min(n + 1, out.shape[1])
                if n == out.shape[1]:
                    least = scores[row, out[row, n - 1]]
        out[row, n:] = -1
        question = questions[row]
        for i in range(n):
            for position in range(offsets[question], offsets[question + 1]):
                if candidates[position] == out[row, i]:
                    out[row, i] = -1
                    break


@kernel
def sort_lists(
    offsets: NDArray[np.int64], scores: Doubles, candidates: NDArray[np.int32], order: NDArray[np.int64]
) -> None:
    """Write the rows of each list by their scores, the highest first; of equal scores, the lowest candidate."""
    for i in range(len(offsets) - 1):
        first = int(offsets[i])
        for row in range(first, int(offsets[i + 1])):
            position = row
            while position > first and (
                scores[order[position - 1]] < scores[row]
                or (scores[order[position - 1]] == scores[row] and candidates[order[position - 1]] > candidates[row])
            ):
                order[position] = order[position - 1]
                position -= 1
            order[position] = row
