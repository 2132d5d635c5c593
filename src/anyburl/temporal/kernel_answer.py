"""Score the candidates of questions with a moment, rank answers, and list the best candidates with their evidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anyburl.base.jit import inlined, kernel, part
from anyburl.temporal.arrays import (
    N_FADES,
    CellArrays,
    Doubles,
    Floats,
    HistoryArrays,
    Ids,
    Ints,
    QuestionArrays,
    TableArrays,
)
from anyburl.temporal.kernel_bodies import recent_bodies
from anyburl.temporal.kernel_history import cell_of, faded, faded_total, first_not_before, popularity_rows

# What is known of a candidate, as columns of `ListedArrays.values`.
SUM, ALONE, ALONE_MAX, CONSTANT, CONSTANT_OR, HOP, HOP_OR = 0, 1, 2, 3, 4, 5, 6
OWN, OWN_AGE, OWN_COUNT, OWN_FRESH, AGE, COUNT, FRESH, BODIES, SECOND, ALONE_OR = 7, 8, 9, 10, 11, 12, 13, 14, 15, 16
REVERSE = 17
N_VALUES = 18
NEVER = 9999.0  # the age of what was never seen
HALF_LIFE_EXPONENT = 0.034657359027997264  # log(2) / 20, see `HALF_LIFE`

# What is known of a question.
PAIR_TOTAL, CONSTANT_TOTAL, HOP_TOTAL, ALONE_TOTAL, REVERSE_TOTAL, N_TRIPLES, N_OWN, CONTEXT = 0, 1, 2, 3, 4, 5, 6, 7
N_TOTALS = 8
LEAST_ALONE = 0.01
LEAST_TOTAL = 0.1  # constants and hops that say less than this together do not count as if they said all

N_FORMS = 5
N_COMPONENTS = N_FORMS + N_FADES
"""What scores are mixed of: pairs that share the credit, with popularity; constants; hops; pairs each alone; pairs that
share the credit for the opposite question; and popularity at each speed.
"""
N_CONTEXTS = 5

# What a model knows of a candidate: the values above, then popularity and components, then the rest.
LAST_SEEN, N_SEEN, QUESTION_TRIPLES, QUESTION_OWN, OWN_SHARE, PLACE, RELATIVE, SCORE = 24, 25, 26, 27, 28, 29, 30, 31
N_LISTED, QUESTION_TOTAL, OPPOSITE, QUESTION_CONTEXT, HEAD, LAST_FAVOUR = 32, 33, 34, 35, 36, 37
SIMILAR, LATELY = 38, 39
N_FEATURES = 40

LATELY_STEPS = 7  # in which the facts of a candidate are counted
MIXTURE, MAX, NOISY_OR = 0, 1, 2
"""How scores are made: a mixture of all forms, or of what pair rules say each by itself."""


class ListedArrays(NamedTuple):
    """Buffers of one thread for the candidates of a question; of arrays by entity, only listed ones are valid."""

    listed: Ids
    marks: Ints  # entity -> the last question that listed it
    values: Doubles  # (entities, N_VALUES)
    popular: Ids  # the favourites of the relation now, and their popularity
    n_popular: Ints  # [number, relation, before, now]
    popularity: Doubles  # (entities, N_FADES); 0 for all others
    hops: Floats  # relation pair -> the confidence of the hop rule of the current head
    seen: Ints
    bodies: Ints
    scores: Doubles  # entity -> score
    excluded: Ints  # entity -> the last question that excludes it
    answers: Ints  # entity -> the last question that it answers
    totals: Doubles  # N_TOTALS
    heap: Ids
    query: Doubles  # the mean vector of what the entity met, weighed by intensity


@inlined
def list_candidate(work: ListedArrays, candidate: int, question: int, n: int) -> int:
    """List a candidate, once, with empty values; return how many are listed."""
    if work.marks[candidate] == question:
        return n
    work.marks[candidate] = question
    work.listed[n] = candidate
    for i in range(N_VALUES):
        work.values[candidate, i] = 0.0
    work.values[candidate, OWN_AGE] = NEVER
    work.values[candidate, AGE] = NEVER
    return n + 1


@part
def gather_pairs(
    history: HistoryArrays,
    cells: CellArrays,
    tables: TableArrays,
    question: int,
    entity: int,
    head: int,
    before: int,
    now: int,
    work: ListedArrays,
) -> int:
    """List everything that the entity ever met before the moment, with what pair rules say; return how many."""
    n, back = 0, history.n_relations // 2
    reverse = head + back if head < back else head - back
    work.totals[N_OWN] = 0.0
    work.totals[N_TRIPLES] = 0.0
    for k in range(len(work.query)):
        work.query[k] = 0.0
    for triple in range(history.triple_offsets[entity], history.triple_offsets[entity + 1]):
        start = int(history.time_offsets[triple])
        if history.times[start] >= before:
            break
        stop = first_not_before(history.times, start, int(history.time_offsets[triple + 1]), before)
        age, count = now - history.times[stop - 1], stop - start
        relation, candidate = int(history.triple_relations[triple]), int(history.triple_objects[triple])
        n = list_candidate(work, candidate, question, n)
        values = work.values[candidate]
        slot = int(tables.pairs.slots[head, relation])
        intensity, alone = 0.0, 0.0
        if slot >= 0:
            cell = cell_of(cells, age, count)
            intensity = float(tables.pairs.values[slot, cell])
            alone = float(tables.alone[slot, cell])
            for k in range(len(work.query)):
                work.query[k] += intensity * tables.vectors[candidate, k]
        slot = int(tables.pairs.slots[reverse, relation + back if relation < back else relation - back])
        if slot >= 0:
            values[REVERSE] += tables.pairs.values[slot, cell_of(cells, age, count)]
        fresh = history.fresh[stop - 1, 0] * np.exp(-HALF_LIFE_EXPONENT * age)
        values[SUM] += intensity
        values[ALONE] += alone
        values[ALONE_OR] = 1.0 - (1.0 - values[ALONE_OR]) * (1.0 - alone)
        if alone > values[ALONE_MAX]:
            values[SECOND] = values[ALONE_MAX]
            values[ALONE_MAX] = alone
        elif alone > values[SECOND]:
            values[SECOND] = alone
        if relation == head:
            values[OWN] = intensity
            values[OWN_AGE] = age
            values[OWN_COUNT] = count
            values[OWN_FRESH] = fresh
            work.totals[N_OWN] += count
        values[AGE] = min(values[AGE], age)
        values[COUNT] += count
        values[FRESH] += fresh
        values[BODIES] += 1.0
        work.totals[N_TRIPLES] += 1.0
    return n


@part
def gather_constants(
    history: HistoryArrays,
    tables: TableArrays,
    question: int,
    entity: int,
    head: int,
    before: int,
    now: int,
    n: int,
    work: ListedArrays,
) -> int:
    """List what rules with constants predict; return how many are listed now."""
    rules = tables.constants
    first, last = int(rules.head_offsets[head]), int(rules.head_offsets[head + 1])
    if first == last:
        return n
    n_bodies = recent_bodies(history, entity, before, now, tables.n_last, tables.oldest, work.seen, work.bodies)
    for i in range(n_bodies):
        body = first_not_before(rules.bodies, first, last, work.bodies[i])
        if body == last or rules.bodies[body] != work.bodies[i]:
            continue
        for rule in range(rules.rule_offsets[body], rules.rule_offsets[body + 1]):
            candidate, confidence = int(rules.constants[rule]), float(rules.confidences[rule])
            n = list_candidate(work, candidate, question, n)
            values = work.values[candidate]
            values[CONSTANT] = max(values[CONSTANT], confidence)
            values[CONSTANT_OR] = 1.0 - (1.0 - values[CONSTANT_OR]) * (1.0 - confidence)
    return n


@part
def gather_hops(
    history: HistoryArrays, tables: TableArrays, question: int, entity: int, before: int, n: int, work: ListedArrays
) -> int:
    """List what rules of two hops predict; return how many are listed now."""
    start = int(history.fact_offsets[entity])
    end = first_not_before(history.fact_times, start, int(history.fact_offsets[entity + 1]), before)
    for fact in range(end - 1, max(start, end - tables.n_first) - 1, -1):
        middle, body = int(history.fact_objects[fact]), int(history.fact_relations[fact]) * history.n_relations
        begin = int(history.fact_offsets[middle])
        stop = first_not_before(history.fact_times, begin, int(history.fact_offsets[middle + 1]), before)
        for second in range(stop - 1, max(begin, stop - tables.n_second) - 1, -1):
            confidence = float(work.hops[body + int(history.fact_relations[second])])
            candidate = int(history.fact_objects[second])
            if confidence == 0.0 or candidate == entity:
                continue
            n = list_candidate(work, candidate, question, n)
            values = work.values[candidate]
            values[HOP] = max(values[HOP], confidence)
            values[HOP_OR] = 1.0 - (1.0 - values[HOP_OR]) * (1.0 - confidence)
    return n


@part
def set_popularity(history: HistoryArrays, head: int, before: int, now: int, work: ListedArrays) -> None:
    """Write how popular the objects of a relation are now, as shares of all; what was written before is cleared."""
    for i in range(work.n_popular[0]):
        for k in range(N_FADES):
            work.popularity[work.popular[i], k] = 0.0
    work.n_popular[0], work.n_popular[1], work.n_popular[2], work.n_popular[3] = 0, head, before, now
    total = popularity_rows(history, head, before)
    if total < 0:
        return
    n = 0
    for favourite in range(history.favourite_offsets[head], history.favourite_offsets[head + 1]):
        start = int(history.favour_offsets[favourite])
        if history.favour_times[start] >= before:
            continue
        row = first_not_before(history.favour_times, start, int(history.favour_offsets[favourite + 1]), before) - 1
        candidate = history.favourites[favourite]
        work.popular[n] = candidate
        n += 1
        for k in range(N_FADES):
            work.popularity[candidate, k] = faded(history, row, k, now) / faded_total(history, total, k, now)
    work.n_popular[0] = n


@part
def set_hops(tables: TableArrays, before: int, head: int, work: ListedArrays) -> None:
    """Spread the hop rules of `head` in place of those of the head `before`, -1 if there is none."""
    rules = tables.hops
    if before >= 0:
        for rule in range(rules.offsets[before], rules.offsets[before + 1]):
            work.hops[rules.bodies[rule]] = 0.0
    for rule in range(rules.offsets[head], rules.offsets[head + 1]):
        work.hops[rules.bodies[rule]] = rules.confidences[rule]


@inlined
def context_of(n_triples: float, n_own: float) -> int:
    """Return the context of a question: how much the entity has done before, and how often just this."""
    if n_own == 0.0:
        return 0 if n_triples == 0.0 else 1
    return 2 if n_own < 3.0 else (3 if n_own < 10.0 else 4)


@part
def gather_candidates(
    history: HistoryArrays,
    cells: CellArrays,
    tables: TableArrays,
    questions: QuestionArrays,
    question: int,
    work: ListedArrays,
) -> int:
    """List all candidates of a question that anything speaks for, popular ones included; return how many."""
    entity, head = int(questions.entities[question]), int(questions.relations[question])
    before, now = int(questions.before[question]), int(questions.now[question])
    if work.n_popular[1] != head:
        set_hops(tables, int(work.n_popular[1]), head, work)
    if work.n_popular[1] != head or work.n_popular[2] != before or work.n_popular[3] != now:
        set_popularity(history, head, before, now, work)
    n = gather_pairs(history, cells, tables, question, entity, head, before, now, work)
    n = gather_constants(history, tables, question, entity, head, before, now, n, work)
    n = gather_hops(history, tables, question, entity, before, n, work)
    pairs, constants, hops, alone, reverse = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        values = work.values[work.listed[i]]
        pairs += values[SUM]
        constants += values[CONSTANT]
        hops += values[HOP]
        alone += values[ALONE]
        reverse += values[REVERSE]
    for k in range(N_FADES):
        pairs += tables.favour[head, k]
    work.totals[PAIR_TOTAL] = pairs
    work.totals[CONSTANT_TOTAL] = max(constants, LEAST_TOTAL)
    work.totals[HOP_TOTAL] = max(hops, LEAST_TOTAL)
    work.totals[ALONE_TOTAL] = max(alone, LEAST_ALONE)
    work.totals[REVERSE_TOTAL] = max(reverse, LEAST_TOTAL)
    work.totals[CONTEXT] = context_of(work.totals[N_TRIPLES], work.totals[N_OWN])
    for i in range(work.n_popular[0]):
        n = list_candidate(work, int(work.popular[i]), question, n)
    return n


@inlined
def component(tables: TableArrays, head: int, candidate: int, which: int, work: ListedArrays) -> float:
    """Return the probability that one of the components of the mixture gives a listed candidate."""
    values = work.values[candidate]
    if which == 0:
        intensity = values[SUM]
        for k in range(N_FADES):
            intensity += tables.favour[head, k] * work.popularity[candidate, k]
        return float(intensity / work.totals[PAIR_TOTAL])
    if which == 1:
        return float(values[CONSTANT] / work.totals[CONSTANT_TOTAL])
    if which == 2:
        return float(values[HOP] / work.totals[HOP_TOTAL])
    if which == 3:
        return float(values[ALONE] / work.totals[ALONE_TOTAL])
    if which == 4:
        return float(values[REVERSE] / work.totals[REVERSE_TOTAL])
    return float(work.popularity[candidate, which - N_FORMS])


@kernel
def list_components(
    history: HistoryArrays,
    cells: CellArrays,
    tables: TableArrays,
    questions: QuestionArrays,
    first: int,
    last: int,
    work: ListedArrays,
    contexts: Ids,
    components: Doubles,
) -> None:
    """Write the context of each question and, for each answer, what the components of the mixture say."""
    for question in range(first, last):
        gather_candidates(history, cells, tables, questions, question, work)
        head = int(questions.relations[question])
        contexts[question] = int(work.totals[CONTEXT])
        for i in range(questions.answer_offsets[question], questions.answer_offsets[question + 1]):
            answer = int(questions.answers[i])
            for which in range(N_COMPONENTS):
                is_listed = work.marks[answer] == question
                components[i, which] = component(tables, head, answer, which, work) if is_listed else 0.0


@part
def score_candidates(tables: TableArrays, weights: Doubles, mode: int, head: int, n: int, work: ListedArrays) -> None:
    """Write the score of every listed candidate: the weighted mean of the components, unless `mode` says otherwise."""
    mixed = weights[head, int(work.totals[CONTEXT])]
    for i in range(n):
        candidate = int(work.listed[i])
        if mode != MIXTURE:
            work.scores[candidate] = work.values[candidate, ALONE_MAX if mode == MAX else ALONE_OR]
            continue
        score = 0.0
        for which in range(N_COMPONENTS):
            score += mixed[which] * component(tables, head, candidate, which, work)
        work.scores[candidate] = score


@part
def select_best(question: int, n: int, n_kept: int, work: ListedArrays) -> int:
    """Write the best listed candidates that are not excluded, or are answers, into the heap, in order.

    Equal scores are ordered by the smaller number. Return how many there are.
    """
    size = 0
    for i in range(n):
        candidate = int(work.listed[i])
        if work.excluded[candidate] == question and work.answers[candidate] != question:
            continue
        if size == n_kept and not scores_before(work, candidate, int(work.heap[0])):
            continue
        if size < n_kept:
            place = size
            size += 1
            while place > 0 and scores_before(work, int(work.heap[(place - 1) >> 1]), candidate):
                work.heap[place] = work.heap[(place - 1) >> 1]
                place = (place - 1) >> 1
            work.heap[place] = candidate
        else:
            sink(work, candidate, size)
    for end in range(size - 1, 0, -1):  # the worst is at the top: move it to the end
        worst, moved = work.heap[0], int(work.heap[end])
        sink(work, moved, end)
        work.heap[end] = worst
    return size


@inlined
def scores_before(work: ListedArrays, one: int, other: int) -> bool:
    """Whether a candidate ranks before another."""
    if work.scores[one] != work.scores[other]:
        return bool(work.scores[one] > work.scores[other])
    return one < other


@part
def sink(work: ListedArrays, candidate: int, size: int) -> None:
    """Put a candidate in place of the top of the heap, whose top is the worst."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and scores_before(work, int(work.heap[child]), int(work.heap[child + 1])):
            child += 1
        if not scores_before(work, candidate, int(work.heap[child])):
            break
        work.heap[place] = work.heap[child]
        place = child
    work.heap[place] = candidate


