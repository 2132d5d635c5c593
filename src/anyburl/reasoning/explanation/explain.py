"""`Explanation`: the rules that predict a triple, best first, with their facts; and where it ranks by them.

If a tuned model ranks the answer, what each rule does to its score. If no rule predicts the triple, or others rank
before it: the strongest rules that lack a single fact (near misses).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.tree import Tree

from anyburl.base import checking
from anyburl.data.dataset import Dataset
from anyburl.graph.build import Ids, holding_splits, neighbours, other_answers
from anyburl.models.calibration import logistic
from anyburl.models.tuned.listing import RANK_COLUMN
from anyburl.models.tuned.observations import evidence_row
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.ranking.arrays import LongIndex, RuleIndex, ShortIndex, empty_candidates
from anyburl.ranking.index import to_confidences, to_scores
from anyburl.ranking.kernel_order import rank_candidate
from anyburl.ranking.queries import single_query
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.explanation.kernel import empty_search, first_near_miss
from anyburl.reasoning.explanation.record import ExplanationRecord, Fact, NearMiss, OpenFact, Reason
from anyburl.reasoning.explanation.render import to_fragment, to_tree
from anyburl.reasoning.explanation.rule_examples import body_ends, find_groundings, make_task, triple_ids

Rows = NDArray[np.int64]
Scores = NDArray[np.int64]


class QueryFirings:
    """The rules that fire for one query, and those among them that predict one answer."""

    def __init__(self, ranker: Ranker, entity: int, relation: int, answer: int) -> None:
        self.entity, self.relation, self.answer = entity, relation, answer
        self._fired = ranker.fire(entity, relation)
        places = np.flatnonzero(self._fired.candidates == answer)
        self.rows: Rows = self._fired.rules[places].astype(np.int64)
        self.scores: Scores = self._fired.scores[places]

    def rank(self, lister: Ranker, others: NDArray[np.int32]) -> float | None:
        """Return the filtered rank of the answer, ties counted half, as `Ranker.answer` does; None if it has none.

        `others` are known answers. The rules have fired already: to ask the ranker would fire them again.
        """
        graph = lister.graph
        excluded = np.zeros(graph.n_entities + 1, np.bool_)
        excluded[others] = True
        if lister.block_connected:
            excluded[neighbours(graph, self.entity)] = True
        if not len(self.rows) or excluded[self.answer]:
            return None
        kept = np.flatnonzero(~excluded[self._fired.candidates])
        firings = self._fired._replace(
            candidates=self._fired.candidates[kept],
            scores=self._fired.scores[kept],
            following=np.empty(len(kept), np.int32),
            lists=np.empty(len(kept), np.int64),
        )
        candidates, protocol = empty_candidates(graph.n_entities), lister.ready.protocol(lister.aggregation, 0)
        better, equal = rank_candidate(
            candidates, firings, len(kept), self.answer, protocol.n_counted, protocol.breaks_ties
        )
        return better + equal / 2 + 1


class Firings:
    """The rules that predict one triple, in either direction, best first.

    The two queries of a triple have the same rules but for those without a body: h(X,c) <= answers (s, h, ?) only.
    `lister` is a ranker without a re-ranker.
    """

    def __init__(self, lister: Ranker, triple: Ids) -> None:
        subject, relation, object = triple
        self._lister = lister
        backward = relation + lister.vocabulary.n_relations
        self.of_object = QueryFirings(lister, subject, relation, object)
        self.of_subject = QueryFirings(lister, object, backward, subject)
        either = (self.of_object, self.of_subject)
        rows, firsts = np.unique(np.concatenate([query.rows for query in either]), return_index=True)
        scores = np.concatenate([query.scores for query in either])[firsts]
        support = lister.rules.support[rows]
        self.rows: Rows = rows[np.lexsort((rows, -support, -scores))]
        self._scores: dict[int, int] = dict(zip(rows.tolist(), scores.tolist(), strict=True))
        has_score = [len(query.rows) > 0 and bool(query.scores.any()) for query in either]
        use_subject = not len(self.of_object.rows) or (has_score[1] and not has_score[0])
        ranked = set((self.of_subject if use_subject else self.of_object).rows.tolist())
        self._counted: list[int] = [row for row in self.rows.tolist() if row in ranked]

    def score(self, rows: Rows) -> float:
        """Return the score that `rows` give together."""
        if not len(rows):
            return 0.0
        aggregation, scores = (
            self._lister.aggregation,
            sorted((self._scores[row] for row in rows.tolist()), reverse=True),
        )
        summed = float(to_confidences(np.array(aggregation.key(scores))))
        return aggregation.score(summed, float(self._lister.confidences(rows).max()))

    def contribution(self, row: int) -> tuple[float, bool]:
        """Return a rule's share of the score, and whether it only decides between candidates that tie."""
        if row not in self._counted:
            return 0.0, False
        aggregation, position = self._lister.aggregation, self._counted.index(row)
        share = aggregation.contribution([self._scores[counted] for counted in self._counted], position)
        return share, aggregation.breaks_ties and share == 0.0


