"""The review desk: facts that wait for a verdict, a stack at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from anyburl.reasoning.reasoner import Reasoner
from anyburl.tools.review import QueuedFact, ReviewLog, ReviewQueue, review_queue

STACK = 200
SECONDS_TO_SEARCH = 60.0
SECONDS_TO_WAIT = 6.0
MOST_STACKS = 32


class ReviewDesk:
    """Facts that nobody has judged, the best first, of all relations or of one.

    They are looked for in a thread of its own, one stack after the other, so that no page waits for all of it.
    """

    def __init__(self, reasoner: Reasoner, log: ReviewLog) -> None:
        self.log = log
        self._reasoner = reasoner
        self._stacks: dict[str | None, Future[ReviewQueue]] = {}
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-desk")

    def waiting(self, relation: str | None) -> list[QueuedFact] | None:
        """Return the facts that wait, those skipped among them; None while they are being looked for.

        A new stack is looked for when all of the last one were judged.
        """
        stack, queue = self._searched(relation)
        found = None if queue is None else self._unjudged(queue.facts)
        if queue is None or found or (queue.is_complete and not queue.facts):
            return found
        self._drop(relation, stack)
        _, queue = self._searched(relation)
        return None if queue is None else self._unjudged(queue.facts)

    def _searched(self, relation: str | None) -> tuple[Future[ReviewQueue], ReviewQueue | None]:
        """Return a relation's stack and what is on it, None if it is still being searched; a search that failed is not
        kept, so that the next reader has it tried again.
        """
        stack = self._stack(relation)
        if not wait([stack], SECONDS_TO_WAIT).done or stack.cancelled():
            return stack, None
        try:
            return stack, stack.result()
        except BaseException:
            self._drop(relation, stack)
            raise

    def _stack(self, relation: str | None) -> Future[ReviewQueue]:
        with self._lock:
            if relation not in self._stacks:
                while len(self._stacks) >= MOST_STACKS:
                    self._stacks.pop(next(iter(self._stacks))).cancel()  # the oldest; of no effect once it has begun
                self._stacks[relation] = self._pool.submit(self._search, relation)
            return self._stacks[relation]

    def _drop(self, relation: str | None, stack: Future[ReviewQueue]) -> None:
        """Forget a stack, unless another reader has replaced it already."""
        with self._lock:
            if self._stacks.get(relation) is stack:
                del self._stacks[relation]

    def _search(self, relation: str | None) -> ReviewQueue:
        return review_queue(self._reasoner, self.log, relation=relation, top=STACK, seconds=SECONDS_TO_SEARCH)

    def _unjudged(self, facts: Sequence[QueuedFact]) -> list[QueuedFact]:
        judged = self.log.standing()
        return [fact for fact in facts if fact.triple not in judged]

    def exported(self, suffix: str) -> bytes:
        """Return the accepted facts as a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"accepted{suffix}"
            self.log.export_triples(path)
            return path.read_bytes()

    def close(self) -> None:
        """Drop what is being looked for."""
        self._pool.shutdown(wait=False, cancel_futures=True)
