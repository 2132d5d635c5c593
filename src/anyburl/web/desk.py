"""The desk of those who review: facts that wait for a verdict, a stack at a time."""

from __future__ import annotations

import tempfile
from pathlib import Path
from threading import Lock

from anyburl.reasoning.reasoner import Reasoner
from anyburl.review.log import ReviewLog
from anyburl.review.queue import QueuedFact, review_queue

STACK, SECONDS = 200, 5.0
MOST_STACKS = 32


class ReviewDesk:
    """Facts that nobody has judged, the best first, of all relations or of one."""

    def __init__(self, reasoner: Reasoner, log: ReviewLog) -> None:
        self.log = log
        self._reasoner = reasoner
        self._stacks: dict[str | None, tuple[QueuedFact, ...]] = {}
        self._lock = Lock()

    def waiting(self, relation: str | None) -> list[QueuedFact]:
        """Return the facts that wait; a new stack is made when all of the last one were judged."""
        with self._lock:
            found = self._unjudged(self._stacks.get(relation, ()))
            if not found:
                if len(self._stacks) >= MOST_STACKS:
                    self._stacks.clear()
                queue = review_queue(self._reasoner, self.log, relation=relation, top=STACK, seconds=SECONDS)
                self._stacks[relation] = queue.facts
                found = list(queue.facts)
            return found

    def _unjudged(self, facts: tuple[QueuedFact, ...]) -> list[QueuedFact]:
        judged = self.log.standing()
        return [fact for fact in facts if fact.triple not in judged]

    def exported(self, suffix: str) -> bytes:
        """Return the accepted facts as a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"accepted{suffix}"
            self.log.export_triples(path)
            return path.read_bytes()
