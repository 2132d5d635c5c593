"""Which rules a run keeps at its end: with millions of them, those that matter.

A rule matters if it is among the best rules of a known answer, of all that are looked at; B rules always do, since they
are few and say most. Learning itself knows nothing of this: `Recorder.finish` is given a function that chooses.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from anyburl.base.checking import callback, from_keywords
from anyburl.data.dataset import DataLike, Dataset, load_dataset
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import ALL, DISTILLED, LearnKeywords, LearnOptions
from anyburl.learning.recorder import KeepRules, Recorder, Reduced, run_learner
from anyburl.learning.run import RunDirectory
from anyburl.models.distilling.distil import MANY_RULES, Watch, distil_ranker, unwatched
from anyburl.models.distilling.known import KnownAnswers, KnownFacts, Observer
from anyburl.models.distilling.options import DistilOptions
from anyburl.models.distilling.saving import save_about
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import blocks_connected, take_queries
from anyburl.ranking.ranker import make_ranker
from anyburl.rules.ruleset import RuleSet

Mask = NDArray[np.bool_]

BEST_RULES = 12  # of each known answer
FACTS = 60_000  # that are looked at: with half as many, FB15k-237 loses 0.004 of its MRR on valid
MUCH_OF = 0.9  # of the rules: if more of them are among the best of their parts, to look again would gain little
RULES_AT_A_TIME = 4_000_000  # in an index: some hundred MB


def learn(
    dataset: DataLike,
    *,
    out: str | os.PathLike[str] | None = None,
    on_span: Callable[[Span], None] | None = None,
    **options: Unpack[LearnKeywords],
) -> RuleSet:
    """Learn rules from the train split of `dataset`, which is anything that `load_dataset` takes.

    `options` are the fields of `LearnOptions`. With `out`, the run is recorded in that folder. `on_span` is called at
    the end of each time span. Of more than 200,000 rules, those are kept that matter, unless `keep="all"`.
    """
    callback("on_span", on_span)
    chosen = from_keywords(LearnOptions, options)
    data = load_dataset(dataset)
    recorder = Recorder(RunDirectory.create(out, data, chosen)) if out is not None else None
    learner, keep = Learner(data.train, chosen), rules_to_keep(data, chosen)
    if recorder is None:
        run_learner(learner, None, on_span)
        rules = learner.rules()
        reduced = keep(rules) if keep else None
        return rules if reduced is None else reduced.rules
    with closing(recorder):
        run_learner(learner, recorder, on_span)
        return recorder.finish(learner, keep)


def rules_to_keep(dataset: Dataset, options: LearnOptions, watch: Watch = unwatched) -> KeepRules | None:
    """Return what chooses the rules that a run with `options` keeps; None if it keeps all."""
    if options.keep == ALL:
        return None
    ranking = RankOptions(threads=options.threads, object_identity=options.object_identity)

    def keep(rules: RuleSet) -> Reduced | None:
        if options.keep == DISTILLED and len(rules):
            return _distilled(rules, dataset, ranking, watch)
        return _needed(rules, dataset, ranking, watch) if len(rules) > MANY_RULES else None

    return keep


def _distilled(rules: RuleSet, dataset: Dataset, ranking: RankOptions, watch: Watch) -> Reduced:
    blocked = blocks_connected(ranking.block_connected, dataset)
    ranker = make_ranker(graph_of(dataset.train), rules, ranking, block_connected=blocked)
    distilled = distil_ranker(ranker, dataset, DistilOptions(), watch)
    remark = f"those that rank {distilled.judged_by} with {distilled.quality:.1%} of the MRR of all rules"
    return Reduced(distilled.rules, np.sort(distilled.rows), remark, lambda folder: save_about(folder, distilled))


def _needed(rules: RuleSet, dataset: Dataset, ranking: RankOptions, watch: Watch) -> Reduced | None:
    blocked = blocks_connected(ranking.block_connected, dataset)
    facts = KnownFacts.draw(dataset, most=FACTS, most_judged=0, blocked=blocked, seed=0)
    known = facts.to_choose_by()
    if not known:
        return None
    with watch(f"looking for the rules that matter among {len(rules):,}", f"looked through {len(rules):,} rules"):
        is_needed = find_needed(rules, graph_of(dataset.train), known, ranking, blocked=blocked)
    rows = np.flatnonzero(is_needed | rules.is_binary)
    n_facts = len(facts.valid) + len(facts.train)
    remark = f"B rules, and those among the {BEST_RULES} best of any of {n_facts:,} known facts"
    return Reduced(rules.take(rows), rows, remark)


def find_needed(
    rules: RuleSet, graph: GraphArrays, known: list[KnownAnswers], ranking: RankOptions, *, blocked: bool
) -> Mask:
    """Mark the rules that are among the best of a known answer.

    Rules are indexed in parts, so that memory does not grow with their number. The best of each part are more than the
    best of all, and are looked at again.
    """
    least_support = int(rules.support.min())
    n_relations, marked = graph.n_relations, np.ones(len(rules), np.bool_)
    relation_of = (rules.head % n_relations).astype(np.int32)
    while True:
        found, is_split = np.zeros(len(rules), np.bool_), False
        counts = np.bincount(relation_of[marked], minlength=n_relations)
        for rows in _parts(relation_of, marked, counts):
            part = rules.take(rows)
            relations = np.unique(relation_of[rows])
            is_split |= len(rows) < int(counts[relations].sum())
            observer = Observer(make_ranker(graph, part, ranking, block_connected=blocked), least_support)
            for some in known:
                listed = observer.best_rules(_about(some, relations, n_relations), BEST_RULES).rules
                found[rows[listed[listed >= 0]]] = True
        if not is_split or int(found.sum()) >= MUCH_OF * int(marked.sum()):
            return found
        marked = found


def _parts(relation_of: NDArray[np.int32], marked: Mask, counts: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of marked rules in parts, relation by relation: several small ones, or a piece of a large one.

    `counts` are the marked rules of each relation.
    """

    def rows_of(relations: list[int]) -> NDArray[np.int64]:
        is_chosen = np.zeros(len(counts), np.bool_)  # a look-up: ten times as fast as np.isin on a hundred million
        is_chosen[relations] = True
        return np.flatnonzero(marked & is_chosen[relation_of])

    waiting: list[int] = []
    for relation in np.flatnonzero(counts).tolist():
        if counts[relation] > RULES_AT_A_TIME:
            yield from np.array_split(rows_of([relation]), -(-counts[relation] // RULES_AT_A_TIME))
            continue
        if counts[waiting].sum() + counts[relation] > RULES_AT_A_TIME:
            yield rows_of(waiting)
            waiting = []
        waiting.append(relation)
    if waiting:
        yield rows_of(waiting)


def _about(known: KnownAnswers, relations: NDArray[np.int32], n_relations: int) -> KnownAnswers:
    """Return the questions about some relations."""
    rows = np.flatnonzero(np.isin(known.queries.relations % n_relations, relations))
    return KnownAnswers(take_queries(known.queries, rows), known.from_train)
