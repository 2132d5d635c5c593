"""`ReviewLog`: verdicts in an append-only file, one JSON line each; nothing is written through a link.

Any number of readers, tabs and processes may write to it at once. A line truncated by a crash affects no other: the
next one starts on a new line.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from threading import Lock

from anyburl.errors import AnyburlError, RunError
from anyburl.locks import alone
from anyburl.reading import at_home, open_to_read
from anyburl.review.export import write_facts
from anyburl.review.review import Fact, Review
from anyburl.writing import append_line

FILE = "reviews.jsonl"
"""What the log of a run folder is called."""


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

    def latest(self) -> dict[Fact, Review]:
        """Return the last review of each fact, the most recent last, including those that withdraw a verdict."""
        with self._mutex:
            self._read_new()
            return dict(self._latest)

    def standing(self) -> dict[Fact, Review]:
        """Return the verdicts that were not withdrawn."""
        return {triple: review for triple, review in self.latest().items() if review.verdict != "withdrawn"}

    def counts(self, relation: str | None = None) -> dict[str, int]:
        """Return how many facts, of one relation or of all, are accepted and rejected."""
        found = Counter(review.verdict for triple, review in self.standing().items() if relation in (None, triple[1]))
        return {verdict: found[verdict] for verdict in ("accepted", "rejected")}

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

    def export_triples(self, path: str | os.PathLike[str]) -> int:
        """Write the accepted facts, tab-separated (.gz, .zst: compressed) or as RDF (.nt, .ttl); return how many."""
        accepted = [triple for triple, review in self.standing().items() if review.verdict == "accepted"]
        write_facts(accepted, Path(path))
        return len(accepted)

    def _forget(self) -> None:
        self._latest: dict[Fact, Review] = {}
        self._offset, self._file, self._n_skipped = 0, (0, 0), 0

    def _read_new(self) -> None:
        """Read the whole lines that were appended since; all of them, if the file is another one."""
        try:
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