@kernel
def answer_moments(
    history: HistoryArrays,
    cells: CellArrays,
    tables: TableArrays,
    weights: Doubles,
    mode: int,
    questions: QuestionArrays,
    first: int,
    last: int,
    work: ListedArrays,
    better: Ints,
    equal: Ints,
    n_kept: int,
    kept_sizes: Ints,
    kept: Ids,
    kept_scores: Doubles,
    features: Floats,
) -> None:
    """Rank the answers of each question, and keep its best candidates, with their features if there is room for them.

    An answer's rivals are all entities that are neither excluded nor the answer itself; what nothing speaks for has
    score 0. All that is written is counted from the question `first`, with `n_kept` candidates for each.
    """
    base = questions.answer_offsets[first]
    for question in range(first, last):
        n = gather_candidates(history, cells, tables, questions, question, work)
        head = int(questions.relations[question])
        score_candidates(tables, weights, mode, head, n, work)
        begin, end = int(questions.excluded_offsets[question]), int(questions.excluded_offsets[question + 1])
        for i in range(begin, end):
            work.excluded[questions.excluded[i]] = question
        start, stop = int(questions.answer_offsets[question]), int(questions.answer_offsets[question + 1])
        for i in range(start, stop):
            work.answers[questions.answers[i]] = question
        for i in range(start, stop):
            answer = int(questions.answers[i])
            own = work.scores[answer] if work.marks[answer] == question else 0.0
            n_better, n_equal, n_silent = 0, 0, history.n_entities
            for j in range(n):
                candidate = work.listed[j]
                score = work.scores[candidate]
                if score > 0.0:
                    n_silent -= 1
                if score >= own and work.excluded[candidate] != question and candidate != answer:
                    if score > own:
                        n_better += 1
                    elif score > 0.0:
                        n_equal += 1
            if own == 0.0:
                n_equal = n_silent - 1
                for j in range(begin, end):
                    other = questions.excluded[j]
                    is_silent = work.marks[other] != question or work.scores[other] == 0.0
                    if is_silent and other != answer:
                        n_equal -= 1
            better[i - base], equal[i - base] = n_better, n_equal
        if n_kept > 0:
            size = select_best(question, n, n_kept, work)
            row = (question - first) * n_kept
            kept_sizes[question - first] = size
            for i in range(size):
                kept[row + i] = work.heap[i]
                kept_scores[row + i] = work.scores[work.heap[i]]
            if len(features) > 0 and size > 0:
                write_features(history, tables, questions, question, row, size, n, work, features)


