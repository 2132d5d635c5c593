"""Negatives: the candidates that the answers of each question are ranked against, read from a file.

Benchmarks such as TGB draw them once and hand them out, so that everybody ranks against the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import AnyburlError, DataError
from anyburl.base.files import lines_of
from anyburl.temporal.arrays import QuestionArrays
from anyburl.temporal.facts import TemporalDataset

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Question = tuple[int, int, int]  # entity, directed relation, step of the clock

EXPECTED = "expected subject, relation, object and time, one of the two entities ?, and then the negatives"


@dataclass(frozen=True)
class Negatives:
    """The negatives of questions, by question; `name` is that of their file."""

    name: str
    lists: dict[Question, Ids]

    @classmethod
    def read(cls, path: Path, dataset: TemporalDataset) -> Negatives:
        """Read lines of a question and its negatives, separated by tabs: `Croatia adopts ? 2023 Dinar Lev`."""
        words, steps, lists = dataset.vocabulary, dict[str, int](), dict[Question, Ids]()
        for number, line in lines_of(path, "negatives", DataError).items():
            fields = line.split("\t")
            if len(fields) < 5 or (fields[0] == "?") == (fields[2] == "?"):
                raise DataError(f"{path}:{number}: {EXPECTED}, got {line[:200]!r}")
            subject, relation, object, moment, *labels = fields
            try:
                if moment not in steps:
                    steps[moment] = dataset.clock.step(moment)
                directed = words.relation_id(relation) + (words.n_relations if subject == "?" else 0)
                entity = words.entity_id(object if subject == "?" else subject)
                negatives = words.encode_entities(labels)
                if (negatives < 0).any():
                    words.entity_id(labels[int((negatives < 0).argmax())])  # which says what is similar
            except AnyburlError as error:
                raise DataError(f"{path}:{number}: {error}") from error
            question = (entity, directed, steps[moment])
            if question in lists:
                raise DataError(f"{path}:{number}: expected each question once, got {line[:200]!r} again")
            lists[question] = negatives
        if not lists:
            raise DataError(f"{path}: {EXPECTED}, got an empty file")
        return cls(path.name, lists)

    def of_questions(self, entities: Ints, relations: Ints, times: Ints, dataset: TemporalDataset) -> list[Ids]:
        """Return the negatives of each question; a question without any is an error."""
        questions = list(zip(entities.tolist(), relations.tolist(), times.tolist(), strict=True))
        missing = [question for question in questions if question not in self.lists]
        if missing:
            (entity, directed, step), words = missing[0], dataset.vocabulary
            label, relation = words.entity_label(entity), words.relation_label(directed % words.n_relations)
            ends = (label, relation, "?") if directed < words.n_relations else ("?", relation, label)
            raise DataError(
                f"{self.name}: expected negatives for every question, and {len(missing):,} of {len(questions):,} have "
                f"none, the first of them {' '.join(ends)} {dataset.clock.label(step)}"
            )
        return [self.lists[question] for question in questions]


def against(questions: QuestionArrays, start: int, stop: int, negatives: list[Ids], n_entities: int) -> QuestionArrays:
    """Return the questions from `start` to before `stop`, with everything excluded that is not among their negatives.

    Answers of a question are never negatives of each other.
    """
    is_out = np.ones((stop - start, n_entities), np.bool_)
    first, last = int(questions.answer_offsets[start]), int(questions.answer_offsets[stop])
    offsets = questions.answer_offsets[start : stop + 1] - first
    for row, rivals in enumerate(negatives[start:stop]):
        is_out[row, rivals] = False
    answers = questions.answers[first:last]
    is_out[np.repeat(np.arange(stop - start), np.diff(offsets)), answers] = True
    return QuestionArrays(
        questions.entities[start:stop],
        questions.relations[start:stop],
        questions.before[start:stop],
        questions.now[start:stop],
        offsets,
        answers,
        np.append(0, np.cumsum(is_out.sum(axis=1))),
        np.nonzero(is_out)[1].astype(np.int32),
    )