MOST_RULES = 2000
"""How many of the strongest rules are tried."""

MOST_TRIED = 2000
"""How many entities are tried for each rule and missing atom."""

FEW_RULES = 100_000
"""Up to this many rules are searched one by one; beyond, through the ranker's indexes."""

Scored = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Scores and rows of rules."""


def find_near_miss(ranker: Ranker, triple: Ids) -> NearMiss | None:
    """Return the strongest rule that would predict `triple` if one more fact held; None if there is none.

    The `MOST_RULES` strongest rules are tried whose head can be the triple. Call it where no rule fires.
    """
    return next(_near_misses(ranker, triple, _strongest(ranker, triple)), None)


def near_misses(ranker: Ranker, triple: Fact, *, top: int = 5) -> tuple[NearMiss, ...]:
    """Return the strongest rules that lack one fact only to predict `triple`, best first: one for each missing fact.

    Rules that fire are left out, so this also tells what would lift a candidate that ranks low.
    """
    checking.whole("top", top, 1, checking.MOST_KEPT)
    ids = triple_ids(ranker.vocabulary, triple)
    rows = _strongest(ranker, ids)
    rows = rows[~np.isin(rows, Firings(ranker.lister(), ids).rows)]
    by_fact: dict[OpenFact, NearMiss] = {}
    for near_miss in _near_misses(ranker, ids, rows):
        if near_miss.missing != triple:
            by_fact.setdefault(near_miss.missing, near_miss)
        if len(by_fact) == top:
            break
    return tuple(by_fact.values())


def _near_misses(ranker: Ranker, triple: Ids, rows: Rows) -> Iterator[NearMiss]:
    """Yield the rules among those at `rows`, none of which fires, that lack one fact, in their order."""
    rules = ranker.rules
    bodies = rules.bodies[rules.body[rows]]
    lengths = (bodies >= 0).sum(axis=1, dtype=np.int32)
    starts, ends, constants = body_ends(rules, rows, triple[0], triple[2])
    identity = ranker.options.object_identity
    # What h(X,Y) <= h(X,Y) and h(X,c) <= h(X,c) lack is the triple itself.
    says_itself = (lengths == 1) & (bodies[:, 0] == rules.head[rows]) & (constants == rules.body_constant[rows])
    possible = (lengths > 0) & ~says_itself
    if identity:
        possible &= starts != ends
    fails = rules.has_condition[rows]
    lengths[fails] -= 1
    for i in np.flatnonzero(fails & (ends >= 0)):  # others are at the end of some walk, none of which satisfies
        task = make_task(rules, int(rows[i]), int(starts[i]), int(ends[i]))
        fails[i] = not task.ends[task.end]
    rows, bodies, lengths, starts, ends, constants, fails = (
        column[possible] for column in (rows, bodies, lengths, starts, ends, constants, fails)
    )
    search, walk = empty_search(bodies.shape[1]), np.empty((1, bodies.shape[1] + 1), np.int32)
    first = 0
    while first < len(rows):
        rest = slice(first, None)
        nearest, missing = first_near_miss(
            ranker.ready.graph,
            bodies[rest],
            lengths[rest],
            starts[rest],
            ends[rest],
            constants[rest],
            fails[rest],
            identity,
            MOST_TRIED,
            search,
            walk,
        )
        if nearest < 0:
            return
        yield _near_miss(ranker, int(rows[first + nearest]), missing, search.nodes)
        first += nearest + 1


def _near_miss(ranker: Ranker, row: int, missing: int, nodes: NDArray[np.int32]) -> NearMiss:
    rules = ranker.rules
    rule = rules.rule(row)
    steps = rule.facts(nodes.tolist(), ranker.vocabulary, with_values=False)
    return NearMiss(
        rule=rule,
        confidence=float(ranker.confidences(np.array([row]))[0]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        facts=tuple((str(s), r, str(o)) for position, (s, r, o) in enumerate(steps) if position != missing),
        missing=steps[missing],
        position=missing,
        row=row,
    )


def _strongest(ranker: Ranker, triple: Ids) -> Rows:
    """Return the strongest rules whose head can be `triple`, best first."""
    if len(ranker.rules) <= FEW_RULES:
        scored = [_scored_by_column(ranker, triple)]
    else:
        scored = list(_scored_by_index(ranker, triple))
    scores = np.concatenate([part[0] for part in scored])
    rows = np.concatenate([part[1] for part in scored]).astype(np.int64)
    rows, scores = rows[scores > 0], scores[scores > 0]
    if len(rows) > MOST_RULES:
        best = np.argpartition(-scores, MOST_RULES)[:MOST_RULES]
        rows, scores = rows[best], scores[best]
    return rows[np.lexsort((rows, -scores))]


def _scored_by_column(ranker: Ranker, triple: Ids) -> Scored:
    subject, relation, object = triple
    rules, n_relations = ranker.rules, ranker.vocabulary.n_relations
    self_id = ranker.vocabulary.self_id
    constants = rules.head_constant
    forward, backward = rules.head == relation, rules.head == relation + n_relations
    if subject == object:
        mask = (forward | backward) & (constants == self_id)
    else:
        mask = forward & (rules.is_binary | (constants == object)) | backward & (constants == subject)
    rows = np.flatnonzero(mask)
    return to_scores(ranker.confidences(rows)), rows.astype(np.int32)


def _scored_by_index(ranker: Ranker, triple: Ids) -> Iterator[Scored]:
    """Yield the rules in question from each index. Rules that the graph never makes true are not in there."""
    subject, relation, object = triple
    index, backward = ranker.index, ranker.graph.n_relations + relation
    if subject == object:
        self_id = ranker.vocabulary.self_id
        heads = [(relation, self_id), (backward, self_id)]
    else:
        heads = [(relation, object), (backward, subject)]
        yield _trie_rules(index, relation)
    for head, constant in heads:
        for part in (index.short, index.long):
            span = _rules_of_head(part, head, constant)
            yield index.scores[part.head_codes[span]], part.head_rows[span]


def _rules_of_head(part: ShortIndex | LongIndex, head: int, constant: int) -> slice:
    """Return the rows of the index that hold the rules with a head."""
    start, end = int(part.head_offsets[head]), int(part.head_offsets[head + 1])
    position = start + int(np.searchsorted(part.head_constants[start:end], constant))
    if position == end or part.head_constants[position] != constant:
        return slice(0, 0)
    return slice(int(part.head_rule_offsets[position]), int(part.head_rule_offsets[position + 1]))


def _trie_rules(index: RuleIndex, relation: int) -> Scored:
    """Return the B rules of a relation: on each level of its trie, the nodes stand side by side."""
    trie = index.trie
    start, end = int(trie.roots[relation]), int(trie.roots[relation + 1])
    codes, rows = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    while start < end:
        codes.append(trie.codes[start:end])
        rows.append(trie.rows[start:end])
        start, end = int(trie.first_children[start]), int(trie.first_children[end - 1] + trie.n_children[end - 1])
    all_codes, ends = np.concatenate(codes), np.concatenate(rows)
    return index.scores[all_codes[all_codes >= 0]], ends[all_codes >= 0]


class Judged:
    """One query and one of its candidates, under a tuned model; `others` are known answers that are not ranked."""

    def __init__(self, lister: Ranker, reranker: TunedReranker, fired: QueryFirings, others: NDArray[np.int32]) -> None:
        self._lister, self._reranker, self._fired = lister, reranker, fired
        query = single_query(fired.entity, fired.relation, others)
        targets = np.array([fired.answer], np.int32)
        self._queries = query._replace(targets=targets, target_offsets=np.array([0, 1], np.int64))
        self._judgement = reranker.judge(lister, self._queries, 0)
        answers = self._judgement.answers
        self.rank = float(answers.better[0] + answers.equal[0] / 2 + 1) if answers.fired[0] else None
        listed = np.flatnonzero(self._judgement.lists.candidates == fired.answer)
        self._position = int(listed[0]) if len(listed) else -1

    @property
    def score(self) -> float | None:
        """The logistic of the model's score; None where the candidate is not among those that the model orders."""
        return float(logistic(self._judgement.scores)[self._position]) if self._position >= 0 else None

    @property
    def rank_other(self) -> int | None:
        """The rank of the candidate among all entities by the other model; None without one."""
        more = self._judgement.listing.more
        return None if more is None or self._position < 0 else round(math.expm1(-more[self._position, RANK_COLUMN])) + 1

    @property
    def share_other(self) -> float | None:
        """The share of the score that would be lost if the other model thought of it as of the median candidate."""
        listing = self._judgement.listing
        if listing.more is None or self._position < 0:
            return None
        more = listing.more.copy()
        more[self._position] = np.median(more, axis=0)
        without = self._reranker.score_evidence(self._lister, replace(listing, more=more), listing.lists.evidence)
        before, after = logistic(np.array([self._judgement.scores[self._position], without[self._position]]))
        return float(1 - after / before)

    def contribution(self, row: int) -> float:
        """Return the share of the score that would be lost without a rule; negative if the rule speaks against."""
        kept = self._fired.rows != row
        if self._position < 0 or kept.all():
            return 0.0
        listing = self._judgement.listing
        evidence = listing.lists.evidence.copy()
        groups = self._reranker.groups[self._fired.rows[kept]]
        evidence[self._position] = evidence_row(self._fired.scores[kept], groups, evidence.shape[1])
        without = self._reranker.score_evidence(self._lister, listing, evidence)
        before, after = logistic(np.array([self._judgement.scores[self._position], without[self._position]]))
        return float(1 - after / before)