@part
def write_features(
    history: HistoryArrays,
    tables: TableArrays,
    questions: QuestionArrays,
    question: int,
    row: int,
    size: int,
    n: int,
    work: ListedArrays,
    features: Floats,
) -> None:
    """Write what a model knows of each kept candidate: the columns named at the top."""
    head, now, before = (
        int(questions.relations[question]),
        int(questions.now[question]),
        int(questions.before[question]),
    )
    back = history.n_relations // 2
    opposite = head + back if head < back else head - back
    best = max(work.scores[work.heap[0]], 1e-12)
    length = 1e-12
    for k in range(len(work.query)):
        length += work.query[k] ** 2
    length = np.sqrt(length)
    for i in range(size):
        candidate = int(work.heap[i])
        values, out = work.values[candidate], features[row + i]
        for k in range(N_VALUES):
            out[k] = values[k]
        for k in range(N_FADES):
            out[N_VALUES + k] = work.popularity[candidate, k]
        for which in range(3):
            out[N_VALUES + N_FADES + which] = component(tables, head, candidate, which, work)
        start = int(history.fact_offsets[candidate])
        stop = first_not_before(history.fact_times, start, int(history.fact_offsets[candidate + 1]), before)
        out[LAST_SEEN] = now - history.fact_times[stop - 1] if stop > start else NEVER
        out[N_SEEN] = stop - start
        out[QUESTION_TRIPLES] = work.totals[N_TRIPLES]
        out[QUESTION_OWN] = work.totals[N_OWN]
        out[OWN_SHARE] = values[OWN_COUNT] / max(1.0, work.totals[N_OWN])
        out[PLACE] = i
        out[RELATIVE] = work.scores[candidate] / best
        out[SCORE] = work.scores[candidate]
        out[N_LISTED] = n
        out[QUESTION_TOTAL] = work.totals[PAIR_TOTAL]
        out[OPPOSITE] = own_facts(history, candidate, opposite, before)
        out[QUESTION_CONTEXT] = work.totals[CONTEXT]
        out[HEAD] = head
        out[LAST_FAVOUR] = now - last_favour(history, head, candidate, before)
        similar = 0.0
        for k in range(len(work.query)):
            similar += work.query[k] * tables.vectors[candidate, k]
        out[SIMILAR] = similar / length
        out[LATELY] = stop - first_not_before(history.fact_times, start, stop, now - LATELY_STEPS)


