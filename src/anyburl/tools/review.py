"""`ReviewLog`: people's verdicts on facts in an append-only file, and the queue of predicted facts that wait for one.

A verdict is one JSON line; nothing is written through a link. Any number of readers, tabs and processes may write at
once. A line truncated by a crash affects no other: the next one starts on a new line. Accepted facts can be written as
triple files. The queue holds predicted facts that nobody has judged yet, the best first, as far as found within
a time limit.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Self
from uuid import uuid4

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import AnyburlError, DataError, InvalidOptionError, RunError
from anyburl.base.files import alone, at_home, is_text, open_to_read
from anyburl.base.writing import append_line, replacing
from anyburl.data.files import write_triples
from anyburl.data.formats.delimited import is_csv
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.terms import rdf_term
from anyburl.reasoning.completion.conflicts import NOTHING
from anyburl.reasoning.completion.facts import LEVELS, FactColumns
from anyburl.reasoning.completion.hiding import LEAST_PROBABILITY
from anyburl.reasoning.completion.search import Narrowed, missing_facts
from anyburl.reasoning.reasoner import Reasoner

VERDICTS = ("accepted", "rejected", "withdrawn")
LONGEST_NOTE = 10_000
LONGEST_LABEL = 100_000

Fact = tuple[str, ...]
"""Subject, relation and object; of a history, the moment as well."""
N_PARTS = (3, 4)  # of a fact without a moment, and with one


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Review:
    """What a reader says about a fact; "withdrawn" takes an earlier verdict back."""

    triple: Fact
    verdict: str
    note: str = ""
    reader: str = ""
    time: str = field(default_factory=_now)
    id: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        object.__setattr__(self, "triple", tuple(self.triple))
        texts = (*self.triple, self.verdict, self.note, self.reader, self.time, self.id)
        if len(self.triple) not in N_PARTS or not all(isinstance(text, str) for text in texts):
            raise DataError(f"expected a review of a subject, a relation and an object, got {self.triple!r:.200}")
        if not all(0 < len(label) <= LONGEST_LABEL and is_text(label) for label in self.triple):
            raise DataError("expected a review of a fact with labels, got one that is empty, far too long or no text")
        if self.verdict not in VERDICTS:
            raise InvalidOptionError("verdict", f"one of {', '.join(VERDICTS)}", self.verdict)
        for name in ("note", "reader"):
            if len(getattr(self, name)) > LONGEST_NOTE:
                raise InvalidOptionError(name, f"at most {LONGEST_NOTE:,} characters", f"{getattr(self, name)[:20]}...")

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "id": self.id,
            "time": self.time,
            "triple": list(self.triple),
            "verdict": self.verdict,
            "note": self.note,
            "reader": self.reader,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return a review that was stored; what is none is a `DataError` or an `InvalidOptionError`."""
        try:
            return cls(**{name: stored[name] for name in ("triple", "verdict", "note", "reader", "time", "id")})
        except (KeyError, TypeError) as error:
            raise DataError(f"expected a review, got {stored!r:.200}") from error


RDF = (".nt", ".ttl", ".nt.gz", ".ttl.gz")


def write_facts(facts: Sequence[Fact], path: Path) -> None:
    """Write facts by the suffix of the file: RDF, or tab-separated."""
    if not path.name.lower().endswith(RDF):
        write_triples(pl.DataFrame(list(facts), schema=dict.fromkeys(COLUMNS, pl.String), orient="row"), path)
        return
    text = "".join(_statement(fact) for fact in facts).encode()
    with replacing(path) as unfinished:
        unfinished.write_bytes(gzip.compress(text, mtime=0) if path.name.lower().endswith(".gz") else text)


def write_reviews(reviews: Sequence[Review], path: Path) -> None:
    """Write facts as CSV, with what readers said; `time` is the moment of a fact that has one."""
    remarks = ("note", "reader", "judged")
    rows = [
        (*review.triple, *[None] * (N_PARTS[1] - len(review.triple)), review.note, review.reader, review.time)
        for review in reviews
    ]
    frame = pl.DataFrame(rows, schema=dict.fromkeys((*COLUMNS, "time", *remarks), pl.String), orient="row")
    if frame["time"].null_count() == len(frame):
        frame = frame.drop("time")
    with replacing(path) as unfinished:
        frame.write_csv(unfinished)


def _statement(fact: Fact) -> str:
    """Return a line of N-Triples, which is Turtle, too."""
    terms = (rdf_term(label, is_object=position == "object") for position, label in zip(COLUMNS, fact, strict=True))
    return f"{' '.join(terms)} .\n"


