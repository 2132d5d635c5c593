"""Chooses the rules that can lift a fact over the minimum score, and the questions to ask.

`Finder`: finds the facts of some subjects, on any thread or machine.

Indexes B rules by body: one trie, whose ends are bodies, and the rules of each body.

`missing_facts`: every fact that the rules imply and no split states, in columns of ids, some subjects at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.data.dataset import SPLITS, Dataset
from anyburl.graph.build import held_by, split_bits
from anyburl.models.calibration import logistic
from anyburl.models.tuned.fallback import Fallback
from anyburl.models.tuned.listing import take_groups
from anyburl.models.tuned.observations import TOP_K, Lists, rows_of
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.ranking.arrays import (
    QueryArrays,
    RuleIndex,
    Workspace,
    empty_answers,
    empty_candidates,
    empty_firings,
    empty_walk,
    offsets_of,
)
from anyburl.ranking.index import (
    cut_levels,
    freeze,
    number_counts_of,
    readings,
    shown_scores,
    to_confidences,
    to_scores,
)
from anyburl.ranking.kernel_order import n_columns
from anyburl.ranking.options import Aggregation
from anyburl.ranking.queries import single_query
from anyburl.ranking.ranker import NO_GROUPS, Progress, Ranker, ReadyRules, make_ready
from anyburl.reasoning.completion.facts import FactColumns, merge_directions
from anyburl.reasoning.completion.kernel import (
    BodyRules,
    FactArrays,
    FindSpace,
    ListArrays,
    Stopped,
    empty_facts,
    empty_lists,
    empty_shelf,
    find_facts,
)
from anyburl.reasoning.completion.options import check_proposes
from anyburl.rules.ruleset import RuleSet

ROOM = 1 << 16  # for firings, ends of bodies and facts; it grows where that is too little
LISTS = 1 << 12
AT = Stopped()


@dataclass(frozen=True)
class Finder:
    """Answers (s, d, ?) for every d of `heads`, leaving out what the graph states.

    Answers with a key of at least `least[d]` are facts. With `groups` of rules, the `longest_list` best candidates of
    each question are listed with their evidence, and followed by those of at least `least[d]`; none of them may be
    unable to reach `floors[d]`. Questions of relations with `one_object` are asked only if the graph states no answer.
    """

    ready: ReadyRules  # its trie is that of all bodies
    bodies: BodyRules
    aggregation: Aggregation
    heads: NDArray[np.int32]
    least: NDArray[np.int64]
    floors: NDArray[np.int64]
    one_object: NDArray[np.bool_]
    groups: NDArray[np.uint8] = field(default_factory=lambda: NO_GROUPS)
    longest_list: int = 0
    _spare: SimpleQueue[FindSpace] = field(default_factory=SimpleQueue, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.groups.flags.writeable:  # it was sent to a Ray worker, but kernels are compiled for one's own
            object.__setattr__(self, "groups", self.groups.copy())

    def __call__(self, subjects: NDArray[np.int32]) -> tuple[FactArrays, ListArrays]:
        """Return the facts of some subjects, one after the other, and their lists."""
        ready, space = self.ready, self._take()
        protocol = ready.protocol(self.aggregation, self.longest_list)
        room = max(ROOM, ready.graph.n_entities + 1)
        facts, lists = empty_facts(room, n_columns(self.groups)), empty_lists(LISTS)
        query, best = single_query(0, 0, np.empty(0, np.int32)), np.empty(max(self.longest_list, 1), np.int32)
        # Kernels are compiled for writable arrays.
        own = subjects.copy(), self.heads.copy(), self.least.copy(), self.floors.copy(), self.one_object.copy()
        pieces: list[tuple[FactArrays, ListArrays]] = []
        space.stopped[:] = 0
        while space.stopped[AT.subject] < len(subjects):
            find_facts(
                ready.graph, ready.index, self.bodies, *own, query, protocol, self.groups, best, space, facts, lists
            )
            n_facts, n_lists = int(space.stopped[AT.facts]), int(space.stopped[AT.questions])
            pieces.append((_cut(facts, n_facts), _cut(lists, n_lists)))
            space = _enlarged(space)
        self._spare.put(space)
        return _joined([part for part, _ in pieces], facts), _joined([part for _, part in pieces], lists)

    def _take(self) -> FindSpace:
        try:
            return self._spare.get_nowait()
        except Empty:
            graph, longest = self.ready.graph, self.ready.longest
            n_entities = graph.n_entities
            answering = Workspace(empty_walk(graph, longest), empty_candidates(n_entities), empty_firings(ROOM))
            shelf = empty_shelf(self.bodies, 2 * self.ready.graph.n_relations, empty_firings(ROOM))
            gathered = empty_firings(max(ROOM, self.longest_list))
            weights = np.zeros((n_entities + 1, 5), np.int64)
            return FindSpace(answering, shelf, weights, gathered, np.zeros(len(Stopped()), np.int64))

    def __reduce__(self) -> Any:
        names = ("ready", "bodies", "aggregation", "heads", "least", "floors", "one_object", "groups", "longest_list")
        return Finder, tuple(getattr(self, name) for name in names)


def _enlarged(space: FindSpace) -> FindSpace:
    """Return the buffers with as much room as the kernel asked for."""
    if space.stopped[AT.firings]:
        firings = empty_firings(2 * int(space.stopped[AT.firings]))
        space = space._replace(answering=space.answering._replace(firings=firings))
    if space.stopped[AT.ends]:
        ends = empty_firings(2 * int(space.stopped[AT.ends]))
        space = space._replace(shelf=space.shelf._replace(ends=ends))
    if space.stopped[AT.gathered]:
        space = space._replace(gathered=empty_firings(2 * int(space.stopped[AT.gathered])))
    return space


def _cut(columns: Any, n: int) -> Any:
    return type(columns)(*(column[:n].copy() for column in columns))


def _joined(parts: list[Any], like: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _cut(like, 0)
    return type(like)(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def index_bodies(rules: RuleSet, index: RuleIndex, *, both_ways: bool) -> tuple[RuleIndex, BodyRules]:
    """Index the B rules by body, read forward only or both ways; return the index with a trie of all bodies."""
    chosen = np.flatnonzero(rules.is_binary)
    heads, bodies, rows = readings(rules, chosen)
    if not both_ways:
        heads, bodies, rows = heads[: len(chosen)], bodies[: len(chosen)], rows[: len(chosen)]
    order = np.lexsort(bodies.T[::-1])
    heads, bodies, rows = heads[order], bodies[order], rows[order]
    changes = np.ones(len(bodies), np.bool_)
    changes[1:] = (bodies[1:] != bodies[:-1]).any(axis=1)
    numbers = np.cumsum(changes) - 1
    different = bodies[changes]
    keys = np.column_stack([np.zeros(len(different), np.int32), different])
    trie = cut_levels(keys, np.arange(len(keys)), np.zeros(len(keys), np.int32), 1)
    of_bodies = BodyRules(
        rule_offsets=offsets_of(numbers, len(different)),
        bodies=numbers.astype(np.int32),
        heads=heads.astype(np.int32),
        codes=number_counts_of(rules)[0][rows],
        rows=rows.astype(np.int32),
    )
    nothing_below = np.zeros(len(trie.codes), np.int64)
    for made in (trie, of_bodies, nothing_below):
        freeze(made)
    return index._replace(trie=trie, best_below=nothing_below), of_bodies


ROUNDING = 1e-11  # more than scores, as people see them, are rounded by

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """Finds the facts of some subjects: those with at least the least score of their relation.

    A question's answers are facts by their own scores, or by those that a model gives to its best candidates.
    """

    finder: Finder
    least: Scores  # by relation
    rows: NDArray[np.int64] | None  # of the rules in use, None: of all
    reranker: TunedReranker | None = None  # with a model
    fallback: Fallback | None = None  # whose columns the model knows

    @property
    def both_ways(self) -> bool:
        """Whether both questions of a fact are asked: they may give it different scores."""
        return len(self.finder.heads) > 0 and int(self.finder.heads.max()) >= len(self.least)

    def __call__(self, subjects: NDArray[np.int32]) -> FactColumns:
        """Return the facts that are answers to questions about these entities."""
        arrays, lists = self.finder(subjects)
        keys = arrays.keys
        if self.reranker is not None and self.fallback is not None:
            keys = self._judged(arrays, lists, self.reranker, self.fallback)
        facts = FactColumns.of_answers(arrays, shown_scores(keys), len(self.least))
        if self.reranker is not None:
            facts = replace(facts, listed=shown_scores(arrays.keys))
        facts = facts.take(facts.scores >= self.least[facts.triples[:, 1]])
        return facts if self.rows is None else replace(facts, rules=self.rows[facts.rules].astype(np.int32))

    def _judged(
        self, arrays: FactArrays, lists: ListArrays, reranker: TunedReranker, fallback: Fallback
    ) -> NDArray[np.int64]:
        """Return keys that stand for the model's scores of listed candidates; what follows a list stays below it."""
        sizes = lists.sizes + lists.n_later
        questions = np.repeat(np.arange(len(sizes)), sizes)
        positions = np.arange(len(questions)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        listed = positions < lists.sizes[questions]
        nothing, offsets = np.empty(0, np.int32), np.zeros(len(sizes) + 1, np.int64)
        queries = QueryArrays(lists.entities, lists.relations, offsets, nothing, offsets, nothing)
        answers = empty_answers(len(sizes), 0, 0)._replace(n_candidates=lists.n_candidates)
        best = Lists(lists.sizes, arrays.candidates[listed], arrays.evidence[listed])
        fits = fallback.columns(queries.entities, queries.relations, best.questions, best.candidates)
        scores = np.empty(len(questions))
        rows = rows_of(self.finder.ready, queries, answers, best, fits)
        scores[listed] = logistic(reranker.scores(rows, queries, best))
        lowest = np.ones(len(sizes))
        np.minimum.at(lowest, questions[listed], scores[listed])
        scores[~listed] = to_confidences(arrays.keys[~listed]) * lowest[questions[~listed]]
        return to_scores(scores)


@dataclass(frozen=True)
class Narrowed:
    """What need not be looked at: questions of relations with one object (`one_object`) that have an answer, and
    candidates for a model whose rules cannot reach the score `floors` of their relation.
    """

    one_object: NDArray[np.bool_]
    floors: Scores

    @classmethod
    def nothing(cls, n_relations: int) -> Narrowed:
        """Return that everything is looked at."""
        return cls(np.zeros(n_relations, np.bool_), np.zeros(n_relations))


def make_search(ranker: Ranker, least: Scores, narrowed: Narrowed | None = None) -> Search:
    """Choose the rules and questions for facts with at least the `least` score of their relation (inf: none).

    Where the best rule decides, only rules of at least that score matter; elsewhere, all rules with such a head do. One
    question of each fact is asked, (s, r, ?), unless there are rules without a body, which answer one question only.
    """
    reranker = ranker.reranker if isinstance(ranker.reranker, TunedReranker) else None
    model = reranker.model if reranker else None
    if reranker is not None and reranker.other is not None:
        check_proposes("hybrid")
    lister, n_relations = ranker.lister(), ranker.graph.n_relations
    rows = _rows_that_matter(lister, least, by_best_rule=model is None and lister.aggregation.n_counted == 1)
    rules = lister.rules if rows is None else lister.rules.take(rows)
    ready = lister.ready
    if rows is not None:
        options, connected = lister.options, lister.block_connected
        ready = make_ready(lister.graph, rules, options, block_connected=connected, tries=False)
    both_ways = model is None and bool((rules.lengths == 0).any())
    narrowed = narrowed or Narrowed.nothing(n_relations)
    relations = np.flatnonzero(np.isfinite(least)).astype(np.int32)
    index, bodies = index_bodies(rules, ready.index, both_ways=both_ways)
    keys = to_scores(np.where(np.isfinite(least), np.maximum(least - ROUNDING, 0), 1))
    groups = NO_GROUPS if reranker is None or model is None else reranker.groups
    finder = Finder(
        replace(ready, index=index),
        bodies,
        lister.aggregation,
        np.concatenate([relations, relations + n_relations]).astype(np.int32) if both_ways else relations,
        np.concatenate([keys, keys]),
        np.tile(to_scores(narrowed.floors), 2),
        np.concatenate([narrowed.one_object, np.zeros(n_relations, np.bool_)]),
        groups if rows is None or not len(groups) else take_groups(groups, rows),
        TOP_K if model else 0,
    )
    if reranker is None or model is None:
        return Search(finder, least, rows)
    return Search(finder, least, rows, reranker.in_one_thread(), Fallback(lister.graph))


def _rows_that_matter(ranker: Ranker, least: Scores, *, by_best_rule: bool) -> NDArray[np.int64] | None:
    """Return the rules that can lift a fact over its least score; None if that may be any."""
    least_of_rules, least_binary = least[ranker.rules.head % ranker.graph.n_relations], ranker.aggregation.least_binary
    confidences = ranker.confidences(np.arange(len(ranker.rules))) if by_best_rule or least_binary else np.empty(0)
    if by_best_rule:
        return np.flatnonzero(confidences >= least_of_rules - ROUNDING)
    kept = np.isfinite(least_of_rules)
    if least_binary:
        kept &= ~ranker.rules.is_binary | (to_scores(confidences) >= to_scores(least_binary))
    return None if kept.all() else np.flatnonzero(kept)


SUBJECTS_AT_A_TIME = 64
LISTED_AT_A_TIME = 16  # where candidates are listed with their evidence


def missing_facts(
    ranker: Ranker,
    dataset: Dataset,
    least: NDArray[np.float64],
    *,
    stated: Sequence[str] = SPLITS,
    subjects: NDArray[np.int32] | None = None,
    narrowed: Narrowed | None = None,
    progress: Progress | None = None,
) -> Iterator[FactColumns]:
    """Yield the facts with at least the `least` score of their relation (inf: none) that no split of `stated` holds.

    A fact's score is what it has as an answer to (s, r, ?); rules without a body may give it a higher one as an answer
    to (?, r, o). Those of a subject come together, and what is `narrowed` is left out. `subjects` are the ids of those
    that matter, by default all; `progress` is called with the number of entities asked about.
    """
    search = make_search(ranker, least, narrowed)
    entities = np.arange(ranker.graph.n_entities, dtype=np.int32)
    if subjects is not None and not search.both_ways:
        entities = np.unique(subjects)
    batches = _search_slices(ranker, search, entities, progress)
    if search.both_ways:
        batches = merge_directions(batches if subjects is None else _only_about(batches, subjects))
    bits = split_bits(stated)
    for facts in batches:
        yield facts.take(held_by(dataset, facts.triples) & bits == 0)


def _search_slices(
    ranker: Ranker, search: Search, entities: NDArray[np.int32], progress: Progress | None
) -> Iterator[FactColumns]:
    if not len(search.finder.heads):
        return
    size = LISTED_AT_A_TIME if search.reranker and not search.finder.floors.any() else SUBJECTS_AT_A_TIME
    parts = [entities[start : start + size] for start in range(0, len(entities), size)]
    for part, facts in zip(parts, ranker.backend.map(search, parts), strict=True):
        if progress:
            progress(len(part))
        yield facts


def _only_about(batches: Iterator[FactColumns], subjects: NDArray[np.int32]) -> Iterator[FactColumns]:
    for facts in batches:
        yield facts.take(np.isin(facts.triples[:, 0], subjects))
