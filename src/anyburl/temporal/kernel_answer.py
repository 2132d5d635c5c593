"""Rank the answers of questions with a moment, and keep the best candidates, with what a model knows of them.

The columns and scores of the logit, and what vectors of entities are made by: counts and a product of tables.
"""

from __future__ import annotations

import numpy as np

from anyburl.base.jit import inlined, kernel, part
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
    first_not_before,
    latest_facts,
)
from anyburl.temporal.kernel_candidates import (
    BELOW,
    CONTEXT,
    HEAD,
    LAST_FAVOUR,
    LAST_SEEN,
    LATELY,
    LOGIT,
    N_COMPONENTS,
    N_LISTED,
    N_NEAR,
    N_OWN,
    N_SEEN,
    N_TRIPLES,
    N_VALUES,
    NEVER,
    OPPOSITE,
    OWN,
    OWN_COUNT,
    OWN_SHARE,
    PAIR_TOTAL,
    PLACE,
    QUESTION_CONTEXT,
    QUESTION_OWN,
    QUESTION_TOTAL,
    QUESTION_TRIPLES,
    RELATIVE,
    REVERSE,
    SCORE,
    SECOND,
    SIMILAR,
    SIMILAR_LATEST,
    SIMILAR_OWN,
    SIMILAR_OWN_MEAN,
    SIMILAR_SELF,
    SUM,
    ListedArrays,
    clear_values,
    component,
    gather_candidates,
    is_listed,
    score_candidates,
)

LATELY_STEPS = 7  # in which the facts of a candidate are counted
N_LATEST = 100  # facts of a candidate that are looked through for a relation
N_LOOKED = 400  # facts of the entity of a question that are


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
        gather_candidates(history, cells, tables, questions, question, False, work)
        head = int(questions.relations[question])
        contexts[question] = int(work.totals[CONTEXT])
        for i in range(questions.answer_offsets[question], questions.answer_offsets[question + 1]):
            answer = int(questions.answers[i])
            if work.marks[answer] != 2 * question + 1:
                clear_values(work, answer)
            for which in range(N_COMPONENTS):
                is_known = is_listed(work, answer, question)
                components[i, which] = component(tables, head, answer, which, work) if is_known else 0.0


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
            position = size
            size += 1
            while position > 0 and scores_before(work, int(work.heap[(position - 1) >> 1]), candidate):
                work.heap[position] = work.heap[(position - 1) >> 1]
                position = (position - 1) >> 1
            work.heap[position] = candidate
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
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and scores_before(work, int(work.heap[child]), int(work.heap[child + 1])):
            child += 1
        if not scores_before(work, candidate, int(work.heap[child])):
            break
        work.heap[position] = work.heap[child]
        position = child
    work.heap[position] = candidate


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
        n_ruled, n = gather_candidates(history, cells, tables, questions, question, len(features) > 0, work)
        head = int(questions.relations[question])
        score_candidates(tables, weights, mode, head, n_ruled, n, work)
        begin, end = int(questions.excluded_offsets[question]), int(questions.excluded_offsets[question + 1])
        for i in range(begin, end):
            work.excluded[questions.excluded[i]] = question
        start, stop = int(questions.answer_offsets[question]), int(questions.answer_offsets[question + 1])
        for i in range(start, stop):
            work.answers[questions.answers[i]] = question
        for i in range(start, stop):
            answer = int(questions.answers[i])
            own = work.scores[answer] if is_listed(work, answer, question) else 0.0
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
                    is_silent = not is_listed(work, int(other), question) or work.scores[other] == 0.0
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
                write_features(history, tables, questions, question, row, size, n_ruled, n, work, features)


