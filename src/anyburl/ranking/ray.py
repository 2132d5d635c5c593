"""The cores of a Ray cluster: the same answers, in the same order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from anyburl import __version__
from anyburl.base.cluster import Crew
from anyburl.base.errors import RunError
from anyburl.base.machine import ITEMS_AHEAD
from anyburl.ranking.arrays import AnswerArrays, FiringArrays, QueryArrays
from anyburl.ranking.options import Aggregation, Maximum
from anyburl.ranking.queries import single_query, take_queries
from anyburl.ranking.ranker import QUERIES_AT_A_TIME, AnswerRequest, LocalBackend, Progress, ReadyRules

CHUNKS = 16  # for each worker, so that none waits long for the last one
MOST_QUERIES = 1024  # in a chunk
LOSSES = 10  # of workers, one after the other without an answer, after which it is given up


class RankWorker:
    """What runs on one core, over arrays that are mapped from the object store."""

    def __init__(self, ready: ReadyRules) -> None:
        self._backend = LocalBackend(ready, threads=1)
        query = single_query(0, 0, np.empty(0, np.int32))
        self._backend.answer(query, AnswerRequest(Maximum("max"), top_k=1))  # compiles, or loads, the kernels
        self._work: tuple[int, Callable[[Any], Any]] | None = None

    def ready(self) -> str:
        """Return the version, once kernels are compiled and memory is there."""
        return __version__

    def answer(self, queries: QueryArrays, request: AnswerRequest) -> AnswerArrays:
        """Answer some queries; see `Backend.answer`."""
        # Copies can be written to, as those of local queries: kernels are compiled for writable arrays.
        own = queries._replace(**{name: column.copy() for name, column in queries._asdict().items()})
        return self._backend.answer(own, replace(request, groups=request.groups.copy()))

    def do(self, number: int, work: Callable[[Any], Any], part: Any) -> Any:
        """Run the work with this number on a part; the worker keeps what the work needs from part to part."""
        if self._work is None or self._work[0] != number:
            self._work = number, work
        return self._work[1](part)


class RayBackend:
    """Leaves queries to the workers of a Ray cluster, at `address` or on this machine; a few are answered here.

    `say` is called when a worker is lost; its questions are asked again. `close` ends the workers.
    """

    def __init__(
        self,
        ready: ReadyRules,
        threads: int | None = None,
        address: str | None = None,
        say: Callable[[str], None] = lambda note: None,
    ) -> None:
        self._here = LocalBackend(ready, threads)
        self.threads, self.at_once = self._here.threads, 1
        self._say = say
        self._n_works = 0
        self._crew = Crew(address, threads)
        try:
            self._crew.start(RankWorker, self._crew.put(ready))
        except BaseException:
            self.close()
            raise

    def answer(self, queries: QueryArrays, request: AnswerRequest, progress: Progress | None = None) -> AnswerArrays:
        n_queries = len(queries.entities)
        if n_queries <= QUERIES_AT_A_TIME:
            return self._here.answer(queries, request, progress)
        size = min(max(QUERIES_AT_A_TIME, n_queries // (CHUNKS * len(self._crew.workers) or 1)), MOST_QUERIES)
        shared = self._crew.put(request)

        def ask(worker: Any, start: int) -> Any:
            chunk = take_queries(queries, np.arange(start, min(start + size, n_queries)))
            return worker.answer.remote(chunk, shared)

        answered: list[AnswerArrays] = []
        for answers in self._ask_all(ask, range(0, n_queries, size)):
            answered.append(answers)
            if progress:
                progress(len(answers.n_best))
        return AnswerArrays(*(np.concatenate(columns) for columns in zip(*answered, strict=True)))

    def fire(self, entity: int, relation: int, aggregation: Aggregation) -> FiringArrays:
        return self._here.fire(entity, relation, aggregation)

    def map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        shared = self._crew.put(work)
        self._n_works += 1
        number = self._n_works
        yield from self._ask_all(lambda worker, part: worker.do.remote(number, shared, part), parts)

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        self._crew.close()

    def _ask_all(self, ask: Callable[[Any, Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        """Yield what workers make of each part, in order; each has one at a time, and few run ahead of the others."""
        coming, again, results = enumerate(parts), deque[tuple[int, Any]](), dict[int, Any]()
        calls, under_way = dict[Any, int](), dict[int, tuple[int, Any]]()
        n_taken, n_given, n_lost, is_last = 0, 0, 0, False
        while under_way or again or not is_last:
            for number, worker in self._crew.workers.items():
                if number in under_way:
                    continue
                if not again and not is_last and n_taken - n_given < ITEMS_AHEAD * len(self._crew.workers):
                    again.extend(islice(coming, 1))
                    is_last = not again
                    n_taken += not is_last
                if again:
                    under_way[number] = again.popleft()
                    calls[ask(worker, under_way[number][1])] = number
            done: dict[int, Any] = {}
            if calls:
                self._crew.collect(calls, done, at_least=1)
            for number, result in done.items():
                n_lost = 0
                results[under_way.pop(number)[0]] = result
            while n_given in results:
                yield results.pop(n_given)
                n_given += 1
            for number in under_way.keys() - self._crew.workers.keys():
                n_lost += 1
                again.appendleft(under_way.pop(number))
                self._say(f"lost 1 Ray worker: its questions are asked again, {len(self._crew.workers)} left")
            if n_lost >= LOSSES:
                raise RunError(f"{n_lost} Ray workers died without an answer: give them more memory")
            self._crew.refresh()
            if not self._crew.workers:
                self._crew.wait_for_workers()
