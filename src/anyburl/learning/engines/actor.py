"""What runs on one core of a Ray cluster: a worker with its own share of the bodies, and the messages it exchanges."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.bodies.seen import Harvested, SeenBodies
from anyburl.learning.engines.base import CoreSpan
from anyburl.learning.engines.parcels import Outbox, PackedRules
from anyburl.learning.engines.search import SearchArrays
from anyburl.learning.engines.warmup import warm_up
from anyburl.learning.engines.worker import Worker
from anyburl.learning.options import PATHS_PER_CORE, LearnOptions
from anyburl.learning.share import Share, shards_of
from anyburl.learning.source import BodySource, Listed
from anyburl.paths.profile import PathProfile
from anyburl.triples.vocabulary import Vocabulary


@dataclass(frozen=True)
class SpanOrder:
    """The order to run a time span; without seconds, it has a path budget."""

    number: int
    allocation: tuple[PathProfile, ...]
    seconds: float | None
    sweeping: frozenset[PathProfile]  # profiles whose bodies are listed from now on
    floor: float  # support x confidence of the rules that are wanted


@dataclass(frozen=True)
class Division:
    """The bodies that one worker owns from now on, how far each profile was listed before, and which are finished.

    With a path budget, every worker finds all bodies (`owned` is None), and harvests those that are handed out to it.
    """

    owned: NDArray[np.bool_] | None
    listed: Mapping[PathProfile, int]
    finished: frozenset[PathProfile]


@dataclass(frozen=True)
class SpanReply:
    """What one worker found in a span, besides the rules."""

    cores: tuple[CoreSpan, ...]
    harvested: Harvested
    exhausted: frozenset[PathProfile]
    listed: Mapping[PathProfile, Listed | None]


@dataclass(frozen=True)
class Delivery:
    """Rules found since the last delivery; with the last one of a span, what else is to be told."""

    rules: list[PackedRules]
    reply: SpanReply | None
    wants_piece: bool  # of the bodies, to harvest them next


class RayWorker:
    """One core with its share of the bodies. Rules are fetched while a span runs; `stop` may be called at any time."""

    def __init__(self, search: SearchArrays, options: LearnOptions) -> None:
        self._search, self._options = search, options
        n_relations = search.graph.n_relations
        warm_up(options, n_relations)
        unnamed = Vocabulary.unnamed(search.graph.n_entities, n_relations)
        self._outbox = Outbox()
        self._worker = Worker(search.graph, search.heads, unnamed, options, self._outbox.put)
        self._thread = ThreadPoolExecutor(1)
        self._span: Future[SpanReply]
        self._seen = SeenBodies()
        self._sources: dict[PathProfile, BodySource] = {}
        self._pieces: SimpleQueue[NDArray[np.int64]] = SimpleQueue()  # numbers of shards: handed out, not yet begun
        self._wants_piece = Event()
        self._stop = Event()

    def ready(self) -> str:
        """Return the version; called, it shows that kernels are compiled and memory is allocated."""
        return __version__

    def start_span(self, order: SpanOrder, number: int, division: Division | None, known: Harvested | None) -> Delivery:
        """Begin a span as worker `number`, and return its first rules.

        `known` are the bodies that any worker has harvested: after a new division all, with a path budget those of the
        last span.
        """
        if order.seconds is None:
            self._wants_piece.set()
        self._span = self._thread.submit(self._run, order, number, division, known)
        self._span.add_done_callback(lambda span: self._outbox.wake())
        return self.fetch()

    def fetch(self, piece: NDArray[np.int64] | None = None) -> Delivery:
        """Take in a piece of the shards, if it was wanted (an empty one says that no more are left); return the next
        rules of the span.
        """
        if piece is not None:
            self._wants_piece.clear()
            self._pieces.put(piece)
        rules, is_last = self._outbox.take(self._span.done, self._wants_piece.is_set)
        return Delivery(rules, self._span.result() if is_last else None, self._wants_piece.is_set())

    def _next_piece(self) -> NDArray[np.int64]:
        """Return the next piece, and ask for the one after it: it should be there in time."""
        piece = self._pieces.get()
        if len(piece):
            self._wants_piece.set()
            self._outbox.wake()
        return piece

    def _run(self, order: SpanOrder, number: int, division: Division | None, known: Harvested | None) -> SpanReply:
        if division is not None and known is not None:
            self._begin(division, known)
        elif known is not None:
            self._seen.note(known)
        self._worker.floor = order.floor
        for profile in order.sweeping:
            self._sources[profile].start_sweep()
        found = self._work_paths(order) if order.seconds is None else self._work_until(order, order.seconds, number)
        return SpanReply(
            cores=tuple(found),
            harvested=self._seen.take_harvested(),
            exhausted=frozenset(profile for profile, source in self._sources.items() if source.exhausted),
            listed={profile: source.listed for profile, source in self._sources.items()},
        )

    def stop(self) -> None:
        """End the current span soon, and later ones immediately."""
        self._stop.set()

    def _begin(self, division: Division, known: Harvested) -> None:
        """Forget everything except what was harvested, and switch to another share of the bodies."""
        share = Share(division.owned)
        self._worker.forget()
        self._seen = SeenBodies()
        keys, counts = known
        own = np.flatnonzero(share.owns(keys))
        self._seen.enter(keys[own], 0)
        self._seen.note((keys[own], counts[own]))
        graph, triples, follows = self._search.graph, self._search.triples, self._search.follows
        self._sources = {
            profile: BodySource(graph, triples, profile, self._options, share, follows)
            for profile in self._options.profiles
        }
        for source in self._sources.values():
            source.go_on(division.listed, division.finished)

    def _work_paths(self, order: SpanOrder) -> list[CoreSpan]:
        """Sample the paths of all cores, as every worker does, and harvest the bodies that are handed out."""
        stopped: Callable[[], bool] = self._stop.is_set
        for profile, source in self._sources.items():
            source.before_span(order.allocation.count(profile) * PATHS_PER_CORE)
        found = [
            self._worker.find_paths(self._sources[profile], self._seen, (order.number, core), stopped)
            for core, profile in enumerate(order.allocation)
        ]
        new = [(source, queued) for source in self._sources.values() if (queued := source.take_all()) is not None]
        shards = [shards_of(queued.bodies.keys) for _, queued in new]
        while len(piece := self._next_piece()) and not stopped():
            for (source, queued), shard in zip(new, shards, strict=True):
                source.put(queued.bodies.take(np.flatnonzero(np.isin(shard, piece))), queued.start)
                found.append(self._worker.help_with(source, self._seen, stopped))
        if stopped():  # some were not harvested: their profiles are not exhausted
            for source, queued in new:
                source.put(*queued)
        return found

    def _work_until(self, order: SpanOrder, seconds: float, number: int) -> list[CoreSpan]:
        """Give each profile its part of the span: a worker must work on all of them, since nobody else has its bodies.

        A profile that finishes early leaves its time to the next ones, and finally to those without cores.
        """
        started, found = time.monotonic(), []
        given = dict.fromkeys(order.allocation)
        n_before = 0
        for profile in [*given, *(profile for profile in self._sources if profile not in given)]:
            n_before += order.allocation.count(profile)
            deadline = started + seconds * n_before / len(order.allocation)
            source = self._sources[profile]
            if not source.exhausted and time.monotonic() < deadline:
                found += self._until(deadline, source, (order.number, number))
        return found

    def _until(self, deadline: float, source: BodySource, key: tuple[int, int]) -> list[CoreSpan]:
        stopped: Callable[[], bool] = self._stop.is_set
        source.before_span(None)
        return self._worker.work_until(deadline, source, self._seen, key, stopped)
