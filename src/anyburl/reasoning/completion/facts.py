"""`FactColumns`: proposed facts as columns of ids, with their scores and rules; merged, cut to the best, and explained.

`merge_directions` keeps a fact that both its questions found once, with its higher score; `best_of_each` and
`best_by_relation` choose the best facts of a relation, subject or question; `reasons_of` lists the facts behind each.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.writing import temporary_folder
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.kernel import FactArrays
from anyburl.reasoning.explanation.kernel import empty_search, find_first_walks
from anyburl.reasoning.explanation.rule_examples import body_ends, find_groundings

TRIPLES = pl.List(pl.List(pl.String))


@dataclass(frozen=True)
class FactColumns:
    """Facts that rules imply, one row each."""

    triples: NDArray[np.int32]  # (rows, 3): subject, relation, object
    scores: NDArray[np.float64]
    rules: NDArray[np.int32]  # the best rule, a row of the rule set
    n_rules: NDArray[np.int32]  # how many rules agree
    contexts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))  # see `Judge`; empty: unknown
    listed: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # by rules, where a model gives scores

    @classmethod
    def of_answers(cls, found: FactArrays, scores: NDArray[np.float64], n_relations: int) -> Self:
        """Return answers (entity, directed relation, candidate) as facts."""
        backward = found.relations >= n_relations
        subjects = np.where(backward, found.candidates, found.entities)
        objects = np.where(backward, found.entities, found.candidates)
        triples = np.column_stack([subjects, found.relations % n_relations, objects]).astype(np.int32)
        return cls(triples, scores, found.rules, found.n_rules)

    @classmethod
    def empty(cls) -> Self:
        """Return no facts."""
        narrow = np.empty(0, np.int32)
        return cls(np.empty((0, 3), np.int32), np.empty(0), narrow, narrow)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the facts of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Self:
        """Return some of the facts, by a mask or by their rows."""
        columns = (getattr(self, name) for name in _COLUMNS)
        return type(self)(*(column[rows] if len(column) == len(self) else column for column in columns))

    def __len__(self) -> int:
        return len(self.scores)


_COLUMNS = tuple(one.name for one in fields(FactColumns))


def collected(parts: Iterable[FactColumns], enough: int, seconds: float = math.inf) -> Iterator[FactColumns]:
    """Put small parts together, without waiting for more once there are enough facts, or for so many seconds."""
    waiting, n_waiting, began = list[FactColumns](), 0, time.monotonic()
    for facts in parts:
        if len(facts):
            waiting.append(facts)
            n_waiting += len(facts)
        if n_waiting >= enough or (waiting and time.monotonic() - began > seconds):
            yield FactColumns.concat(waiting)
            waiting, n_waiting, began = [], 0, time.monotonic()
    if waiting:
        yield FactColumns.concat(waiting)


MOST_FACTS = 1 << 22  # in memory; more of them go to temporary files
FACTS_AT_A_TIME = 1 << 18


def merge_directions(parts: Iterator[FactColumns]) -> Iterator[FactColumns]:
    """Yield every fact once, with the higher of its scores; all facts of a subject come together.

    If the search is interrupted, the facts so far are yielded before the interrupt is raised.
    """
    with temporary_folder() as folder:
        files, waiting, interrupt = list[Path](), list[FactColumns](), None
        try:
            for facts in parts:
                waiting.append(facts)
                if sum(map(len, waiting)) > MOST_FACTS:
                    files.append(_spill(waiting, folder, len(files)))
                    waiting = []
        except KeyboardInterrupt as raised:
            interrupt = raised
        if files:
            files.append(_spill(waiting, folder, len(files)))
            yield from _merge_files(files)
        else:
            yield from _by_subject(_best_of_each(FactColumns.concat(waiting)))
    if interrupt is not None:
        raise interrupt


def _merge_files(files: list[Path]) -> Iterator[FactColumns]:
    for first, last in _ranges(files):
        stored = pl.scan_parquet(files).filter(pl.col("subject").is_between(first, last)).collect()
        yield from _by_subject(_best_of_each(_columns(stored)))


def _best_of_each(facts: FactColumns) -> FactColumns:
    """Return each fact with its highest score, of equals with the most rules; sorted by the fact."""
    subjects, relations, objects = facts.triples.T
    order = np.lexsort((facts.rules, -facts.n_rules, -facts.scores, objects, relations, subjects))
    triples = facts.triples[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return facts.take(order[is_first])


def by_best_rule(ranker: Ranker, facts: FactColumns) -> NDArray[np.float64]:
    """Return the score of the best rule of each fact, 0 where there is none."""
    return np.where(facts.rules >= 0, ranker.confidences(np.maximum(facts.rules, 0)), 0.0)


def _by_subject(facts: FactColumns) -> Iterator[FactColumns]:
    """Cut facts that are sorted by subject into parts of whole subjects."""
    start, subjects = 0, facts.triples[:, 0]
    while start < len(facts):
        last = subjects[min(start + FACTS_AT_A_TIME, len(facts)) - 1]
        stop = int(np.searchsorted(subjects, last, "right"))
        yield facts.take(np.arange(start, stop))
        start = stop


def _spill(parts: list[FactColumns], folder: Path, number: int) -> Path:
    """Write facts to a temporary file."""
    facts, path = _best_of_each(FactColumns.concat(parts)), folder / f"{number}.parquet"
    subjects, relations, objects = facts.triples.T
    columns = {"subject": subjects, "relation": relations, "object": objects, "score": facts.scores}
    frame = pl.DataFrame({**columns, "rule": facts.rules, "rules": facts.n_rules})
    frame.write_parquet(path, compression="lz4", row_group_size=FACTS_AT_A_TIME)
    return path


def _columns(frame: pl.DataFrame) -> FactColumns:
    triples = frame.select("subject", "relation", "object").to_numpy().astype(np.int32)
    return FactColumns(triples, *(frame[name].to_numpy() for name in ("score", "rule", "rules")))


def _ranges(files: list[Path]) -> Iterator[tuple[int, int]]:
    """Return ranges of subjects that have about as many facts as there may be in memory."""
    counts = pl.scan_parquet(files).group_by("subject").len().sort("subject").collect()
    subjects, groups = counts["subject"].to_numpy(), np.cumsum(counts["len"].to_numpy()) // MOST_FACTS
    for group in np.unique(groups):
        within = subjects[groups == group]
        yield int(within[0]), int(within[-1])


LEVELS = (0.9, 0.7, 0.5, 0.3, 0.15, 0.05, 0.0)  # scores from which on facts are looked for, one after the other
SELECTED_AT_A_TIME = 1 << 20

Find = Callable[[NDArray[np.float64]], Iterator[FactColumns]]
"""Yields the facts with at least these scores, by relation."""


def best_of_each(facts: FactColumns, groups: NDArray[np.int64], top: int) -> FactColumns:
    """Return the `top` best facts of each group, in their order; of equals, those with more rules, then smaller ids."""
    subjects, relations, objects = facts.triples.T
    order = np.lexsort((objects, relations, subjects, -facts.n_rules, -facts.scores, groups))
    sorted_groups = groups[order]
    starts = np.searchsorted(sorted_groups, sorted_groups)
    return facts.take(np.sort(order[np.arange(len(order)) - starts < top]))


def groups_of(facts: FactColumns, per: str, n_relations: int) -> NDArray[np.int64]:
    """Return a number for the relation, the subject or the question of each fact."""
    subjects, relations = facts.triples[:, 0].astype(np.int64), facts.triples[:, 1].astype(np.int64)
    return {"relation": relations, "subject": subjects, "question": subjects * n_relations + relations}[per]


def best_by_relation(find: Find, least: NDArray[np.float64], top: int, *, in_levels: bool) -> Iterator[FactColumns]:
    """Yield the `top` best facts of each relation, those with at least the `least` score.

    Where high scores are found without looking at the lower ones, `in_levels`, they are looked for first; relations
    with enough of them are done.
    """
    for level in LEVELS if in_levels else LEVELS[-1:]:
        floors = np.where(np.isfinite(least), np.maximum(least, level), np.inf)
        best = _keep_best(find(floors), top)
        counts = np.bincount(best.triples[:, 1], minlength=len(least))
        is_done = np.isfinite(least) & ((counts >= top) | (floors == least))
        yield best.take(is_done[best.triples[:, 1]])
        least = np.where(is_done, np.inf, least)
        if not np.isfinite(least).any():
            return


def _keep_best(parts: Iterator[FactColumns], top: int) -> FactColumns:
    """Return the best facts of each relation; no more are kept at any time than a few for each."""
    kept, n_kept = list[FactColumns](), 0
    for facts in parts:
        kept.append(facts)
        n_kept += len(facts)
        if n_kept > SELECTED_AT_A_TIME:
            kept = [_cut(kept, top)]
            n_kept = len(kept[0]) // 2  # as many again before they are cut once more
    return _cut(kept, top)


def _cut(parts: list[FactColumns], top: int) -> FactColumns:
    facts = FactColumns.concat(parts)
    return best_of_each(facts, groups_of(facts, "relation", 0), top)


def reasons_of(ranker: Ranker, facts: FactColumns) -> pl.Series:
    """Return for each fact the triples (subject, relation, object) that make its best rule predict it: those of the
    first grounding.
    """
    rules, n_relations = ranker.rules, ranker.graph.n_relations
    bodies = np.ascontiguousarray(rules.bodies[rules.body[facts.rules]])
    lengths = (bodies >= 0).sum(axis=1).astype(np.int32)
    lengths[conditional := rules.has_condition[facts.rules]] = 0
    walks = _walks(ranker, facts, bodies, lengths)
    steps = np.arange(bodies.shape[1])[None, :] < lengths[:, None]
    rows, positions = np.nonzero(steps)
    here, there, directed = walks[rows, positions], walks[rows, positions + 1], bodies[rows, positions]
    self_id = rules.vocabulary.self_id
    here, there = np.where(here == self_id, there, here), np.where(there == self_id, here, there)
    backward = directed >= n_relations
    subjects, objects = np.where(backward, there, here), np.where(backward, here, there)
    triples = np.column_stack([subjects, directed % n_relations, objects])
    frame = rules.vocabulary.decode_triples(triples).with_columns(fact=pl.Series(rows))
    reasons = frame.group_by("fact", maintain_order=True).agg(facts=pl.concat_list("subject", "relation", "object"))
    every = pl.DataFrame({"fact": np.arange(len(facts))}).join(reasons, on="fact", how="left", maintain_order="left")
    listed = every["facts"].fill_null(pl.lit([], dtype=TRIPLES)).cast(TRIPLES)
    if not conditional.any():
        return listed
    per_fact = listed.to_list()
    for row in np.flatnonzero(conditional):
        one = find_groundings(ranker, int(facts.rules[row]), tuple(facts.triples[row].tolist()), 1)
        per_fact[row] = [list(fact) for fact in one[0]] if one else []
    return pl.Series(listed.name, per_fact, dtype=TRIPLES)


def _walks(
    ranker: Ranker, facts: FactColumns, bodies: NDArray[np.int32], lengths: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the entities along each body, from the head's variable on."""
    subjects, _, objects = facts.triples.T
    starts, ends, avoided = body_ends(ranker.rules, facts.rules, subjects, objects)
    walks = np.full((len(facts), bodies.shape[1] + 1), -1, np.int32)
    search = empty_search(bodies.shape[1])
    identity = ranker.options.object_identity
    find_first_walks(ranker.ready.graph, bodies, lengths, starts, ends, avoided, identity, search, walks)
    return walks
