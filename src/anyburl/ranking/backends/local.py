"""The threads of this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.cores import available_cores
from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import (
    AnswerArrays,
    FiringArrays,
    Protocol,
    QueryArrays,
    Workspace,
    empty_answers,
    empty_candidates,
    empty_firings,
    empty_walk,
)
from anyburl.ranking.backends.base import NO_GROUPS, PARTS_AHEAD, QUERIES_AT_A_TIME, Progress, Wanted
from anyburl.ranking.kernel import answer
from anyburl.ranking.kernel_evidence import n_columns
from anyburl.ranking.queries import single_query
from anyburl.ranking.ready import ReadyRules

ROOM = 1 << 18  # for the firings of one query; it grows where that is too little


class LocalBackend:
    """Answers queries on `threads` threads; buffers are made when they are first needed."""

    def __init__(self, ready: ReadyRules, threads: int | None = None) -> None:
        self.threads = threads or available_cores()
        self._ready = ready
        self._spare: SimpleQueue[Workspace | None] = SimpleQueue()
        for _ in range(self.threads):
            self._spare.put(None)

    def answer(self, queries: QueryArrays, wanted: Wanted, progress: Progress | None = None) -> AnswerArrays:
        n_queries = len(queries.entities)
        groups = wanted.groups
        out = empty_answers(n_queries, len(queries.targets), wanted.top_k, n_columns(groups))
        protocol = self._ready.protocol(wanted.aggregation, wanted.top_k, keep_known=wanted.keep_known)
        batches = range(0, n_queries, QUERIES_AT_A_TIME)
        if len(batches) <= 1 or self.threads == 1:
            for first in batches:
                self._run(queries, first, protocol, groups, out)
                if progress:
                    progress(min(QUERIES_AT_A_TIME, n_queries - first))
            return out
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for done in pool.map(lambda first: self._run(queries, first, protocol, groups, out), batches):
                    if progress:
                        progress(done)
            except BaseException:  # Ctrl-C: what is under way ends, what is waiting is dropped
                pool.shutdown(cancel_futures=True)
                raise
        return out

    def fire(self, entity: int, relation: int, aggregation: Aggregation) -> FiringArrays:
        ready, space = self._ready, self._take()
        query, out = single_query(entity, relation, np.empty(0, np.int32)), empty_answers(1, 0, 0)
        protocol = self._ready.protocol(aggregation, 0, only_fires=True)
        try:
            while True:
                place, n = answer(ready.graph, ready.index, query, 0, 1, protocol, space, NO_GROUPS, out)
                if place == 1:
                    found = {name: column[:n].copy() for name, column in space.firings._asdict().items()}
                    return space.firings._replace(**found)
                space = space._replace(firings=empty_firings(2 * n))
        finally:
            self._spare.put(space)

    def map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        waiting: deque[Future[Any]] = deque()
        pool = ThreadPoolExecutor(self.threads)
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) > PARTS_AHEAD * self.threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # Ctrl-C: what is under way ends, what is waiting is dropped
            pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """Nothing was started."""

    def _take(self) -> Workspace:
        n_entities, longest = self._ready.graph.n_entities, self._ready.longest
        return self._spare.get() or Workspace(
            empty_walk(n_entities, longest), empty_candidates(n_entities), empty_firings(ROOM)
        )

    def _run(
        self, queries: QueryArrays, first: int, protocol: Protocol, groups: NDArray[np.uint8], out: AnswerArrays
    ) -> int:
        """Answer one batch, with more room for firings where a query needs it; return how many queries there were."""
        ready, space = self._ready, self._take()
        try:
            last = min(first + QUERIES_AT_A_TIME, len(queries.entities))
            place = first
            while place < last:
                place, needed = answer(ready.graph, ready.index, queries, place, last, protocol, space, groups, out)
                if needed:
                    space = space._replace(firings=empty_firings(2 * needed))
            return last - first
        finally:
            self._spare.put(space)
