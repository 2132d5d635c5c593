"""The anytime loop: in each span, allocate cores, find rules and take stock; engines are made by their names."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anyburl.base.errors import RuleError, RunError
from anyburl.base.machine import available_cores, check_not_forked
from anyburl.bodies.arrays import head_arrays
from anyburl.bodies.comparisons import learn_comparisons
from anyburl.bodies.paths import Harvested, join_harvested
from anyburl.bodies.thresholds import Thresholds, learn_conditional
from anyburl.data.attributes import attributes_of
from anyburl.data.table import TripleTable
from anyburl.graph.build import with_loops
from anyburl.graph.stored import graph_of
from anyburl.learning.engine import Engine, by_profile, target_relations
from anyburl.learning.options import CORES_OF_PATH_RUNS, LearnOptions
from anyburl.learning.policy import ProfileSpan, SpanRecord, make_policy
from anyburl.learning.progress import Outlook, outlook
from anyburl.learning.ray import RayEngine
from anyburl.learning.source import Listed, is_large
from anyburl.learning.store import NOTHING, Earlier, RuleStore, sort_rules
from anyburl.learning.threads import ThreadsEngine, warm_up_learning
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile


def make_engine(table: TripleTable, options: LearnOptions) -> Engine:
    """Return the engine that `options` ask for."""
    if options.engine == "ray":
        return RayEngine(table, options)
    return ThreadsEngine(table, options, options.threads or available_cores())


LATE = 0.8  # the share of the time, or of the paths, after which B rules get comparisons
FRUITLESS_SPANS = 10  # in a row without a path, after which a run with a path budget gives up


@dataclass(frozen=True)
class Span:
    """The state of a run at the end of a time span."""

    number: int
    elapsed: float  # seconds of learning so far
    seconds: float  # of this span
    n_rules: int
    new_rules: int
    n_dropped: int
    n_paths: int
    n_bodies: int
    profiles: tuple[ProfileSpan, ...]
    learned: tuple[RuleSet, ...] = field(repr=False)  # the new rules, before a cap
    store: RuleStore = field(repr=False)
    snapshot: str | None = None  # the name of the snapshot taken at the end of this span
    notes: tuple[str, ...] = ()  # events: workers lost, workers that joined
    listed: Mapping[PathProfile, Listed] = field(default_factory=dict)  # how far lists of bodies have come
    complete: frozenset[PathProfile] = frozenset()  # the profiles that have no body left
    harvested: Harvested = field(default_factory=lambda: join_harvested([]), repr=False)  # in this span

    @property
    def rules(self) -> RuleSet:
        """All rules found up to the end of this span, even while learning continues, unless a cap has dropped some
        since.
        """
        if self.store.n_dropped != self.n_dropped:
            raise RunError(
                f"the rules of span {self.number} are gone, because max_rules has dropped some since: read them "
                "before the next span, or call Learner.rules for the newest"
            )
        rules = self.store.rules()
        return rules if len(rules) == self.n_rules else rules.slice(0, self.n_rules)

    @property
    def saturation(self) -> float:
        """The share of the rules found in this span that were known before."""
        known = sum(entry.known_rules for entry in self.profiles)
        n_rules = known + sum(entry.new_rules for entry in self.profiles)
        return known / n_rules if n_rules else 1.0

    @property
    def best_profile(self) -> PathProfile:
        """The profile with the highest reward per core in this span."""
        return max(self.profiles, key=lambda entry: entry.value).profile

    @property
    def reward(self) -> float:
        """The total reward of the span's new rules."""
        return sum(entry.reward for entry in self.profiles)

    @property
    def paths_per_second(self) -> float:
        """Paths sampled per second in this span, over all cores."""
        return sum(entry.paths for entry in self.profiles) / self.seconds if self.seconds else 0.0


