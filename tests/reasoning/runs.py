"""What the tests of reasoning share: a small run folder on data that may change, and what a reasoner says."""

from __future__ import annotations

import random
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import anyburl
from anyburl import Reasoner
from anyburl.reasoning.opening import Feedback
from anyburl.reasoning.prepared import CARD, PREPARED

Triple = tuple[str, str, str]


def people(seed: int = 0) -> list[Triple]:
    """Where people live, what is spoken there, and what they speak, with some chance."""
    rng = random.Random(seed)
    cities = [f"city{i}" for i in range(8)]
    triples = [(city, "lang", f"lang{i % 3}") for i, city in enumerate(cities)]
    for i in range(60):
        city = rng.choice(cities)
        triples.append((f"p{i:02}", "lives", city))
        triples.append((f"p{i:02}", "speaks", f"lang{(cities.index(city) if rng.random() < 0.8 else i) % 3}"))
        triples.append((f"p{i:02}", "knows", f"p{rng.randrange(60):02}"))
    return sorted(set(triples))


def write_data(folder: Path, seed: int = 0) -> Path:
    """Write a folder with train, valid and test; every split has facts of all kinds."""
    folder.mkdir(exist_ok=True)
    triples = people(seed)
    random.Random(1).shuffle(triples)
    for name, part in (("train", triples[40:]), ("valid", triples[20:40]), ("test", triples[:20])):
        (folder / f"{name}.txt").write_text("".join(f"{s}\t{r}\t{o}\n" for s, r, o in part))
    return folder


def make_run(folder: Path) -> Path:
    """Learn a few hundred rules on data beside the run; return the run."""
    data = write_data(folder / "data")
    anyburl.learn(data, paths=2000, max_cyclic=2, seed=1, threads=1, out=folder / "run")
    return folder / "run"


def copy_run(run: Path, folder: Path) -> Path:
    """Copy a prepared run and its data to another folder, with their times; return the copy of the run."""
    shutil.copytree(run.parent, folder)
    copied = folder / run.name
    for file in (copied / "options.json", copied / PREPARED / CARD):  # the copy is a run on the copied data
        file.write_text(file.read_text().replace(str(run.parent), str(folder)))
    return copied


class Heard:
    """Feedback that is remembered."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.doing: list[str] = []
        self.remarks: list[str] = []

    @property
    def feedback(self) -> Feedback:
        return Feedback(say=self.notes.append, note=self.remarks.append, watch=self._watch)

    def _watch(self, doing: str, done: str) -> AbstractContextManager[object]:
        self.doing.append(doing)
        return nullcontext()

    @property
    def prepared(self) -> list[str]:
        """What was said when a run was prepared: once for each time."""
        return [remark for remark in self.remarks if remark.startswith("preparing")]

    @property
    def tuned(self) -> list[str]:
        """What was said when a model was trained."""
        return [doing for doing in self.doing if doing.startswith("tuning")]


def open_run(run: Path, **options: Any) -> tuple[Reasoner, Heard]:
    """Open a run; return what it said, too."""
    heard = Heard()
    return Reasoner.open(run, feedback=heard.feedback, **{"threads": 1, **options}), heard


def told(reasoner: Reasoner) -> list[object]:
    """Rankings, metrics, predictions and an explanation, as plain values."""
    triples = reasoner.dataset.test.to_polars().rows()
    queries = [(s, r, None) for s, r, _ in triples] + [(None, r, o) for _, r, o in triples]
    metrics = reasoner.evaluate()
    return [
        metrics.metrics,
        metrics.protocol,
        reasoner.rank().rows(),
        reasoner.predict(queries, top=5).rows(),
        reasoner.predict(queries, top=5, include_known=True).rows(),
        [reasoner.explain(triple).to_json() for triple in triples],
    ]
