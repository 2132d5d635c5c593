"""The cores of a cluster: Ray workers that divide bodies by hash, so that none repeats the work of another.

Workers share nothing but the graph. With seconds, each owns its part of the bodies. With a path budget, all of them
find the same bodies, and the driver hands those out, piece by piece. It knows what they have harvested, so losing or
gaining a worker costs no more than the current span: bodies are divided again, and every worker learns what is known.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.cluster import Crew
from anyburl.base.errors import RunError, counted
from anyburl.bodies.paths import Harvested, join_harvested
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.actor import Delivery, Division, RayWorker, SpanOrder, SpanReply, unpack_rules
from anyburl.learning.engine import CoreSpan, Stoppable, search_arrays
from anyburl.learning.options import LearnOptions
from anyburl.learning.policy import ProfileSpan
from anyburl.learning.source import ALL_SHARDS, N_SHARDS, Handout, Listed, divide_shards, is_fruitless
from anyburl.learning.store import Earlier, known_keys
from anyburl.learning.threads import warm_up_learning
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile

ROUNDS = 5  # of a span with a path budget: after losing workers in this many, a run gives up


@dataclass
class _WorkerResults:
    """The results of one worker for a span; incomplete as long as there is no reply."""

    rules: list[CoreSpan] = field(default_factory=list)
    reply: SpanReply | None = None

    def add(self, delivery: Delivery, vocabulary: Vocabulary) -> None:
        """Copy rules out of the object store."""
        self.rules += [CoreSpan(part.profile, rules=[unpack_rules(part, vocabulary)]) for part in delivery.rules]
        self.reply = delivery.reply


class RayEngine(Stoppable):
    """Runs spans on the workers of a Ray cluster, which may come and go."""

    def __init__(self, table: TripleTable, options: LearnOptions) -> None:
        super().__init__()
        self._vocabulary, self._options = table.vocabulary, options
        self._notes: list[str] = []
        self._harvested: list[Harvested] = []  # all there are
        self._sweeping: set[PathProfile] = set()
        self._exhausted: set[PathProfile] = set()
        self._listed: dict[PathProfile, Listed] = {}  # how far all workers have come
        self._n_sent = 0  # of the harvested bodies: how many were sent to workers
        self._new_harvested: list[Harvested] = []  # those that `take_harvested` has not returned yet
        self._divided = ALL_SHARDS  # the shards that were last divided or handed out,
        self._owned: dict[int, NDArray[np.bool_]] = {}  # and which of them each worker has
        search = search_arrays(table, options)
        warm_up_learning(options, search.graph.n_relations)  # so that workers on this machine find compiled kernels
        self._crew = Crew(options.address, options.threads)
        try:
            stored = self._crew.put(search)
            self.graph = self._crew.get(stored).graph
            self._crew.start(RayWorker, stored, options)
        except BaseException:
            self._crew.close()
            raise

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return max(len(self._crew.workers), 1)

    def run_span(self, number: int, allocation: Sequence[PathProfile], deadline: float | None) -> list[CoreSpan]:
        """Run one time span; see `Engine`. With a path budget, the share of a lost worker is done by others."""
        results: list[_WorkerResults] = []
        missing = ALL_SHARDS
        for _ in range(ROUNDS):
            self._welcome()
            seconds = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            order = SpanOrder(number, tuple(allocation), seconds, frozenset(self._sweeping), self.floor)
            by_worker = self._run(order, missing)
            results += by_worker.values()
            for worker in by_worker:
                missing = missing & ~self._owned[worker]
            if deadline is not None or self.stopped or not missing.any():
                return self._take(results, is_whole=not missing.any())
        raise RunError(
            f"Ray workers were lost {ROUNDS} times in span {number}: give them more memory, then resume the run"
        )

    def _welcome(self) -> None:
        """Take in workers that have started since the last span; if none is left, wait for one."""
        n_before = len(self._crew.workers)
        self._crew.refresh()
        if not self._crew.workers:
            self._crew.wait_for_workers(self._stop.is_set)
        n_now = len(self._crew.workers)
        if n_now > n_before:
            self._notes.append(f"{counted(n_now - n_before, 'Ray worker')} joined, {n_now} in all")

    def _run(self, order: SpanOrder, shards: NDArray[np.bool_]) -> dict[int, _WorkerResults]:
        """Run a span on all workers, each for its part of `shards`; return the results of those that were not lost."""
        workers = dict(self._crew.workers)
        divisions, known = self._divide(shards), self._news()
        handout = Handout(shards, len(workers))
        calls = {
            worker.start_span.remote(order, number, divisions.get(number), known): number
            for number, worker in workers.items()
        }
        deliveries: dict[int, Delivery] = {}
        results = {number: _WorkerResults() for number in workers}
        has_passed_on = False
        while calls or deliveries:
            try:
                if calls:
                    self._crew.collect(calls, deliveries, at_least=1)
                for number in list(deliveries):
                    results[number].add(deliveries[number], self._vocabulary)
                    delivery = deliveries.pop(number)
                    if delivery.reply is None:
                        piece = self._hand_out(handout, number) if delivery.wants_piece else None
                        calls[workers[number].fetch.remote(piece)] = number
            except KeyboardInterrupt:
                if self.stopped:
                    raise
                self.stop()  # and keep what the workers have found
            if self.stopped and not has_passed_on:
                has_passed_on = True
                for number in calls.values():
                    workers[number].stop.remote()
        whole = {number: one for number, one in results.items() if one.reply is not None}
        if n_lost := len(workers) - len(whole):
            cost = "its share of the span is done again" if order.seconds is None else "its share of the span is lost"
            self._notes.append(
                f"lost {counted(n_lost, 'Ray worker')} in span {order.number}: {cost}, {len(whole)} left"
            )
        return whole

    def _divide(self, shards: NDArray[np.bool_]) -> dict[int, Division]:
        """Divide `shards` between the workers, unless that is done; with a path budget, no worker owns any yet."""
        numbers = sorted(self._crew.workers)
        is_new = shards is not self._divided or self._owned.keys() != set(numbers)
        hands_out = self._options.seconds is None
        if hands_out or not numbers:
            self._owned = {number: np.zeros(N_SHARDS, np.bool_) for number in numbers}
        elif is_new:
            self._owned = dict(zip(numbers, divide_shards(shards, len(numbers)), strict=True))
        if not is_new:
            return {}
        self._divided, self._n_sent = shards, 0
        listed = {profile: progress.done for profile, progress in self._listed.items()}
        finished = frozenset(self._exhausted)
        return {
            number: Division(None if hands_out else owned, listed, finished) for number, owned in self._owned.items()
        }

    def _news(self) -> Any:
        """Return the harvested bodies that workers do not know of: all, after a division; later, with seconds, none,
        since each knows its own.
        """
        if self._n_sent and self._options.seconds is not None:
            return None
        news = join_harvested(self._harvested[self._n_sent :])
        if not self._n_sent:
            self._harvested = [news]
        self._n_sent = len(self._harvested)
        return self._crew.put(news)

    def _hand_out(self, handout: Handout, number: int) -> NDArray[np.int64]:
        """Return more shards for a worker, and note that it has them."""
        piece = handout.next_piece()
        self._owned[number][piece] = True
        return piece

    def _take(self, results: Sequence[_WorkerResults], *, is_whole: bool) -> list[CoreSpan]:
        """Record what was found, and copy it out of the object store."""
        with_seconds = self._options.seconds is not None
        cores: list[CoreSpan] = []
        replies = [one.reply for one in results if one.reply is not None]
        for position, reply in enumerate(replies):
            keys, counts = reply.harvested
            self._harvested.append((keys.copy(), counts.copy()))
            self._new_harvested.append(self._harvested[-1])
            counts_paths = with_seconds or position == 0  # with a path budget, all have sampled the same
            cores += reply.cores if counts_paths else map(_without_paths, reply.cores)
        if is_whole:
            self._exhausted |= frozenset.intersection(*(reply.exhausted for reply in replies))
            self._listed = dict(_listed_by_all(replies))
        return [*cores, *(rules for one in results for rules in one.rules)]

    def after_span(self, entries: Sequence[ProfileSpan]) -> None:
        """Switch saturated profiles from sampling to sweeping, starting with the next span."""
        self._sweeping |= {
            entry.profile for entry in entries if is_fruitless(entry.attempts, entry.paths, entry.entered)
        }

    def exhausted(self) -> set[PathProfile]:
        """Return the profiles that have no body left."""
        return set(self._exhausted)

    def listed(self) -> dict[PathProfile, Listed]:
        """Return how far lists of bodies have come; see `Engine`."""
        return {profile: progress for profile, progress in self._listed.items() if profile not in self._exhausted}

    def take_harvested(self) -> Harvested:
        """Return the bodies harvested since the last call."""
        news, self._new_harvested = self._new_harvested, []
        return join_harvested(news)

    def go_on(self, rules: RuleSet, earlier: Earlier) -> None:
        """Go on where an earlier run ended; see `Engine`."""
        known = known_keys(self.graph, rules, self._options)
        self._harvested.append((earlier.keys, np.zeros(len(earlier.keys), np.int32)))
        self._harvested += [(keys, counts.astype(np.int32)) for keys, counts in known]
        self._listed = {profile: Listed(done, 0) for profile, done in earlier.listed.items()}
        self._sweeping |= earlier.listed.keys()
        self._exhausted |= earlier.finished
        self._owned = {}

    def take_notes(self) -> list[str]:
        """Return which workers were lost and which have joined since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """Stop the workers, and Ray if it was started here."""
        self._crew.close()


def _listed_by_all(replies: Sequence[SpanReply]) -> Iterator[tuple[PathProfile, Listed]]:
    """Yield how far the lists of bodies have come: as far as the last of the workers, if all of them list."""
    for profile in replies[0].listed:
        positions = [progress for reply in replies if (progress := reply.listed[profile]) is not None]
        if len(positions) == len(replies):
            yield profile, min(positions)


def _without_paths(core: CoreSpan) -> CoreSpan:
    """Return what was harvested, but not what was met on paths that another worker reports."""
    return replace(core, attempts=0, paths=0, entered=0, known_rules=0)
