"""Harvest given bodies, on all cores, as the learner would."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event

from anyburl.bodies.arrays import BodyArrays
from anyburl.bodies.seen import SeenBodies
from anyburl.cores import available_cores
from anyburl.learning.engines.search import SearchArrays
from anyburl.learning.engines.worker import Worker
from anyburl.learning.options import LearnOptions
from anyburl.learning.source import BodySource
from anyburl.paths.profile import PathProfile
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.vocabulary import Vocabulary


class Harvester:
    """Workers that harvest what they are given."""

    def __init__(self, search: SearchArrays, vocabulary: Vocabulary, options: LearnOptions) -> None:
        self.search, self._options = search, options
        self.threads = options.threads or available_cores()
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for _ in range(self.threads):
            self._idle.put(Worker(search.graph, search.heads, vocabulary, options))

    def harvest(self, bodies: Iterable[BodyArrays]) -> list[RuleSet]:
        """Return the rules with these bodies that pass the thresholds."""
        found: list[RuleSet] = []
        for batch in bodies:
            profile = PathProfile(cyclic=True, rule_length=batch.relations.shape[1])  # only the length matters here
            source = BodySource(self.search.graph, self.search.triples, profile, self._options)
            source.put(batch)
            found += self._drain(source)
        return found

    def _drain(self, source: BodySource) -> list[RuleSet]:
        stop = Event()
        with ThreadPoolExecutor(self.threads, thread_name_prefix="anyburl-update") as pool:
            runs = [pool.submit(self._work, source, stop) for _ in range(self.threads)]
            try:
                return [rules for run in runs for rules in run.result()]
            except BaseException:
                stop.set()
                raise

    def _work(self, source: BodySource, stop: Event) -> list[RuleSet]:
        worker = self._idle.get()
        try:
            return worker.help_with(source, SeenBodies(), stop.is_set).rules
        finally:
            self._idle.put(worker)