@dataclass(frozen=True, repr=False)
class Explanation(ExplanationRecord):
    __doc__ = ExplanationRecord.__doc__

    def __repr__(self) -> str:
        best = f", best {str(self.reasons[0].rule)!r}" if self.reasons else ""
        return f"Explanation({self.triple}: score {self.score:.3f}, {self.n_reasons} rules{best})"

    def __rich__(self) -> Tree:
        return to_tree(self)

    def _repr_html_(self) -> str:
        return to_fragment(self)


def explain_triple(ranker: Ranker, dataset: Dataset, triple: Fact, *, top: int = 5, groundings: int = 3) -> Explanation:
    """Return the rules that predict `triple` (subject, relation, object), which may be known or new, true or false.

    The `top` best rules are given, each with up to `groundings` ways in which facts of the train split make it fire.
    If none fires, `near_miss` is the strongest rule that lacks one fact.
    """
    ranker.check_data(dataset)
    checking.whole("top", top, 1, checking.MOST_KEPT)
    checking.whole("groundings", groundings, 0, checking.MOST_KEPT)
    ids = triple_ids(dataset.vocabulary, triple)
    lister = ranker.lister()
    firings = Firings(lister, ids)
    others = other_answers(dataset, ranker.graph, ids)
    blocked = ranker.block_connected and ids[2] in neighbours(ranker.graph, ids[0])
    ranked, judged = _rank(ranker, firings, others, blocked)
    return Explanation(
        triple=(str(triple[0]), str(triple[1]), str(triple[2])),
        known=holding_splits(dataset, ids),
        rank=ranked[0].rank,
        rank_subject=ranked[1].rank,
        score=ranked[0].score,
        score_subject=ranked[1].score,
        aggregation=ranker.options.aggregation,
        blocked=blocked,
        n_reasons=len(firings.rows),
        reasons=tuple(_reason(ranker, firings, judged, int(row), ids, groundings) for row in firings.rows[:top]),
        near_miss=None if len(firings.rows) else find_near_miss(ranker, ids),
        rank_embedding=judged.rank_other if judged else None,
        share_embedding=judged.share_other if judged else None,
    )