@part
def write_features(
    history: HistoryArrays,
    tables: TableArrays,
    questions: QuestionArrays,
    question: int,
    row: int,
    size: int,
    n_ruled: int,
    n: int,
    work: ListedArrays,
    features: Floats,
) -> None:
    """Write what a model knows of each kept candidate: the columns named in `kernel_candidates`."""
    head, now, before = (
        int(questions.relations[question]),
        int(questions.now[question]),
        int(questions.before[question]),
    )
    best = max(work.scores[work.heap[0]], 1e-12)
    length = set_query(tables, n_ruled, work)
    entity = int(questions.entities[question])
    n_any, n_own = set_near(history, entity, head, before, work)
    for i in range(size):
        candidate = int(work.heap[i])
        if work.marks[candidate] == 2 * question:
            clear_values(work, candidate)
        if work.active[candidate] != work.n_popular[4]:  # the same for all questions of a relation at a moment
            work.active[candidate] = work.n_popular[4]
            write_activity(history, candidate, head, before, now, work.activity[candidate])
        values, out = work.values[candidate], features[row + i]
        for k in range(N_VALUES):
            out[k] = values[k]
        for k in range(N_FADES):
            out[N_VALUES + k] = work.popularity[candidate, k]
        for which in range(3):
            out[N_VALUES + N_FADES + which] = component(tables, head, candidate, which, work)
        out[LAST_SEEN], out[N_SEEN] = work.activity[candidate, 0], work.activity[candidate, 1]
        out[OPPOSITE], out[LATELY] = work.activity[candidate, 2], work.activity[candidate, 3]
        out[QUESTION_TRIPLES] = work.totals[N_TRIPLES]
        out[QUESTION_OWN] = work.totals[N_OWN]
        out[OWN_SHARE] = values[OWN_COUNT] / max(1.0, work.totals[N_OWN])
        out[PLACE] = i
        out[RELATIVE] = work.scores[candidate] / best
        out[SCORE] = work.scores[candidate]
        out[N_LISTED] = n
        out[QUESTION_TOTAL] = work.totals[PAIR_TOTAL]
        out[QUESTION_CONTEXT] = work.totals[CONTEXT]
        out[HEAD] = head
        is_popular = work.popularity[candidate, N_FADES - 1] > 0.0
        out[LAST_FAVOUR] = now - (work.favoured[candidate] if is_popular else before - NEVER)
        similar = 0.0
        for k in range(len(work.query)):
            similar += work.query[k] * tables.vectors[candidate, k]
        out[SIMILAR] = similar / length
        write_similar(tables, entity, candidate, n_any, n_own, work, out)


@part
def set_near(history: HistoryArrays, entity: int, head: int, before: int, work: ListedArrays) -> tuple[int, int]:
    """Write the objects of the last facts of an entity, of any relation and of `head`; return how many of each."""
    start, end = latest_facts(history, entity, before, N_LOOKED)
    n_any, n_own, fact = 0, 0, end - 1
    while fact >= start and n_own < N_NEAR:
        if n_any < N_NEAR:
            work.near[0, n_any] = history.fact_objects[fact]
            n_any += 1
        if history.fact_relations[fact] == head:
            work.near[1, n_own] = history.fact_objects[fact]
            n_own += 1
        fact -= 1
    return n_any, n_own


@inlined
def similarity(vectors: Floats, one: int, other: int) -> float:
    """Return the cosine of the vectors of two entities."""
    total = np.float32(0)
    for k in range(vectors.shape[1]):
        total += vectors[one, k] * vectors[other, k]
    return float(total)


@part
def write_similar(
    tables: TableArrays, entity: int, candidate: int, n_any: int, n_own: int, work: ListedArrays, out: Floats
) -> None:
    """Write how similar a candidate is to the entity, and to others that it met last, by any relation or by the head.

    What it met is compared by the most similar one, -1 if there is none, and for the head also by the mean.
    """
    nearest, own, total = -1.0, -1.0, 0.0
    for i in range(n_any):
        if work.near[0, i] != candidate:
            nearest = max(nearest, similarity(tables.vectors, int(work.near[0, i]), candidate))
    for i in range(n_own):
        if work.near[1, i] != candidate:
            similar = similarity(tables.vectors, int(work.near[1, i]), candidate)
            own = max(own, similar)
            total += similar
    out[SIMILAR_SELF] = similarity(tables.vectors, entity, candidate)
    out[SIMILAR_LATEST], out[SIMILAR_OWN], out[SIMILAR_OWN_MEAN] = nearest, own, total / max(n_own, 1)


@part
def set_query(tables: TableArrays, n_ruled: int, work: ListedArrays) -> float:
    """Write the sum of the vectors of what the entity met, weighed by intensity; return its length, never 0."""
    for k in range(len(work.query)):
        work.query[k] = 0.0
    for i in range(n_ruled):
        candidate = int(work.listed[i])
        intensity = work.values[candidate, SUM]
        if intensity > 0.0:
            for k in range(len(work.query)):
                work.query[k] += intensity * tables.vectors[candidate, k]
    length = 1e-12
    for k in range(len(work.query)):
        length += work.query[k] ** 2
    return float(np.sqrt(length))


