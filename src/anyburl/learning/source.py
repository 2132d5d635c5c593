"""Where the bodies of a profile come from: sampled paths first, then a sweep through the rest.

Workers that share nothing divide bodies by a hash of their keys, the shard. With seconds, every worker owns some of the
shards. With a path budget, shards are handed out while a span runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import BodyArrays, HeadTriples
from anyburl.bodies.paths import generalise, sample_paths, sweep
from anyburl.graph.kernel import GraphArrays
from anyburl.learning.options import PATHS_PER_CORE, LearnOptions
from anyburl.rules.types import PathProfile

N_SHARDS = 4096
ALL_SHARDS = np.ones(N_SHARDS, np.bool_)
LEAST = 32  # of a worker's share of all shards, this part is the smallest piece that is handed out


def shards_of(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the shard of each body: the top bits of its scrambled key (tables of seen bodies go by the low ones)."""
    with np.errstate(over="ignore"):
        mixed = keys + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (mixed >> np.uint64(52)).astype(np.int64)


def divide_shards(shards: NDArray[np.bool_], n_workers: int) -> list[NDArray[np.bool_]]:
    """Divide the marked shards between `n_workers` workers."""
    parts = []
    for numbers in np.array_split(np.flatnonzero(shards), n_workers):
        mask = np.zeros(N_SHARDS, np.bool_)
        mask[numbers] = True
        parts.append(mask)
    return parts