FILE = "reviews.jsonl"
"""What the log of a run folder is called."""


Edition = tuple[int, ...] | None
"""Differs whenever a log has changed; None if there is none."""


class ReviewLog:
    """The verdicts in one file; it need not exist yet."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = at_home(path)
        self._mutex = Lock()
        self._forget()

    @classmethod
    def of_run(cls, run: str | os.PathLike[str]) -> ReviewLog:
        """Return the log of a run folder."""
        return cls(Path(run) / FILE)

    def record(self, triple: Fact, verdict: str, note: str = "", reader: str = "") -> Review:
        """Append a verdict ("accepted", "rejected", "withdrawn"); it is on disk when this returns."""
        review = Review(triple, verdict, note, reader)
        line = json.dumps(review.to_json(), ensure_ascii=False).encode("utf-8", "backslashreplace")
        try:
            with alone(self.path.with_name(f".{self.path.name}.lock")):
                append_line(self.path, line, synced=True)
        except OSError as refusal:
            raise RunError(f"{self.path}: cannot write the review ({refusal.strerror or refusal})") from refusal
        return review

    def edition(self) -> Edition:
        """Return a value that changes with every verdict, whichever process records it."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_size

    def latest(self) -> dict[Fact, Review]:
        """Return the last review of each fact, the most recent last, including those that withdraw a verdict."""
        with self._mutex:
            self._read_new()
            return dict(self._latest)

    def standing(self) -> dict[Fact, Review]:
        """Return the verdicts that were not withdrawn."""
        return {triple: review for triple, review in self.latest().items() if review.verdict != "withdrawn"}

    def verdict_on(self, triple: Fact) -> str | None:
        """Return the verdict on a fact, None if there is none or it was withdrawn."""
        with self._mutex:
            self._read_new()
            review = self._latest.get(triple)
        return None if review is None or review.verdict == "withdrawn" else review.verdict

    def counts(self, relation: str | None = None) -> dict[str, int]:
        """Return how many facts, of one relation or of all, are accepted and rejected."""
        counts = Counter(review.verdict for triple, review in self.standing().items() if relation in (None, triple[1]))
        return {verdict: counts[verdict] for verdict in ("accepted", "rejected")}

    def precision(self, relation: str | None = None) -> float | None:
        """Return the share of judged facts that were accepted; None if none was judged."""
        counts = self.counts(relation)
        judged = sum(counts.values())
        return counts["accepted"] / judged if judged else None

    @property
    def n_skipped(self) -> int:
        """How many lines are not reviews: truncated by a crash, or written by something else."""
        with self._mutex:
            self._read_new()
            return self._n_skipped

    def apply_to(self, reasoner: Reasoner) -> None:
        """Apply the verdicts: accepted facts are stated, judged ones are not proposed, and probabilities change."""
        reasoner.apply_verdicts(*self.judged(N_PARTS[0]))

    def judged(self, n_parts: int) -> tuple[list[Any], list[Any]]:
        """Return the accepted and the rejected facts, either of a graph (three parts) or of a history (four)."""
        standing = [(fact, one.verdict) for fact, one in self.standing().items() if len(fact) == n_parts]
        accepted, rejected = ([fact for fact, own in standing if own == verdict] for verdict in VERDICTS[:2])
        return accepted, rejected

    def by_rule(self, reasoner: Reasoner) -> dict[int, tuple[int, int]]:
        """Return, by the row of a rule, how many of its predictions were accepted, and how many were judged."""
        standing = self.standing()
        triples = reasoner.ids_of([fact for facts in self.judged(N_PARTS[0]) for fact in facts])
        words = reasoner.vocabulary
        facts, _ = reasoner.judge.look_up(triples)
        counts: dict[int, tuple[int, int]] = {}
        for row, triple in zip(facts.rules.tolist(), triples.tolist(), strict=True):
            if row >= 0:
                accepted, judged = counts.get(row, (0, 0))
                verdict = standing[words.triple_labels(*triple)].verdict
                counts[row] = accepted + (verdict == "accepted"), judged + 1
        return counts

    def export_triples(self, path: str | os.PathLike[str]) -> int:
        """Write the accepted facts; return how many.

        They are tab-separated (.gz, .zst: compressed) or RDF (.nt, .ttl), or a table with notes, readers and when they
        were judged (.csv).
        """
        path, accepted = Path(path), [review for review in self.standing().values() if review.verdict == "accepted"]
        if is_csv(path):
            write_reviews(accepted, path)
        else:
            write_facts([review.triple for review in accepted], path)
        return len(accepted)

    def _forget(self) -> None:
        self._latest: dict[Fact, Review] = {}
        self._offset, self._file, self._n_skipped = 0, (0, 0), 0

    def _read_new(self) -> None:
        """Read the whole lines that were appended since; all of them, if the file is another one."""
        try:
            status = os.stat(self.path)  # pages look for every fact: opening costs much more
            if (status.st_dev, status.st_ino, status.st_size) == (*self._file, self._offset):
                return
            with open_to_read(self.path) as file:
                status = os.fstat(file.fileno())
                if (status.st_dev, status.st_ino) != self._file or status.st_size < self._offset:
                    self._forget()
                    self._file = status.st_dev, status.st_ino
                file.seek(self._offset)
                whole = file.read(status.st_size - self._offset).rpartition(b"\n")[0]
        except FileNotFoundError:
            self._forget()
            return
        except OSError as refusal:
            raise RunError(f"{self.path}: cannot read the reviews ({refusal.strerror or refusal})") from refusal
        if whole:
            self._offset += len(whole) + 1
            for line in whole.split(b"\n"):
                self._take(line)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            review = Review.from_json(json.loads(line))
        except (ValueError, RecursionError, AnyburlError):
            self._n_skipped += 1
            return
        self._latest.pop(review.triple, None)
        self._latest[review.triple] = review


