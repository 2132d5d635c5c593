"""List the candidates of questions with a moment, what each form of rules says for them, and their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anyburl.base.jit import inlined, part
from anyburl.temporal.kernel_bodies import (
    N_FADES,
    CellArrays,
    Doubles,
    Floats,
    HistoryArrays,
    Ids,
    Ints,
    QuestionArrays,
    TableArrays,
    cell_of,
    faded,
    faded_total,
    first_not_before,
    latest_facts,
    popularity_rows,
    recent_bodies,
    three_hops_key,
)

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
LOGIT, BELOW = 40, 41  # the score of the logit, and how far it is below the best of its list
SIMILAR_SELF, SIMILAR_LATEST, SIMILAR_OWN, SIMILAR_OWN_MEAN = 42, 43, 44, 45  # see `write_similar`
N_FEATURES = 46

N_ACTIVITY = 4
N_NEAR = 10
MIXTURE, MAX, NOISY_OR = 0, 1, 2
"""How scores are made: a mixture of all forms, or of what pair rules say each by itself."""


class ListedArrays(NamedTuple):
    """Buffers of one thread for the candidates of a question; of arrays by entity, only listed ones are valid."""

    listed: Ids
    marks: Ints  # entity -> the last question that listed it, twice, plus 1 if a rule did: see `list_candidate`
    values: Doubles  # (entities, N_VALUES)
    popular: Ids  # the favourites of the relation now, and their popularity
    n_popular: Ints  # [number, relation, before, now, how often they were written]
    popularity: Doubles  # (entities, N_FADES); 0 for all others
    favoured: Ints  # popular entity -> when it was last the object of the relation
    activity: Floats  # (entities, N_ACTIVITY): what was done before, see `write_activity`
    active: Ints  # entity -> for which of the popularities, counted by `n_popular`, that was written
    hops: Floats  # relation pair -> the confidence of the hop rule of the current head
    seen: Ints
    bodies: Ints
    scores: Doubles  # entity -> score
    excluded: Ints  # entity -> the last question that excludes it
    answers: Ints  # entity -> the last question that it answers
    totals: Doubles  # N_TOTALS
    heap: Ids
    query: Doubles  # the mean vector of what the entity met, weighed by intensity
    near: Ids  # (2, N_NEAR): the objects of its last facts, of any relation and of the head


@inlined
def list_candidate(work: ListedArrays, candidate: int, question: int, n: int) -> int:
    """List a candidate, once, with empty values; return how many are listed."""
    if work.marks[candidate] == 2 * question + 1:
        return n
    work.marks[candidate] = 2 * question + 1
    work.listed[n] = candidate
    clear_values(work, candidate)
    return n + 1


@inlined
def clear_values(work: ListedArrays, candidate: int) -> None:
    """Set the values of a candidate that no rule speaks for; of popular ones, only those kept need them."""
    for i in range(N_VALUES):
        work.values[candidate, i] = 0.0
    work.values[candidate, OWN_AGE] = NEVER
    work.values[candidate, AGE] = NEVER


@inlined
def is_listed(work: ListedArrays, candidate: int, question: int) -> bool:
    """Whether anything speaks for a candidate."""
    return bool(work.marks[candidate] >> 1 == question)


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
    is_detailed: bool,
    work: ListedArrays,
) -> int:
    """List everything that the entity ever met before the moment, with what pair rules say; return how many.

    What only features need is left out unless `is_detailed`.
    """
    n, back = 0, history.n_relations // 2
    reverse = head + back if head < back else head - back
    work.totals[N_OWN] = 0.0
    work.totals[N_TRIPLES] = 0.0
    for triple in range(history.triple_offsets[entity], history.triple_offsets[entity + 1]):
        start = int(history.time_offsets[triple])
        if history.times[start] >= before:
            break
        stop = first_not_before(history.times, start, int(history.time_offsets[triple + 1]), before)
        age, count = now - history.times[stop - 1], stop - start
        relation, candidate = int(history.triple_relations[triple]), int(history.triple_objects[triple])
        n = list_candidate(work, candidate, question, n)
        values, cell = work.values[candidate], cell_of(cells, age, count)
        slot = int(tables.pairs.slots[head, relation])
        intensity, alone = 0.0, 0.0
        if slot >= 0:
            intensity = float(tables.pairs.values[slot, cell])
            alone = float(tables.alone[slot, cell])
            values[SUM] += intensity
            values[ALONE] += alone
            values[ALONE_OR] = 1.0 - (1.0 - values[ALONE_OR]) * (1.0 - alone)
            if alone > values[ALONE_MAX]:
                values[SECOND] = values[ALONE_MAX]
                values[ALONE_MAX] = alone
            elif alone > values[SECOND]:
                values[SECOND] = alone
        slot = int(tables.pairs.slots[reverse, relation + back if relation < back else relation - back])
        if slot >= 0:
            values[REVERSE] += tables.pairs.values[slot, cell]
        work.totals[N_TRIPLES] += 1.0
        if relation == head:
            work.totals[N_OWN] += count
        if is_detailed:
            fresh = history.fresh[stop - 1, 0] * np.exp(-HALF_LIFE_EXPONENT * age)
            if relation == head:
                values[OWN] = intensity
                values[OWN_AGE] = age
                values[OWN_COUNT] = count
                values[OWN_FRESH] = fresh
            values[AGE] = min(values[AGE], age)
            values[COUNT] += count
            values[FRESH] += fresh
            values[BODIES] += 1.0
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
    start, end = latest_facts(history, entity, before, tables.n_first)
    for fact in range(end - 1, start - 1, -1):
        middle, body = int(history.fact_objects[fact]), int(history.fact_relations[fact]) * history.n_relations
        begin, stop = latest_facts(history, middle, before, tables.n_second)
        for second in range(stop - 1, begin - 1, -1):
            confidence = float(work.hops[body + int(history.fact_relations[second])])
            candidate = int(history.fact_objects[second])
            if confidence > 0.0 and candidate != entity:
                n = list_candidate(work, candidate, question, n)
                add_hop(work, candidate, confidence)
    return n


@inlined
def add_hop(work: ListedArrays, candidate: int, confidence: float) -> None:
    """Let a rule of hops speak for a listed candidate."""
    values = work.values[candidate]
    values[HOP] = max(values[HOP], confidence)
    values[HOP_OR] = 1.0 - (1.0 - values[HOP_OR]) * (1.0 - confidence)


@part
def gather_three_hops(
    history: HistoryArrays,
    tables: TableArrays,
    question: int,
    entity: int,
    head: int,
    before: int,
    n: int,
    work: ListedArrays,
) -> int:
    """List what rules of three hops predict; return how many are listed now."""
    rules, width = tables.hops, history.n_relations
    last = int(rules.offsets[head + 1])
    least = first_not_before(rules.bodies, int(rules.offsets[head]), last, width * width)
    if least == last:
        return n
    start, end = latest_facts(history, entity, before, tables.n_each)
    for one in range(end - 1, start - 1, -1):
        near, relation = int(history.fact_objects[one]), int(history.fact_relations[one])
        if near == entity:
            continue
        start_near, end_near = latest_facts(history, near, before, tables.n_each)
        for two in range(end_near - 1, start_near - 1, -1):
            far = int(history.fact_objects[two])
            key = three_hops_key(relation, int(history.fact_relations[two]), 0, width)
            low = first_not_before(rules.bodies, least, last, key)
            has_rules = low < last and rules.bodies[low] < key + width
            if not (has_rules and far != entity and far != near):
                continue
            start_far, end_far = latest_facts(history, far, before, tables.n_each)
            for three in range(end_far - 1, start_far - 1, -1):
                candidate, body = int(history.fact_objects[three]), key + int(history.fact_relations[three])
                rule = low
                while rule < last and rules.bodies[rule] < body:
                    rule += 1
                is_rule = rule < last and rules.bodies[rule] == body
                if is_rule and candidate != entity and candidate != near and candidate != far:
                    n = list_candidate(work, candidate, question, n)
                    add_hop(work, candidate, float(rules.confidences[rule]))
    return n


@part
def set_popularity(history: HistoryArrays, head: int, before: int, now: int, work: ListedArrays) -> None:
    """Write how popular the objects of a relation are now, as shares of all; what was written before is cleared."""
    for i in range(work.n_popular[0]):
        for k in range(N_FADES):
            work.popularity[work.popular[i], k] = 0.0
    work.n_popular[0], work.n_popular[1], work.n_popular[2], work.n_popular[3] = 0, head, before, now
    work.n_popular[4] += 1
    total = popularity_rows(history, head, before)
    if total < 0:
        return
    n = 0
    for k in range(N_FADES):
        work.totals[k] = 1.0 / faded_total(history, total, k, now)
    for favourite in range(history.favourite_offsets[head], history.favourite_offsets[head + 1]):
        start = int(history.favour_offsets[favourite])
        if history.favour_times[start] >= before:
            continue
        row = first_not_before(history.favour_times, start, int(history.favour_offsets[favourite + 1]), before) - 1
        candidate = history.favourites[favourite]
        work.popular[n] = candidate
        work.favoured[candidate] = history.favour_times[row]
        n += 1
        for k in range(N_FADES):
            work.popularity[candidate, k] = faded(history, row, k, now) * work.totals[k]
    work.n_popular[0] = n


@part
def set_hops(tables: TableArrays, before: int, head: int, work: ListedArrays) -> None:
    """Spread the hop rules of `head` in place of those of the head `before`, -1 if there is none."""
    rules = tables.hops
    if before >= 0:
        for rule in range(rules.offsets[before], rules.offsets[before + 1]):
            if rules.bodies[rule] < len(work.hops):
                work.hops[rules.bodies[rule]] = 0.0
    for rule in range(rules.offsets[head], rules.offsets[head + 1]):
        if rules.bodies[rule] < len(work.hops):  # three hops are looked up
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
    is_detailed: bool,
    work: ListedArrays,
) -> tuple[int, int]:
    """List all candidates of a question: those that rules speak for, then popular ones; return both numbers."""
    entity, head = int(questions.entities[question]), int(questions.relations[question])
    before, now = int(questions.before[question]), int(questions.now[question])
    if work.n_popular[1] != head:
        set_hops(tables, int(work.n_popular[1]), head, work)
    if work.n_popular[1] != head or work.n_popular[2] != before or work.n_popular[3] != now:
        set_popularity(history, head, before, now, work)
    n = gather_pairs(history, cells, tables, question, entity, head, before, now, is_detailed, work)
    n = gather_constants(history, tables, question, entity, head, before, now, n, work)
    n = gather_hops(history, tables, question, entity, before, n, work)
    if tables.n_each > 0:
        n = gather_three_hops(history, tables, question, entity, head, before, n, work)
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
    n_ruled = n
    for i in range(work.n_popular[0]):
        candidate = work.popular[i]
        if work.marks[candidate] != 2 * question + 1:
            work.marks[candidate] = 2 * question
            work.listed[n] = candidate
            n += 1
    return n_ruled, n


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


@part
def score_candidates(
    tables: TableArrays, weights: Doubles, mode: int, head: int, n_ruled: int, n: int, work: ListedArrays
) -> None:
    """Write the score of every listed candidate: the weighted mean of the components, unless `mode` says otherwise.

    Of the many that are popular and nothing else, only the popularities count, with the same weights for all.
    """
    mixed = weights[head, int(work.totals[CONTEXT])]
    if mode != MIXTURE:
        for i in range(n):
            candidate, is_ruled = int(work.listed[i]), i < n_ruled
            value = work.values[candidate, ALONE_MAX if mode == MAX else ALONE_OR]
            work.scores[candidate] = value if is_ruled else 0.0
        return
    for i in range(n_ruled):
        candidate = int(work.listed[i])
        score = 0.0
        for which in range(N_COMPONENTS):
            score += mixed[which] * component(tables, head, candidate, which, work)
        work.scores[candidate] = score
    for i in range(n_ruled, n):
        candidate = int(work.listed[i])
        score = 0.0
        for k in range(N_FADES):
            weight = mixed[0] * tables.favour[head, k] / work.totals[PAIR_TOTAL] + mixed[N_FORMS + k]
            score += weight * work.popularity[candidate, k]
        work.scores[candidate] = score