@part
def own_facts(history: HistoryArrays, entity: int, relation: int, before: int) -> int:
    """Return how many of the last 100 facts of an entity have a relation."""
    start = int(history.fact_offsets[entity])
    end = first_not_before(history.fact_times, start, int(history.fact_offsets[entity + 1]), before)
    n = 0
    for fact in range(max(start, end - 100), end):
        n += history.fact_relations[fact] == relation
    return n


@part
def last_favour(history: HistoryArrays, relation: int, entity: int, before: int) -> float:
    """Return when an entity was last the object of a relation; long ago if it never was."""
    low, high = int(history.favourite_offsets[relation]), int(history.favourite_offsets[relation + 1])
    end = high
    while low < high:
        middle = (low + high) >> 1
        if history.favourites[middle] < entity:
            low = middle + 1
        else:
            high = middle
    if low == end or history.favourites[low] != entity:
        return before - NEVER
    start = int(history.favour_offsets[low])
    row = first_not_before(history.favour_times, start, int(history.favour_offsets[low + 1]), before)
    return float(history.favour_times[row - 1]) if row > start else before - NEVER


@kernel
def rank_in_lists(
    questions: QuestionArrays,
    first: int,
    last: int,
    n_kept: int,
    sizes: Ints,
    kept: Ids,
    scores: Doubles,
    excluded: Ints,
    better: Ints,
    equal: Ints,
) -> None:
    """Rank the answers that are among the kept candidates of their question by other scores of these.

    Rows of `kept` and places of `better` and `equal` are counted from the question `first`; `excluded` has room for
    every entity and holds no question from `first` on.
    """
    base = questions.answer_offsets[first]
    for question in range(first, last):
        row, size = (question - first) * n_kept, int(sizes[question - first])
        for i in range(questions.excluded_offsets[question], questions.excluded_offsets[question + 1]):
            excluded[questions.excluded[i]] = question
        for i in range(questions.answer_offsets[question], questions.answer_offsets[question + 1]):
            answer, place = questions.answers[i], -1
            for k in range(row, row + size):
                if kept[k] == answer:
                    place = k
            if place < 0:
                continue
            n_better, n_equal = 0, 0
            for k in range(row, row + size):
                if k != place and excluded[kept[k]] != question:
                    if scores[k] > scores[place]:
                        n_better += 1
                    elif scores[k] == scores[place]:
                        n_equal += 1
            better[i - base], equal[i - base] = n_better, n_equal