FEW_LEVELS = (0.5,)
"""Scores to begin with where only one relation is searched: to start a search takes as long as to go through it."""

N_STEPS = 20  # of probabilities: facts in the same one are about equally likely


@dataclass(frozen=True)
class QueuedFact:
    """A predicted fact that waits for a verdict; `probability` is None where scores are not calibrated."""

    triple: Fact
    score: float
    probability: float | None
    rule: str
    n_rules: int


@dataclass(frozen=True)
class ReviewQueue:
    """Facts that wait, the best first.

    If `is_complete`, there are no better ones; if not, time was up before everything was searched.
    """

    facts: tuple[QueuedFact, ...]
    is_complete: bool

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[QueuedFact]:
        return iter(self.facts)


class _TimeIsUp(Exception):  # noqa: N818
    """Ends a search."""


def review_queue(
    reasoner: Reasoner,
    log: ReviewLog,
    *,
    relation: str | None = None,
    top: int = 50,
    min_score: float = 0.3,
    seconds: float = 5.0,
) -> ReviewQueue:
    """Return the `top` best facts that no split states or contradicts and no standing verdict covers, of one relation
    or of all, see `review_order`.

    Likely facts (before calibration, those with high scores) are searched first, and the search ends once there are
    enough of them, or after about this many seconds.
    """
    checking.whole("top", top, 1, checking.MOST_KEPT)
    if not 0 <= min_score <= 1:
        raise InvalidOptionError("min_score", "from 0 to 1", min_score)
    relation_id = None if relation is None else reasoner.vocabulary.relation_id(relation)
    search = _Search(reasoner, log, top, min_score, time.monotonic() + seconds)
    best, is_complete = FactColumns.empty(), False
    lowest = min_score if reasoner.calibration is None else 0.0
    levels = LEVELS if relation is None else FEW_LEVELS
    for level in [*(level for level in levels if level > lowest), lowest]:
        best, is_complete = search.above(level, relation_id)
        if not is_complete or (
            len(best) == top and surest(best, reasoner.judge.likely(reasoner.calibration, best)).min() >= level
        ):
            break
    return ReviewQueue(_facts(reasoner, best), is_complete)


