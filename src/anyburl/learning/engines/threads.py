"""The cores of one machine: threads that run kernels without the GIL.

Compile the kernels of a run before its clock starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue

from anyburl.bodies.sweep import Harvested, SeenBodies, followers
from anyburl.data.table import TripleTable
from anyburl.graph.build import on_tiny_table
from anyburl.learning.engines.base import CoreSpan, Stoppable, search_arrays
from anyburl.learning.engines.worker import Worker
from anyburl.learning.known import Earlier, known_keys
from anyburl.learning.options import PATHS_PER_CORE, LearnOptions
from anyburl.learning.policy import ProfileSpan
from anyburl.learning.source import BodySource, Listed
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile


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
        return [found for run in runs for found in run.result()]

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
                found
                for source in sources
                if not source.exhausted
                for found in worker.work_until(deadline, source, self._seen, key, stopped)
            ]
        finally:
            self._idle.put(worker)

    def after_span(self, found: Sequence[ProfileSpan]) -> None:
        """Switch saturated profiles from sampling to sweeping."""
        for entry in found:
            self._sources[entry.profile].note_yield(entry.attempts, entry.paths, entry.entered)

    def exhausted(self) -> set[PathProfile]:
        """Return the profiles that have no body left."""
        return {profile for profile, source in self._sources.items() if source.exhausted}

    def listed(self) -> dict[PathProfile, Listed]:
        """Return how far lists of bodies have come; see `Engine`."""
        listed = {profile: source.listed for profile, source in self._sources.items() if not source.exhausted}
        return {profile: place for profile, place in listed.items() if place is not None}

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


def warm_up_learning(options: LearnOptions, n_relations: int) -> None:
    """Compile every kernel of a run with `options` on data with `n_relations`, or load what was compiled before."""
    sweeps = options.heads == "all" and max(options.max_cyclic, options.max_acyclic) > 1
    work = TinyRun(options.max_cyclic > 0, options.max_acyclic > 0, options.heads, sweeps=sweeps)
    on_tiny_table(work, n_relations)


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