class Handout:
    """Shards handed out piece by piece, in pieces that become smaller, so that all workers finish at about the same
    time: bodies differ in their work, and cores in their speed.
    """

    def __init__(self, shards: NDArray[np.bool_], n_workers: int) -> None:
        self._left = np.flatnonzero(shards)
        self._n_workers = n_workers

    def next_piece(self) -> NDArray[np.int64]:
        """Return the numbers of the next shards; none if all were handed out."""
        size = max(len(self._left) // (2 * self._n_workers), N_SHARDS // (LEAST * self._n_workers), 1)
        piece, self._left = self._left[:size], self._left[size:]
        return piece


@dataclass(frozen=True)
class Share:
    """One worker's part of all bodies.

    Workers sample independently and drop the bodies of others, so each path counts in proportion to their share of the
    bodies.
    """

    owned: NDArray[np.bool_] | None = None  # shard -> whether its bodies are kept; None: all are

    def owns(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Mark the bodies that this worker owns."""
        return np.ones(len(keys), np.bool_) if self.owned is None else self.owned[shards_of(keys)]

    def of(self, bodies: BodyArrays, attempts: int, paths: int) -> tuple[BodyArrays, int, int]:
        """Return the bodies that this worker owns, and the attempts and paths to count."""
        if self.owned is None:
            return bodies, attempts, paths
        own = bodies.take(np.flatnonzero(self.owns(bodies.keys)))
        weight = float(self.owned.mean())
        return own, round(attempts * weight), round(paths * weight)


WHOLE = Share()


PIECES = {1: 4096, 2: 512}  # bodies harvested at a time, of longer ones 64
SAMPLED_FIRST = 20_000  # paths: the bodies that they meet often are swept first,
FEW = 64  # bodies at a time, since they are costly
LARGE = 10_000_000  # edges: bodies of such a graph are costly, so frequent ones should come first:
LARGE_BATCH = 12  # times as many paths are sampled at a time there, for some tenths of a second
SWEEP_BELOW = 0.02  # new bodies per path: below that, sampling mostly finds known bodies


def is_large(n_edges: int, options: LearnOptions) -> bool:
    """Whether bodies of a graph are too costly to be counted to the end."""
    return options.heads == "all" and n_edges > LARGE


def is_fruitless(attempts: int, paths: int, new_bodies: int) -> bool:
    """Whether the paths gave few new bodies, or many attempts gave none."""
    few = paths >= 1000 and new_bodies < SWEEP_BELOW * paths
    return few or (attempts >= PATHS_PER_CORE and new_bodies == 0)


def by_frequency(bodies: BodyArrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one row of each distinct body, the most frequent first, and how often it occurs."""
    _, firsts, counts = np.unique(bodies.keys, return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return firsts[order], counts[order]


class Piece(NamedTuple):
    """Bodies to be harvested, and how many bodies a sweep had listed before them (0 if they were sampled)."""

    bodies: BodyArrays
    start: int


class Listed(NamedTuple):
    """How far the list of a profile's bodies has come: the first `done` of its `n_bodies` were harvested."""

    done: int
    n_bodies: int


class BodySource:
    """Bodies of one profile for all workers; `pending` holds those found but not harvested yet.

    With all heads harvested at once, bodies of length 1 are swept from the start, longer ones when sampling finds few
    new ones and they are few enough to list. The literal mode only samples.
    """

    def __init__(
        self,
        graph: GraphArrays,
        heads: HeadTriples,
        profile: PathProfile,
        options: LearnOptions,
        share: Share = WHOLE,
        follows: NDArray[np.bool_] | None = None,
    ) -> None:
        self._graph, self._heads, self._options, self._share = graph, heads, options, share
        self._follows = follows  # which relations can follow each other, where that is known
        self.profile = profile
        self.n_listed = 0  # by the sweep, including the bodies of other workers
        self._is_large = is_large(len(graph.targets), options)
        self._grounded = profile.cyclic and profile.rule_length <= options.max_grounded
        self._lock = Lock()
        self._pending: deque[Piece] = deque()
        self._held: list[int] = []  # the starts of the unfinished bodies that workers hold
        self._sweep: Iterator[BodyArrays] | None = None
        self._n_all = 0  # bodies in the list of the sweep; those listed first for being frequent are listed twice
        self._can_sweep = options.heads == "all"
        self._swept = False
        self._allowance: int | None = None
        if profile.rule_length == 1:
            self.start_sweep()

    @property
    def exhausted(self) -> bool:
        """Whether every body of the profile was harvested."""
        return self._swept and not self._pending and not self._held

    @property
    def listed(self) -> Listed | None:
        """How far a sweep has come, or None if bodies are sampled; to be asked between spans.

        A sampled body that waits may stand anywhere in the list, so nothing counts as done before it is harvested.
        """
        if self._sweep is None:
            return None
        return Listed(min([self.n_listed, *(piece.start for piece in self._pending), *self._held]), self._n_all)

    def start_sweep(self) -> None:
        """From now on list the bodies instead of sampling them, if that is possible."""
        with self._lock:
            if not self._can_sweep or self._sweep is not None:
                return
            everything = sweep(
                self._graph, self.profile, grounded=self._grounded, seed=self._options.seed, follows=self._follows
            )
            self._can_sweep = everything is not None
            if everything is not None:
                self._n_all = everything.n_bodies
                batches = everything.batches
                self._sweep = chain(self._frequent(), batches) if self.profile.rule_length == 1 else batches

    def _frequent(self) -> Iterator[BodyArrays]:
        """Yield the bodies that paths meet often, the most frequent first: on a large graph a sweep would reach them
        late. Longer bodies are sampled before they are swept.
        """
        state = batch_state(self._options.seed, 0, int(self.profile.cyclic))
        bodies, _, _ = self._sampled(SAMPLED_FIRST, state)
        rows, counts = by_frequency(bodies)
        often = rows[counts > 1]
        self._n_all += len(often)
        for start in range(0, len(often), FEW):
            yield bodies.take(often[start : start + FEW])

    def before_span(self, allowance: int | None) -> None:
        """Let a sweep list at most `allowance` bodies in this span, for all workers together (None: no limit)."""
        self._allowance = allowance

    def note_yield(self, attempts: int, paths: int, new_bodies: int) -> None:
        """Switch from sampling to sweeping if sampling was fruitless."""
        if is_fruitless(attempts, paths, new_bodies):
            self.start_sweep()

    def skip(self, n_listed: int) -> None:
        """Skip the first `n_listed` bodies of the sweep."""
        while self._sweep is not None and self.n_listed < n_listed:
            if self._next_listed(self._sweep) is None:
                return

    def go_on(self, listed: Mapping[PathProfile, int], finished: Collection[PathProfile]) -> None:
        """Go on where another source was: with nothing if the profile is `finished`, or after the bodies `listed`."""
        if self.profile in finished:
            self._sweep, self._swept = iter(()), True
        elif self.profile in listed:
            self.start_sweep()
            self.skip(listed[self.profile])

    def next_bodies(self, attempts: int, state: NDArray[np.uint64]) -> tuple[Piece | None, int, int]:
        """Return more bodies (None if a sweep has none left in this span), the attempts made and the paths found."""
        if self._sweep is not None:
            listed = self._next_listed(self._sweep)
            if listed is None:
                return None, 0, 0
            n_listed = len(listed.bodies.kinds)
            bodies, attempts, n_paths = self._share.of(listed.bodies, n_listed, n_listed)
            return Piece(bodies, listed.start), attempts, n_paths
        bodies, attempts, n_paths = self._sampled(attempts * (LARGE_BATCH if self._is_large else 1), state)
        if self._is_large:
            bodies = bodies.take(by_frequency(bodies)[0])
        bodies, attempts, n_paths = self._share.of(bodies, attempts, n_paths)
        return Piece(bodies, 0), attempts, n_paths

    def _sampled(self, attempts: int, state: NDArray[np.uint64]) -> tuple[BodyArrays, int, int]:
        """Sample paths; return their bodies, the attempts made and the paths found."""
        paths = sample_paths(self._graph, self._heads, self.profile, attempts, state, mixed=self._is_large)
        bodies = generalise(
            self._graph,
            paths,
            cyclic=self.profile.cyclic,
            grounded=self._grounded,
            all_heads=self._options.heads == "all",
        )
        return bodies, attempts, len(paths.ends)

    def _next_listed(self, sweep: Iterator[BodyArrays]) -> Piece | None:
        """Take the next bodies of the sweep, within this span's allowance."""
        with self._lock:
            if self._allowance is not None and self._allowance <= 0:
                return None
            bodies = next(sweep, None)
            if bodies is None:
                self._swept = True
                return None
            piece = Piece(bodies, self.n_listed)
            self.n_listed += len(bodies.kinds)
            if self._allowance is not None:
                self._allowance -= len(bodies.kinds)
            return piece

    def put(self, bodies: BodyArrays, start: int = 0) -> None:
        """Queue bodies to be harvested, in pieces that cores can share; `start` is that of their `Piece`."""
        size = PIECES.get(self.profile.rule_length, 64)
        for first in range(0, len(bodies.kinds), size):
            part = bodies.take(np.arange(first, min(first + size, len(bodies.kinds))))
            self._pending.append(Piece(part, start))

    def hold(self, start: int) -> None:
        """Note that a worker holds an unfinished body."""
        with self._lock:
            self._held.append(start)

    def release(self, start: int) -> None:
        """Note that it no longer does."""
        with self._lock:
            self._held.remove(start)

    def take_all(self) -> Piece | None:
        """Return all bodies to be harvested, or None."""
        pieces, self._pending = self._pending, deque()
        if not pieces:
            return None
        columns = zip(*(piece.bodies for piece in pieces), strict=True)
        return Piece(BodyArrays(*map(np.concatenate, columns)), min(piece.start for piece in pieces))

    def take(self) -> Piece | None:
        """Return bodies to be harvested, or None."""
        try:
            return self._pending.popleft()
        except IndexError:
            return None