class _Search:
    """Looks for facts that wait until time is up."""

    def __init__(self, reasoner: Reasoner, log: ReviewLog, top: int, min_score: float, end: float) -> None:
        self._reasoner, self._top, self._min_score, self._end = reasoner, top, min_score, end
        log.apply_to(reasoner)

    def above(self, level: float, relation: int | None) -> tuple[FactColumns, bool]:
        """Return the facts to look at first, and whether none was left out that is at least as likely as `level`."""
        reasoner, best, calibration = self._reasoner, FactColumns.empty(), self._reasoner.calibration
        n_relations = reasoner.vocabulary.n_relations
        scores = np.full(n_relations, level) if calibration is None else calibration.least_scores(level)
        chosen = np.isin(np.arange(n_relations), np.arange(n_relations) if relation is None else relation)
        least = np.where(chosen, np.maximum(scores, self._min_score), np.inf)
        try:
            narrowed = Narrowed(reasoner.judge.conflicts.properties.one_object, self._floors(level))
            ranker, dataset = reasoner.judge.ranker, reasoner.dataset
            proposals = missing_facts(ranker, dataset, least, narrowed=narrowed, progress=self._watch)
            for facts in proposals:
                facts = replace(facts, contexts=reasoner.judge.contexts_of(facts))
                joined = FactColumns.concat([best, facts.take(reasoner.judge.may_be_proposed(facts))])
                best = joined.take(
                    review_order(joined, reasoner.judge.likely(reasoner.calibration, joined))[: self._top]
                )
        except _TimeIsUp:
            return best, False
        return best, True

    def _floors(self, level: float) -> NDArray[np.float64]:
        """Return for each relation the score by rules below which the model need not score a fact."""
        calibration = self._reasoner.calibration
        if calibration is None or level < LEAST_PROBABILITY:
            return np.zeros(self._reasoner.vocabulary.n_relations)
        return calibration.floors

    def _watch(self, _: int) -> None:
        if time.monotonic() > self._end:
            raise _TimeIsUp


INSISTENT = 0.8  # the least score of a fact that makes a stated one a possible error


@dataclass(frozen=True)
class PossibleError:
    """A fact that strong rules predict, and the stated one that contradicts it: one of the two is wrong."""

    predicted: QueuedFact
    stated: Fact


def possible_errors(
    reasoner: Reasoner, log: ReviewLog, *, top: int = 20, seconds: float = 5.0
) -> tuple[PossibleError, ...]:
    """Return the `top` contradictions between stated facts and rules with the highest scores, those with a verdict left
    out; what was found after about this many seconds.
    """
    checking.whole("top", top, 1, checking.MOST_KEPT)
    log.apply_to(reasoner)
    end, best, judge = time.monotonic() + seconds, FactColumns.empty(), reasoner.judge

    def watch(_: int) -> None:
        if time.monotonic() > end:
            raise _TimeIsUp

    least = np.full(reasoner.vocabulary.n_relations, INSISTENT)
    with suppress(_TimeIsUp):
        for facts in missing_facts(reasoner.ranker.lister(), reasoner.dataset, least, progress=watch):
            joined = FactColumns.concat([best, facts.take(judge.conflicts.find(facts.triples) != NOTHING)])
            best = joined.take(np.lexsort((*joined.triples.T, -joined.n_rules, -joined.scores))[:top])
    stated, judged = judge.stated_facts(best.triples, judge.conflicts.find(best.triples)), log.standing()
    return tuple(
        PossibleError(predicted, fact)
        for predicted, fact in zip(_facts(reasoner, best), stated, strict=True)
        if fact is not None and predicted.triple not in judged and fact not in judged
    )


def surest(facts: FactColumns, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the best that is known of each fact: its probability or, where that is nan, its score."""
    return np.where(np.isnan(probabilities), facts.scores, probabilities)


def review_order(facts: FactColumns, probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return facts in the order in which they are worth a look: the likely ones first, and of facts that are about
    equally likely, one of each relation, then a second one, and so on: a reader learns most from what is different.
    """
    subjects, relations, objects = facts.triples.T
    sure = surest(facts, probabilities)
    steps = np.floor(sure * N_STEPS)
    order = np.lexsort((objects, subjects, -facts.n_rules, -sure, relations, -steps))
    starts = np.ones(len(order), np.bool_)
    starts[1:] = (relations[order][1:] != relations[order][:-1]) | (steps[order][1:] != steps[order][:-1])
    turns = np.empty(len(order), np.int64)
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    turns[order] = np.arange(len(order)) - first
    return np.lexsort((objects, relations, subjects, -facts.n_rules, -sure, turns, -steps))


def _facts(reasoner: Reasoner, best: FactColumns) -> tuple[QueuedFact, ...]:
    """Return facts as objects, in their order."""
    sure, labels = reasoner.judge.likely(reasoner.calibration, best), reasoner.vocabulary
    return tuple(
        QueuedFact(
            labels.triple_labels(*best.triples[row].tolist()),
            score=float(best.scores[row]),
            probability=None if np.isnan(sure[row]) else float(sure[row]),
            rule=str(reasoner.rules.rule(int(best.rules[row]))),
            n_rules=int(best.n_rules[row]),
        )
        for row in range(len(best))
    )
