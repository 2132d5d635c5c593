"""The work of one core (`Worker`: find bodies, drop known ones, harvest the rest), and the engine of threads.

Threads run kernels without the GIL. `warm_up_learning` compiles the kernels of a run before its clock starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import count
from queue import SimpleQueue

import numpy as np

from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import (
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    assign_memory,
    empty_harvest,
    empty_scratch,
    types_of,
)
from anyburl.bodies.comparisons import learn_from_tiny_values
from anyburl.bodies.kernel import harvest
from anyburl.bodies.paths import Harvested, SeenBodies, followers
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import on_tiny_table
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.learning.engine import CoreSpan, Stoppable, search_arrays
from anyburl.learning.options import PATHS_PER_CORE, LearnOptions
from anyburl.learning.policy import ProfileSpan, make_reward
from anyburl.learning.source import LARGE, BodySource, Listed, Piece
from anyburl.learning.store import Earlier, known_keys
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile


def to_rules(vocabulary: Vocabulary, bodies: BodyArrays, harvest: HarvestArrays, n_rows: int) -> RuleSet:
    """Copy the first `n_rows` of `harvest` (a buffer to be used again) into a rule set."""
    reversals = inverses(bodies.relations[:, ::-1], vocabulary.n_relations)
    table, places = np.unique(np.vstack([bodies.relations, reversals]), axis=0, return_inverse=True)
    rows = harvest.bodies[:n_rows]
    numbers = rows % len(bodies.kinds)
    exact = harvest.exact[:n_rows].copy()
    return RuleSet(
        vocabulary=vocabulary,
        bodies=table.astype(np.int32),
        type=types_of(bodies.kinds)[numbers],
        head=harvest.heads[:n_rows].copy(),
        body=places.ravel().astype(np.int32)[rows],
        head_constant=harvest.head_constants[:n_rows].copy(),
        body_constant=bodies.constants[numbers],
        predictions=harvest.predictions[:n_rows].copy(),
        support=harvest.supports[:n_rows].copy(),
        exact=exact,
        margin=None if exact.all() else harvest.margins[:n_rows].copy(),
    )


ATTEMPTS = 5_000  # paths tried at a time: a few milliseconds
KERNEL_WORK = 4_000_000  # edges touched in one kernel call: some tens of milliseconds,
LARGE_WORK = 1_000_000  # and on a large graph, where an edge takes longer
SHORT = 2  # bodies up to this length are few
FACTOR = 10  # applied to the budget: up for short bodies, down for those of a large graph, which has many
START_WORK = 1_000_000  # edges that a single start of a body may touch,
LARGE_START = 300  # and on a large graph, where most starts lead to a hub: what is beyond is sampled
CUT_FROM = 4_000_000  # rules in memory, some hundred megabytes: beyond them, a cap takes effect during a span
FIRST_LOOK = 5_000  # edges of a binary body on a large graph: from there on it is looked at


Deliver = Callable[[PathProfile, RuleSet], None]
"""Takes the rules that are found, where they do not wait for the end of the span."""

Key = tuple[int, int]  # number of the span and of the core: with the seed, the name of the random numbers


class Worker:
    """One core with its buffers. With `deliver`, a `CoreSpan` has no rules: they have gone there."""

    def __init__(
        self,
        graph: GraphArrays,
        heads: HeadArrays,
        vocabulary: Vocabulary,
        options: LearnOptions,
        deliver: Deliver | None = None,
    ) -> None:
        self._deliver = deliver
        self._graph, self._heads, self._vocabulary, self._options = graph, heads, vocabulary, options
        witnessed = options.max_cyclic > 3 or max(options.max_acyclic, options.max_grounded) > 1
        longest = max(options.max_cyclic, options.max_acyclic)
        self._reward = make_reward(options.reward)
        pca, witnessed = self._reward.pca, witnessed or not options.object_identity
        self._scratch = empty_scratch(graph, longest, witnessed=witnessed, pca=pca)
        self._is_large = len(graph.targets) > LARGE
        if self._is_large:
            assign_memory(self._scratch)
        self._out = empty_harvest(1_000_000 + len(graph.segment_relations) + 2 * graph.n_relations, pca=pca)
        self._held: tuple[BodySource, Piece] | None = None  # an unfinished body of the last span
        self.floor = 0.0  # rules that are worth less are left out

    def work_until(
        self, deadline: float, source: BodySource, seen: SeenBodies, key: Key, stopped: Callable[[], bool]
    ) -> list[CoreSpan]:
        """Work on one profile until the deadline (on time.monotonic) or the end of the profile.

        A body that the last span left unfinished comes first.
        """

        def over() -> bool:
            return stopped() or time.monotonic() >= deadline

        earlier = self._finish(seen, over)
        core_span = CoreSpan(source.profile)
        for batch in count():
            self._drain(source, seen, core_span, over)
            if over():
                break
            attempts, paths, n_new = core_span.attempts, core_span.paths, core_span.entered
            if not self._find(source, seen, core_span, key, batch):
                break
            source.note_yield(core_span.attempts - attempts, core_span.paths - paths, core_span.entered - n_new)
        return [*earlier, core_span]

    def work_paths(self, source: BodySource, seen: SeenBodies, key: Key, stopped: Callable[[], bool]) -> CoreSpan:
        """Sample a fixed number of paths of one profile, then harvest: idle cores can help with that."""
        core_span = self.find_paths(source, seen, key, stopped)
        self._drain(source, seen, core_span, stopped)
        return core_span

    def find_paths(self, source: BodySource, seen: SeenBodies, key: Key, stopped: Callable[[], bool]) -> CoreSpan:
        """Sample a fixed number of paths of one profile, and queue the new bodies."""
        core_span = CoreSpan(source.profile)
        batch = 0
        while core_span.attempts < PATHS_PER_CORE and not stopped() and self._find(source, seen, core_span, key, batch):
            batch += 1
        return core_span

    def help_with(self, source: BodySource, seen: SeenBodies, stopped: Callable[[], bool]) -> CoreSpan:
        """Harvest what others have found."""
        core_span = CoreSpan(source.profile)
        self._drain(source, seen, core_span, stopped)
        return core_span

    def forget(self) -> None:
        """Drop the unfinished body, if there is one."""
        if self._held is None:
            return
        self._held = None
        self._scratch.grounding[0].under_way = False
        self._scratch.relation_counts[:] = 0
        self._scratch.tally.counts[:] = 0
        self._scratch.segment_counts[:] = 0
        self._scratch.pca.having[:] = 0
        self._scratch.pca.end_pairs[:] = 0

    def _finish(self, seen: SeenBodies, over: Callable[[], bool]) -> list[CoreSpan]:
        if self._held is None:
            return []
        source, piece = self._held
        self._held = None
        core_span = CoreSpan(source.profile)
        self._harvest(piece, source, seen, core_span, over)
        source.release(piece.start)
        return [core_span]

    def _drain(self, source: BodySource, seen: SeenBodies, core_span: CoreSpan, over: Callable[[], bool]) -> None:
        while not over() and (pending := source.take()) is not None:
            self._harvest(pending, source, seen, core_span, over)

    def _find(self, source: BodySource, seen: SeenBodies, core_span: CoreSpan, key: Key, batch: int) -> bool:
        """Look for bodies and queue the new ones to be harvested; False if none are left in this span."""
        piece, attempts, paths = source.next_bodies(ATTEMPTS, batch_state(self._options.seed, *key, batch))
        if piece is None:
            return False
        bodies = piece.bodies
        is_new, known_rules = seen.enter(bodies.keys, key[0])
        core_span.attempts += attempts
        core_span.paths += paths
        core_span.known_rules += known_rules
        core_span.entered += int(is_new.sum())
        source.put(bodies.take(np.flatnonzero(is_new)), piece.start)
        return True

    def _harvest(
        self,
        piece: Piece,
        source: BodySource,
        seen: SeenBodies,
        core_span: CoreSpan,
        over: Callable[[], bool],
    ) -> None:
        """Harvest the bodies of `piece`, one bounded kernel call at a time. When time is up, put back the rest, except
        an unfinished body: this worker's buffers hold its counts.
        """
        limits = harvest_limits(
            self._options, source.profile, is_large=self._is_large, pca=self._reward.pca, floor=self.floor
        )
        bodies, done = piece.bodies, 0
        while done < len(bodies.kinds) and not over():
            first = done
            done, n_rows = harvest(self._graph, self._heads, bodies, first, limits, self._scratch, self._out)
            counts = np.bincount(self._out.bodies[:n_rows] % len(bodies.kinds), minlength=len(bodies.kinds))
            seen.record(bodies.keys[first:done], counts[first:done])
            core_span.new_bodies += done - first
            if n_rows:
                rules = to_rules(self._vocabulary, bodies, self._out, n_rows)
                if self._deliver is None:
                    core_span.rules.append(rules)
                    self._keep_to_cap(core_span)
                else:
                    self._deliver(source.profile, rules)
                predictions = self._out.pca_predictions[:n_rows] if self._reward.pca else rules.predictions
                core_span.reward += self._reward.of(rules.support, predictions, source.profile.rule_length)
        if self._scratch.grounding[0].under_way:
            self._held = (source, Piece(bodies.take(np.array([done])), piece.start))
            source.hold(piece.start)
            done += 1
        source.put(bodies.take(np.arange(done, len(bodies.kinds))), piece.start)

    def _keep_to_cap(self, core_span: CoreSpan) -> None:
        """Drop rules that a cap would drop at the end of the span, where they are many; it still has some to drop."""
        cap = self._options.max_rules
        if cap is not None and core_span.n_held > max(CUT_FROM, 4 * cap):
            core_span.cut_to(2 * cap)


def harvest_limits(
    options: LearnOptions, profile: PathProfile, *, is_large: bool, pca: bool = False, floor: float = 0.0
) -> Limits:
    """Return what a harvest of bodies of a profile keeps, and how much work it may do."""
    least, length, budget = (options.min_support, options.min_confidence), profile.rule_length, options.budget
    identity = options.object_identity
    if not is_large:
        budget *= FACTOR if length <= SHORT else 1
        return Limits(*least, identity, budget, KERNEL_WORK, START_WORK, pca, floor=floor)
    budget = budget if length <= (1 if profile.cyclic else SHORT) else max(budget // FACTOR, 1)
    start = min(LARGE_START if profile.cyclic else START_WORK, budget)
    return Limits(*least, identity, budget, LARGE_WORK, start, pca, FIRST_LOOK, options.precision, floor)


class ThreadsEngine(Stoppable):
    """Workers that share the graph and the set of seen bodies, and nothing else."""

    def __init__(self, table: TripleTable, options: LearnOptions, threads: int) -> None:
        super().__init__()
        search = search_arrays(table, options)
        self.graph = search.graph
        self.workers = threads
        self._options = options
        self._seen = SeenBodies()
        self._sources = {
            profile: BodySource(self.graph, search.triples, profile, options, follows=search.follows)
            for profile in options.profiles
        }
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(threads):
            self._idle.put(Worker(self.graph, search.heads, table.vocabulary, options))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="anyburl")

    def run_span(self, number: int, allocation: Sequence[PathProfile], deadline: float | None) -> list[CoreSpan]:
        """Run one time span; see `Engine`."""
        for profile, source in self._sources.items():
            cores = sum(given == profile for given in allocation)
            source.before_span(cores * PATHS_PER_CORE if deadline is None else None)
        runs = [
            self._pool.submit(self._run_core, number, core, profile, allocation, deadline)
            for core, profile in enumerate(allocation)
        ]
        try:
            wait(runs)
        except KeyboardInterrupt:
            self.stop()  # and keep what the cores have found
        return [core_span for run in runs for core_span in run.result()]

    def _run_core(
        self,
        number: int,
        core: int,
        profile: PathProfile,
        allocation: Sequence[PathProfile],
        deadline: float | None,
    ) -> list[CoreSpan]:
        """Let one worker do one core's share; if its profile finishes early, it helps with the others."""
        worker = self._idle.get()
        worker.floor = self.floor
        try:
            others = [one for one in dict.fromkeys([*allocation, *self._sources]) if one != profile]
            sources = [self._sources[one] for one in (profile, *others)]
            key, stopped = (number, core), self._stop.is_set
            if deadline is None:
                own = worker.work_paths(sources[0], self._seen, key, stopped)
                return [own, *(worker.help_with(source, self._seen, stopped) for source in sources[1:])]
            return [
                core_span
                for source in sources
                if not source.exhausted
                for core_span in worker.work_until(deadline, source, self._seen, key, stopped)
            ]
        finally:
            self._idle.put(worker)

    def after_span(self, entries: Sequence[ProfileSpan]) -> None:
        """Switch saturated profiles from sampling to sweeping."""
        for entry in entries:
            self._sources[entry.profile].note_yield(entry.attempts, entry.paths, entry.entered)

    def exhausted(self) -> set[PathProfile]:
        """Return the profiles that have no body left."""
        return {profile for profile, source in self._sources.items() if source.exhausted}

    def listed(self) -> dict[PathProfile, Listed]:
        """Return how far lists of bodies have come; see `Engine`."""
        listed = {profile: source.listed for profile, source in self._sources.items() if not source.exhausted}
        return {profile: progress for profile, progress in listed.items() if progress is not None}

    def take_harvested(self) -> Harvested:
        """Return the bodies harvested since the last call."""
        return self._seen.take_harvested()

    def go_on(self, rules: RuleSet, earlier: Earlier) -> None:
        """Go on where an earlier run ended; see `Engine`."""
        for known, counts in known_keys(self.graph, rules, self._options):
            self._seen.enter(known, 0)
            self._seen.note((known, counts))
        self._seen.enter(earlier.keys, 0)
        for source in self._sources.values():
            source.go_on(earlier.listed, earlier.finished)

    def take_notes(self) -> list[str]:
        """Threads do not come and go."""
        return []

    def close(self) -> None:
        """Stop the threads and free their buffers: rules are put together next, which takes memory as well."""
        self._pool.shutdown()
        self._idle = SimpleQueue()


def warm_up_learning(options: LearnOptions, n_relations: int, *, has_values: bool = False) -> None:
    """Compile every kernel of a run with `options` on data with `n_relations`, or load what was compiled before; those
    of conditions if the entities have values.
    """
    sweeps = options.heads == "all" and max(options.max_cyclic, options.max_acyclic) > 1
    work = TinyRun(options.max_cyclic > 0, options.max_acyclic > 0, options.heads, sweeps=sweeps)
    on_tiny_table(work, n_relations)
    if has_values and options.conditions:
        on_tiny_table(learn_from_tiny_values, n_relations)


@dataclass(frozen=True)
class TinyRun:
    """One span of learning rules of length 1; longer ones take the same kernels, but for sweeping."""

    cyclic: bool
    acyclic: bool
    heads: str
    sweeps: bool

    def __call__(self, table: TripleTable) -> None:
        options = LearnOptions(
            paths=1, threads=1, heads=self.heads, max_cyclic=int(self.cyclic), max_acyclic=int(self.acyclic)
        )
        engine = ThreadsEngine(table, options, threads=1)
        engine.run_span(1, options.profiles, None)
        engine.close()
        if self.sweeps:
            followers(engine.graph)