class _Ranked(NamedTuple):
    """Where one query ranks the triple, and by what."""

    rank: float | None
    score: float


def _rank(
    ranker: Ranker, firings: Firings, others: tuple[NDArray[np.int32], NDArray[np.int32]], blocked: bool
) -> tuple[list[_Ranked], Judged | None]:
    """Return rank and score in both directions; and the tuned model's judgement, of the first that it gave a score."""
    ranked: list[_Ranked] = []
    judgements: list[Judged | None] = []
    for fired, known in zip((firings.of_object, firings.of_subject), others, strict=True):
        judged = None
        model = ranker.reranker if isinstance(ranker.reranker, TunedReranker) and ranker.reranker.model else None
        if model is not None and not blocked:
            judged = Judged(ranker.lister(), model, fired, known)
        rank = judged.rank if judged else fired.rank(ranker.lister(), known)
        by_model = judged.score if judged else None
        ranked.append(_Ranked(rank, firings.score(fired.rows) if by_model is None else by_model))
        judgements.append(judged)
    return ranked, next((judged for judged in judgements if judged and judged.score is not None), None)


def _reason(ranker: Ranker, firings: Firings, judged: Judged | None, row: int, triple: Ids, groundings: int) -> Reason:
    rules = ranker.rules
    contribution, breaks_ties = (judged.contribution(row), False) if judged else firings.contribution(row)
    return Reason(
        rule=rules.rule(row),
        confidence=float(ranker.confidences(np.array([row]))[0]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        exact=bool(rules.exact[row]),
        contribution=contribution,
        breaks_ties=breaks_ties,
        groundings=find_groundings(ranker, row, triple, groundings),
        row=row,
    )
