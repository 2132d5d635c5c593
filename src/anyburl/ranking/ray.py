"""Answering queries on the cores of a Ray cluster: the same answers, in the same order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.cluster import Crew
from anyburl.errors import RunError
from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.arrays import AnswerArrays, QueryArrays, RuleIndex
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import single_query, take_queries
from anyburl.ranking.ranker import NO_GROUPS, QUERIES_AT_A_TIME, Ranker, _Buffers

CHUNKS = 16  # for each worker, so that none waits long for the last one
MOST_QUERIES = 1024  # in a chunk
LOSSES = 10  # of workers, one after the other without an answer, after which it is given up


class RankerParts(NamedTuple):
    """What kernels need to answer queries: no rules as such, and no labels."""

    graph: GraphArrays
    rules: RuleIndex
    n_rules: int
    longest: int
    options: RankOptions
    block_connected: bool


class _PartRanker(Ranker):
    """A ranker on one core, over arrays that are mapped from the object store."""

    def __init__(self, parts: RankerParts) -> None:
        self.graph, self.index, n_rules, self.longest, self.options, self.block_connected = parts
        self.threads = 1
        self._buffers = SimpleQueue()
        self._buffers.put(_Buffers(self.graph.n_entities, n_rules, self.longest))


class RankWorker:
    """What runs on one core."""

    def __init__(self, parts: RankerParts) -> None:
        self._ranker = _PartRanker(parts)
        self._ranker.answer(single_query(0, 0, np.empty(0, np.int32)), top_k=1)  # compiles, or loads, the kernels

    def ready(self) -> str:
        """Return the version, once kernels are compiled and memory is there."""
        return __version__

    def answer(self, queries: QueryArrays, top_k: int, groups: NDArray[np.uint8], aggregation: str) -> AnswerArrays:
        """Answer some queries; see `Ranker.answer`."""
        # Copies can be written to, as where queries are asked at home: kernels are compiled for that.
        own = queries._replace(**{name: column.copy() for name, column in queries._asdict().items()})
        return self._ranker.with_aggregation(aggregation).answer(own, top_k=top_k, groups=groups.copy())


class RayRanker(Ranker):
    """A ranker that leaves queries to the workers of a Ray cluster, at `address` or on this machine.

    `say` is told which workers were lost; what they were asked is asked again. `close` ends the workers.
    """

    def __init__(
        self, base: Ranker, address: str | None = None, say: Callable[[str], None] = lambda note: None
    ) -> None:
        self.__dict__.update(base.__dict__)
        self._say = say
        self._crew = Crew(address, base.options.threads)
        parts = RankerParts(
            base.graph,
            base.index,
            len(base.rules),
            base.longest,
            base.options,
            base.block_connected,
        )
        try:
            self._crew.start(RankWorker, self._crew.put(parts))
        except BaseException:
            self.close()
            raise

    def answer(
        self,
        queries: QueryArrays,
        *,
        top_k: int = 0,
        progress: Callable[[int], None] | None = None,
        groups: NDArray[np.uint8] = NO_GROUPS,
    ) -> AnswerArrays:
        """Rank the targets of `queries` and keep the best candidates, as `Ranker.answer` does; a few queries here."""
        n_queries = len(queries.entities)
        if n_queries <= QUERIES_AT_A_TIME:
            return super().answer(queries, top_k=top_k, progress=progress, groups=groups)
        size = min(max(QUERIES_AT_A_TIME, n_queries // (CHUNKS * len(self._crew.workers) or 1)), MOST_QUERIES)
        shared = self._crew.put(groups)

        def ask(worker: Any, start: int) -> Any:
            chunk = take_queries(queries, np.arange(start, min(start + size, n_queries)))
            return worker.answer.remote(chunk, top_k, shared, self.fixed_aggregation)

        parts = self._ask_all(ask, range(0, n_queries, size), progress)
        return AnswerArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def _ask_all(
        self, ask: Callable[[Any, int], Any], starts: range, progress: Callable[[int], None] | None
    ) -> list[AnswerArrays]:
        """Ask every chunk, each worker one at a time; return the answers in the order of `starts`."""
        waiting, parts = deque(starts), dict[int, AnswerArrays]()
        calls, asked = dict[Any, int](), dict[int, int]()
        n_lost = 0
        while waiting or calls:
            for number, worker in self._crew.workers.items():
                if waiting and number not in asked:
                    asked[number] = waiting.popleft()
                    calls[ask(worker, asked[number])] = number
            found: dict[int, AnswerArrays] = {}
            if calls:
                self._crew.collect(calls, found, at_least=1)
            for number, answers in found.items():
                n_lost = 0
                parts[asked.pop(number)] = answers
                if progress:
                    progress(len(answers.n_best))
            for number in asked.keys() - self._crew.workers.keys():
                n_lost += 1
                waiting.appendleft(asked.pop(number))
                self._say(f"lost 1 Ray worker: its questions are asked again, {len(self._crew.workers)} left")
            if n_lost >= LOSSES:
                raise RunError(f"{n_lost} Ray workers were lost without an answer: give them more memory")
            self._crew.refresh()
            if not self._crew.workers:
                self._crew.wait_for_workers()
        return [parts[start] for start in starts]

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        self._crew.close()