class Learner:
    """Learns rules from the triples of `table`.

    `known` are the rules of an earlier run, matched with the triples by label; `earlier` says where it ended.
    `stopped_by` says why this one ended: "seconds", "paths", "complete" (every body of every profile was harvested) or
    "interrupt".
    """

    def __init__(
        self,
        table: TripleTable,
        options: LearnOptions,
        *,
        known: RuleSet | None = None,
        earlier: Earlier = NOTHING,
    ) -> None:
        if known is not None:
            known = _matched_with(known, table)
        self.options = options
        self.engine = make_engine(table, options)
        self.threads = self.engine.workers
        self.store = RuleStore(table.vocabulary, options.max_rules)
        self.history: list[SpanRecord] = []
        self.elapsed = 0.0
        self.n_paths = 0
        self.n_bodies = 0
        self.stopped_by = ""
        self._policy = make_policy(
            options.policy,
            epsilon=options.epsilon,
            saturation=options.saturation,
            large=is_large(2 * len(table), options),
        )
        self._snapshots = sorted(options.snapshots)
        self._last_number, self._start = 0, 0.0
        self._table = table
        is_new = known is None or not known.has_condition.any()
        self._seeks_conditions = options.conditions and not attributes_of(table.vocabulary).empty and is_new
        self._seeks_comparisons = self._seeks_conditions
        self._binary: list[RuleSet] = [] if known is None else [known.take(known.is_binary)]  # to be compared
        rules = RuleSet.empty(table.vocabulary) if known is None else self._still_met(known, earlier.finished)
        self.engine.go_on(rules, earlier)
        if known is not None:
            self.store.add([known])

    def _still_met(self, known: RuleSet, finished: frozenset[PathProfile]) -> RuleSet:
        """Return the known rules whose bodies this run may meet again: not those of lengths that are finished."""
        if not finished:
            return known
        lengths = {profile.rule_length for profile in self.options.profiles if profile not in finished}
        return known.take(np.isin(known.lengths, sorted(lengths)))

    def spans(self) -> Generator[Span, None, None]:
        """Learn, one time span at a time; you may leave the loop at any time.

        Kernels are compiled before the clock starts.
        """
        warm_up_learning(self.options, self.store.vocabulary.n_relations, has_values=self._seeks_comparisons)
        try:
            while not self._is_over():
                check_not_forked()
                yield self._run_span()
        finally:
            self.engine.close()
            self.store.cut_to_cap()

    def stop(self) -> None:
        """End the run after the current batches; may be called from a signal handler."""
        self.engine.stop()

    def rules(self) -> RuleSet:
        """Return the rules found so far, in the order found; with a path budget, in an order that depends on the rules
        alone.
        """
        return self.store.rules() if self.options.paths is None else sort_rules(self.store.rules())

    def outlook(self) -> list[Outlook]:
        """Return how much of each profile this run has seen, and what more time would bring."""
        return outlook(self.history, self._start)

    def continue_from(self, trace: Sequence[dict[str, Any]], *, same_search: bool = True) -> None:
        """Set the clock and the counters to where the trace of an earlier run ended.

        If it was the `same_search`, its spans count as this run's: for the policy, and for the outlook.
        """
        if not trace:
            return
        last = trace[-1]
        self.elapsed, self.n_paths, self.n_bodies = last["elapsed"], last["paths"], last["bodies"]
        self._last_number = int(last["number"])
        if same_search:
            exhausted = self.engine.exhausted()
            self.history = [SpanRecord.from_trace(line).limited_to(exhausted) for line in trace]
        else:
            self._start = self.elapsed
        self._snapshots = [moment for moment in self._snapshots if moment > self.elapsed]

    def _is_over(self) -> bool:
        if self.engine.stopped:
            self.stopped_by = "interrupt"
        elif not self._profiles():
            self.stopped_by = "complete"
        elif self.options.paths is not None and (self.n_paths >= self.options.paths or self._finds_nothing()):
            self.stopped_by = "paths"
        elif self.options.seconds is not None and self.elapsed >= self.options.seconds:
            self.stopped_by = "seconds"
        return bool(self.stopped_by)

    def _finds_nothing(self) -> bool:
        """Whether neither the last spans nor any profile when last used gave a path: the budget would never run out."""
        last_spans = self.history[-FRUITLESS_SPANS:]
        if len(last_spans) < FRUITLESS_SPANS or any(entry.paths for span in last_spans for entry in span.profiles):
            return False
        last_paths = {entry.profile: entry.paths for span in self.history for entry in span.profiles}
        return all(last_paths.get(profile) == 0 for profile in self._profiles())

    def _profiles(self) -> list[PathProfile]:
        exhausted = self.engine.exhausted()
        return [profile for profile in self.options.profiles if profile not in exhausted]

    def _run_span(self) -> Span:
        number = self._last_number = self._last_number + 1
        rng = np.random.default_rng([self.options.seed, number])
        n_cores = self.engine.workers if self.options.paths is None else CORES_OF_PATH_RUNS
        allocation = self._policy.allocate(self.history, self._profiles(), n_cores, rng)
        started = time.monotonic()
        self.engine.floor = self.store.floor
        cores = self.engine.run_span(number, allocation, self._deadline(started))
        profiles = by_profile(cores, allocation)
        self.engine.after_span(profiles)
        new_rules = [rules for core in cores for rules in core.rules]
        n_paths = self.n_paths + sum(entry.paths for entry in profiles)
        conditional = self._conditional(new_rules, self.elapsed + time.monotonic() - started, n_paths)
        new_rules += conditional
        self.store.add(new_rules)
        seconds = time.monotonic() - started
        self.elapsed += seconds
        snapshot = self._take_stock(number, profiles)
        return Span(
            number=number,
            elapsed=self.elapsed,
            seconds=seconds,
            n_rules=self.store.n_rules,
            new_rules=sum(entry.new_rules for entry in profiles) + sum(map(len, conditional)),
            n_dropped=self.store.n_dropped,
            n_paths=self.n_paths,
            n_bodies=self.n_bodies,
            profiles=self.history[-1].profiles,
            learned=tuple(new_rules),
            store=self.store,
            snapshot=snapshot,
            notes=tuple(self.engine.take_notes()),
            listed=self.engine.listed(),
            complete=frozenset(self.engine.exhausted()),
            harvested=self.engine.take_harvested(),
        )

    def _conditional(self, new_rules: Sequence[RuleSet], elapsed: float, n_paths: int) -> list[RuleSet]:
        """Return rules with conditions on values: a pass of its own in the first span, which takes at most a third of
        the time; in the last fifth of the time, or of the paths, those that compare both ends of the B rules so far.
        """
        if not self._seeks_comparisons:
            return []
        self._binary += [rules.take(rules.is_binary) for rules in new_rules]
        seconds, paths = self.options.seconds, self.options.paths
        late = (seconds is not None and elapsed >= LATE * seconds) or (paths is not None and n_paths >= LATE * paths)
        late |= not self._profiles()
        if not (self._seeks_conditions or late):
            return []
        graph = self.engine.graph if isinstance(self.engine, ThreadsEngine) else graph_of(self._table)
        if not self.options.object_identity:
            graph = with_loops(graph)
        thresholds = Thresholds(
            self.options.min_support,
            self.options.min_confidence,
            self.options.object_identity,
            head_arrays(graph, target_relations(self._table, self.options)).selected,
        )
        made, vocabulary = [], self._table.vocabulary
        if self._seeks_conditions:
            self._seeks_conditions = False
            ends = (self._ends_after(elapsed, share) for share in (1 / 6, 1 / 3))
            made.append(learn_conditional(graph, vocabulary, thresholds, *ends))
        if late:
            self._seeks_comparisons = False
            binary, self._binary = RuleSet.concat([RuleSet.empty(vocabulary), *self._binary]), []
            made.append(learn_comparisons(graph, vocabulary, binary, thresholds, self._ends_after(elapsed, 1)))
        return made

    def _ends_after(self, elapsed: float, share: float) -> Callable[[], bool]:
        """Return a function that says whether this share of the remaining time is over."""
        seconds = self.options.seconds
        left = math.inf if seconds is None else max((seconds - elapsed) * share, (1 - LATE) / 2 * seconds)
        end = time.monotonic() + left
        return lambda: self.engine.stopped or time.monotonic() > end

    def _deadline(self, started: float) -> float | None:
        """A span ends after its length, at the next snapshot or at the end of the run, whichever comes first."""
        if self.options.seconds is None:
            return None
        moments = [self.elapsed + self.options.span, self.options.seconds, *self._snapshots[:1]]
        return started + min(moments) - self.elapsed

    def _take_stock(self, number: int, profiles: Sequence[ProfileSpan]) -> str | None:
        """Enter the span into the history; return the name of a snapshot that was due."""
        self.n_paths += sum(entry.paths for entry in profiles)
        self.n_bodies += sum(entry.new_bodies for entry in profiles)
        exhausted, listed = self.engine.exhausted(), self.engine.listed()
        marked = [
            replace(entry, exhausted=entry.profile in exhausted, listed=listed.get(entry.profile)) for entry in profiles
        ]
        self.history.append(SpanRecord(number, self.elapsed, tuple(marked)))
        name = None
        while self._snapshots and self.elapsed >= self._snapshots[0]:
            name = f"{self._snapshots.pop(0):g}"
            self.store.mark_snapshot(name)
        return name


def _matched_with(known: RuleSet, table: TripleTable) -> RuleSet:
    """Return known rules with the ids of the triples; refuse rules with labels that the triples do not have."""
    matched = known.with_vocabulary(table.vocabulary)
    if len(matched) < len(known):
        n_unknown = len(known) - len(matched)
        raise RuleError(f"{n_unknown} of {len(known)} known rules have labels that the triples do not have: drop them")
    return matched
