"""The work of one core of a Ray cluster: a worker with its own share of the bodies, and the messages it exchanges.

Rules are sent during a span, a parcel at a time, in few bytes: a body gives many rules in a row, so most columns hold
long runs of one number, and the others hold small numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Condition, Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.bodies.paths import Harvested, SeenBodies
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.engine import CoreSpan, LearningArrays
from anyburl.learning.options import PATHS_PER_CORE, LearnOptions
from anyburl.learning.source import BodySource, Listed, Share, shards_of
from anyburl.learning.threads import Worker, warm_up_learning
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile

PARCEL = 500_000  # rules sent at a time: a few milliseconds of work for the driver
MOST_WAITING = 8 * PARCEL  # rules of a worker, which then waits until some of them are sent
RUN = 4  # a column is sent as runs if they are that long on average


class Packed(NamedTuple):
    """A column in the smallest type that holds its numbers, and how often each is repeated, if they are."""

    values: NDArray[Any]
    lengths: NDArray[Any] | None
    dtype: np.dtype[Any]  # of the column


class PackedRules(NamedTuple):
    """Rules of one profile without the labels, which workers do not have."""

    profile: PathProfile
    bodies: NDArray[np.int32]
    columns: dict[str, Packed]


def pack_rules(profile: PathProfile, rules: RuleSet) -> PackedRules:
    """Make rules small."""
    return PackedRules(profile, rules.bodies, {name: pack(column) for name, column in rules.columns.items()})


def unpack_rules(packed: PackedRules, vocabulary: Vocabulary) -> RuleSet:
    """Return the rules, in memory of their own. They were checked where they were packed."""
    columns = {"bodies": packed.bodies.copy(), **{name: unpack(column) for name, column in packed.columns.items()}}
    for column in columns.values():
        column.flags.writeable = False
    return RuleSet.checked_before(vocabulary, columns)


def pack(column: NDArray[Any]) -> Packed:
    """Make a column small."""
    is_change = column[1:] != column[:-1]
    if not len(column) or (np.count_nonzero(is_change) + 1) * RUN > len(column):
        return Packed(_narrow(column), None, column.dtype)
    starts = np.concatenate([[0], np.flatnonzero(is_change) + 1])
    return Packed(_narrow(column[starts]), _narrow(np.diff(starts, append=len(column))), column.dtype)


def unpack(packed: Packed) -> NDArray[Any]:
    """Return a copy of the column."""
    values = packed.values.astype(packed.dtype)
    return values if packed.lengths is None else np.repeat(values, packed.lengths)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    if not len(column) or column.dtype.kind not in "iu":
        return column
    least, most = (np.min_scalar_type(number) for number in (column.min(), column.max()))
    return column.astype(np.result_type(least, most))


class Outbox:
    """Rules that wait to be sent: the thread that runs a span puts them in, another takes them out."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[PathProfile, RuleSet]] = []
        self._n_rules = 0

    def put(self, profile: PathProfile, rules: RuleSet) -> None:
        """Add rules; if too many are waiting, wait as well."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_rules < MOST_WAITING)
            self._waiting.append((profile, rules))
            self._n_rules += len(rules)
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake up the thread that waits for rules: the span is over, or there is a message."""
        with self._changed:
            self._changed.notify_all()

    def take(
        self, is_over: Callable[[], bool], is_urgent: Callable[[], bool] = lambda: False
    ) -> tuple[list[PackedRules], bool]:
        """Return what has come together, once it is a parcel or the span is over; and whether that was all. If anything
        else is urgent, return no rules: they wait for the next call.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._n_rules >= PARCEL or is_urgent() or is_over())
            was_over = is_over()  # before rules are taken: none can come between
            if self._n_rules < PARCEL and not was_over:
                return [], False
            taken, self._waiting, self._n_rules = self._waiting, [], 0
            self._changed.notify_all()
        return [pack_rules(profile, rules) for profile, rules in taken], was_over


@dataclass(frozen=True)
class SpanOrder:
    """The order to run a time span; without seconds, it has a path budget."""

    number: int
    allocation: tuple[PathProfile, ...]
    seconds: float | None
    sweeping: frozenset[PathProfile]  # profiles whose bodies are listed from now on
    floor: float  # support x confidence that rules need


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
    """Rules found since the last delivery; with the last one of a span, its figures."""

    rules: list[PackedRules]
    reply: SpanReply | None
    wants_piece: bool  # of the bodies, to harvest them next


class RayWorker:
    """One core with its share of the bodies. Rules are fetched while a span runs; `stop` may be called at any time."""

    def __init__(self, search: LearningArrays, options: LearnOptions) -> None:
        self._search, self._options = search, options
        n_relations = search.graph.n_relations
        warm_up_learning(options, n_relations)
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
        """Take in a piece of the shards, if it was requested (an empty one says that no more are left); return the next
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
        core_spans = (
            self._work_paths(order) if order.seconds is None else self._work_until(order, order.seconds, number)
        )
        return SpanReply(
            cores=tuple(core_spans),
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
        core_spans = [
            self._worker.find_paths(self._sources[profile], self._seen, (order.number, core), stopped)
            for core, profile in enumerate(order.allocation)
        ]
        new = [(source, queued) for source in self._sources.values() if (queued := source.take_all()) is not None]
        shards = [shards_of(queued.bodies.keys) for _, queued in new]
        while len(piece := self._next_piece()) and not stopped():
            for (source, queued), shard in zip(new, shards, strict=True):
                source.put(queued.bodies.take(np.flatnonzero(np.isin(shard, piece))), queued.start)
                core_spans.append(self._worker.help_with(source, self._seen, stopped))
        if stopped():  # some were not harvested: their profiles are not exhausted
            for source, queued in new:
                source.put(*queued)
        return core_spans

    def _work_until(self, order: SpanOrder, seconds: float, number: int) -> list[CoreSpan]:
        """Give each profile its part of the span: a worker works on all of them, since no other worker owns its bodies.

        A profile that finishes early leaves its time to the next ones, and finally to those without cores.
        """
        started, core_spans = time.monotonic(), []
        given = dict.fromkeys(order.allocation)
        n_before = 0
        for profile in [*given, *(profile for profile in self._sources if profile not in given)]:
            n_before += order.allocation.count(profile)
            deadline = started + seconds * n_before / len(order.allocation)
            source = self._sources[profile]
            if not source.exhausted and time.monotonic() < deadline:
                core_spans += self._until(deadline, source, (order.number, number))
        return core_spans

    def _until(self, deadline: float, source: BodySource, key: tuple[int, int]) -> list[CoreSpan]:
        stopped: Callable[[], bool] = self._stop.is_set
        source.before_span(None)
        return self._worker.work_until(deadline, source, self._seen, key, stopped)