@part
def write_activity(history: HistoryArrays, entity: int, head: int, before: int, now: int, out: Floats) -> None:
    """Write how long ago an entity was seen, how often, how often of late in the place of the answer, and of late."""
    back = history.n_relations // 2
    opposite = head + back if head < back else head - back
    start = int(history.fact_offsets[entity])
    stop = first_not_before(history.fact_times, start, int(history.fact_offsets[entity + 1]), before)
    n = 0
    for fact in range(max(start, stop - N_LATEST), stop):
        n += history.fact_relations[fact] == opposite
    out[0] = now - history.fact_times[stop - 1] if stop > start else NEVER
    out[1] = stop - start
    out[2] = n
    out[3] = stop - first_not_before(history.fact_times, start, stop, now - LATELY_STEPS)


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
            answer, position = questions.answers[i], -1
            for k in range(row, row + size):
                if kept[k] == answer:
                    position = k
            if position < 0:
                continue
            n_better, n_equal = 0, 0
            for k in range(row, row + size):
                if k != position and excluded[kept[k]] != question:
                    if scores[k] > scores[position]:
                        n_better += 1
                    elif scores[k] == scores[position]:
                        n_equal += 1
            better[i - base], equal[i - base] = n_better, n_equal


N_LOGS = N_VALUES + N_FADES + 3  # values, popularity and three components, as logarithms
N_COLUMNS = N_LOGS + 10


@part
def set_columns(row: Floats, out: Floats) -> None:
    """Write the columns of the logit: logarithms of evidence, and what it is relative to the question."""
    for i in range(N_LOGS):
        least = 1.0 if OWN < i < SECOND else (1e-5 if N_VALUES <= i < N_VALUES + N_FADES else 1e-4)
        out[i] = np.log(row[i] + np.float32(least))
    one = np.float32(1)
    out[N_LOGS] = np.log(row[LAST_SEEN] + one)
    out[N_LOGS + 1] = np.log(row[N_SEEN] + one)
    out[N_LOGS + 2] = row[OWN_SHARE]
    out[N_LOGS + 3] = np.log(row[OWN_SHARE] + np.float32(0.01))
    out[N_LOGS + 4] = np.log(row[SCORE] + np.float32(1e-6))
    out[N_LOGS + 5] = np.log(row[OPPOSITE] + one)
    out[N_LOGS + 6] = np.log(max(row[LAST_FAVOUR], np.float32(0)) + one)
    out[N_LOGS + 7] = row[SIMILAR]
    out[N_LOGS + 8] = np.log(row[LATELY] + one)
    out[N_LOGS + 9] = np.log((row[REVERSE] + np.float32(1e-3)) / (row[OPPOSITE] + one))


@kernel
def fill_columns(rows: Floats, out: Floats) -> None:
    """Write the columns of the logit of every row."""
    for row in range(len(rows)):
        set_columns(rows[row], out[row])


@kernel
def fill_logits(
    rows: Floats, offsets: Ints, first: int, last: int, weights: Doubles, columns: Floats, logits: Doubles
) -> None:
    """Write the score of the logit for each row of some lists, and how far it is below the best of its list."""
    for question in range(first, last):
        highest = -np.inf
        for row in range(offsets[question], offsets[question + 1]):
            set_columns(rows[row], columns)
            score = 0.0
            for i in range(len(columns)):
                score += columns[i] * weights[i]
            logits[row] = score
            highest = max(highest, score)
        for row in range(offsets[question], offsets[question + 1]):
            rows[row, LOGIT] = logits[row]
            rows[row, BELOW] = logits[row] - highest


@kernel
def count_before(history: HistoryArrays, end: int, counts: Ints) -> None:
    """Write how often each triple was seen before `end`."""
    for triple in range(len(counts)):
        start = int(history.time_offsets[triple])
        counts[triple] = first_not_before(history.times, start, int(history.time_offsets[triple + 1]), end) - start


@kernel
def multiply_rows(offsets: Ints, columns: Ids, values: Doubles, basis: Doubles, row: Doubles, out: Doubles) -> None:
    """Add M' M `basis` to `out`, for the table M whose rows have their values in some columns; `row` is a buffer."""
    width = basis.shape[1]
    for i in range(len(offsets) - 1):
        for k in range(width):
            row[k] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            for k in range(width):
                row[k] += values[j] * basis[columns[j], k]
        for j in range(offsets[i], offsets[i + 1]):
            for k in range(width):
                out[columns[j], k] += values[j] * row[k]
