"""What takes long and is done in threads while pages are served: predictions about hubs, facts to review, a report."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from anyburl.reasoning.reasoner import Reasoner
from anyburl.tools.report.record import Theory
from anyburl.tools.report.theory import make_theory
from anyburl.tools.review import PossibleError, QueuedFact, ReviewLog, ReviewQueue, possible_errors, review_queue
from anyburl.web.facts import Candidate, predicted_facts

SECONDS_TO_WAIT = 6.0
SECONDS_TO_SEARCH = 60.0
SECONDS_TO_SEARCH_ERRORS = 10.0
STACK, MOST_STACKS = 200, 32
AT_A_TIME = 8  # relations whose predictions are computed first


class BusyError(Exception):
    """The request cannot be answered now, but can be repeated later."""


class Predictions:
    """The new facts about an entity, as far as they were found."""

    def __init__(self) -> None:
        self.best: list[Candidate] = []
        self.search: Future[None] | None = None
        self.is_closed = False

    def find(self, reasoner: Reasoner, entity: str, top: int, per_question: int) -> None:
        """Search through the relations, a few at a time."""
        for best in predicted_facts(reasoner, entity, top=top, per_question=per_question, at_a_time=AT_A_TIME):
            self.best = best
            if self.is_closed:
                raise BusyError("the explorer is being closed")


class Desk(Protocol):
    """Where facts wait for a verdict: a `ReviewDesk`, or what stands for that of another process."""

    def waiting(self, relation: str | None) -> list[QueuedFact] | None: ...
    def possible_errors(self) -> list[PossibleError]: ...


class TheoryWriter(Protocol):
    """Writes what the rules say: a `Reporter`, or what stands for that of another process."""

    def theory(self, seconds: float) -> Theory | None: ...


@dataclass(frozen=True)
class Background:
    """What takes long and is done once, however many processes answer requests."""

    desk: Desk
    reporter: TheoryWriter

    def close(self) -> None:
        """End what this process does."""
        for worker in (self.desk, self.reporter):
            if isinstance(worker, ReviewDesk | Reporter):
                worker.close()


class Reporter:
    """Writes what the rules say, in plain words, in a thread of its own."""

    def __init__(self, reasoner: Reasoner) -> None:
        self._reasoner = reasoner
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-report")
        self._lock = Lock()
        self._theory: Future[Theory] | None = None
        self._is_closed = False

    def theory(self, seconds: float) -> Theory | None:
        """Return what the rules say; None if that takes longer than this."""
        with self._lock:
            if self._theory is None:
                self._theory = self._pool.submit(self._write)
        return self._theory.result() if wait([self._theory], seconds).done else None

    def _write(self) -> Theory:
        reasoner = self._reasoner
        return make_theory(
            reasoner.rules,
            reasoner.dataset,
            names=reasoner.names,
            object_identity=reasoner.options.object_identity,
            progress=self._check_open,
        )

    def _check_open(self, n_done: int) -> None:
        if self._is_closed:
            raise BusyError("the explorer is being closed")

    def close(self) -> None:
        """Stop writing."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)


class ReviewDesk:
    """Predicted facts without a verdict, best first, of all relations or of one.

    One thread searches for them in the background, a stack of facts per relation, so pages stay responsive.
    """

    def __init__(self, reasoner: Reasoner, log: ReviewLog) -> None:
        self.log = log
        self._reasoner = reasoner
        self._stacks: dict[str | None, Future[ReviewQueue]] = {}
        self._errors: Future[tuple[PossibleError, ...]] | None = None
        self._lock = Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="anyburl-desk")

    def waiting(self, relation: str | None) -> list[QueuedFact] | None:
        """Return the facts without a verdict; None while the search runs. It starts again when all have a verdict."""
        stack, queue = self._searched(relation)
        facts = None if queue is None else self._unjudged(queue.facts)
        if queue is None or facts or (queue.is_complete and not queue.facts):
            return facts
        self._drop(relation, stack)
        _, queue = self._searched(relation)
        return None if queue is None else self._unjudged(queue.facts)

    def possible_errors(self) -> list[PossibleError]:
        """Return stated facts that strong rules contradict, without those that were judged; none before the search is
        done, which begins with the first call.
        """
        with self._lock:
            if self._errors is None:
                self._errors = self._pool.submit(
                    possible_errors, self._reasoner, self.log, seconds=SECONDS_TO_SEARCH_ERRORS
                )
            search = self._errors
        if not search.done() or search.cancelled() or search.exception() is not None:
            return []
        judged = self.log.standing()
        return [one for one in search.result() if one.predicted.triple not in judged and one.stated not in judged]

    def _searched(self, relation: str | None) -> tuple[Future[ReviewQueue], ReviewQueue | None]:
        """Return a relation's search and its result, None while it runs; a failed search is repeated next time."""
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
                    self._stacks.pop(next(iter(self._stacks))).cancel()  # the oldest; no effect if it runs already
                self._stacks[relation] = self._pool.submit(self._search, relation)
            return self._stacks[relation]

    def _drop(self, relation: str | None, stack: Future[ReviewQueue]) -> None:
        """Forget a stack, unless another request has replaced it already."""
        with self._lock:
            if self._stacks.get(relation) is stack:
                del self._stacks[relation]

    def _search(self, relation: str | None) -> ReviewQueue:
        return review_queue(self._reasoner, self.log, relation=relation, top=STACK, seconds=SECONDS_TO_SEARCH)

    def _unjudged(self, facts: Sequence[QueuedFact]) -> list[QueuedFact]:
        judged = self.log.standing()
        return [fact for fact in facts if fact.triple not in judged]

    def close(self) -> None:
        """Cancel searches that have not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)
