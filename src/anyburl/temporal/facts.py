"""`TemporalFacts` and `TemporalDataset`: facts with the steps of a clock; how to load and to split them."""

from __future__ import annotations

import csv
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import choose_options
from anyburl.base.errors import DataError, InvalidOptionError
from anyburl.base.files import first_bytes
from anyburl.base.machine import check_not_forked
from anyburl.data.clock import (
    EXPECTED,
    NO_TIME,
    SHOWN,
    Clock,
    Moments,
    Steps,
    chosen_clock,
    infer_clock,
    read_compact_dates,
)
from anyburl.data.files import SPLITS, is_parquet
from anyburl.data.formats.delimited import is_csv, read_blocks
from anyburl.data.formats.frames import TriplesLike, label_frame
from anyburl.data.names import Names
from anyburl.data.options import COLUMNS, RECOGNISED, Gathered, ReadOptions
from anyburl.data.sources import located, reporting
from anyburl.data.table import LabelCoder, fingerprint
from anyburl.data.vocabulary import Vocabulary

Ids = NDArray[np.int32]

NEVER = np.iinfo(np.int64).max
"""The end of a fact that has not ended."""


@dataclass(frozen=True, eq=False)
class TemporalFacts:
    """Facts in the order of time, without repetitions; equal times are in the order of subject, relation and object.

    `times` are steps of a clock. `ends` is None if facts are events; otherwise a fact holds from its time to its end,
    both included, and one that has not ended has the end `NEVER`.
    """

    subjects: Ids
    relations: Ids
    objects: Ids
    times: Steps
    ends: Steps | None = None

    @classmethod
    def of(cls, columns: Sequence[Ids], times: Steps, ends: Steps | None = None) -> TemporalFacts:
        """Sort facts by time and drop repetitions; the columns are subjects, relations and objects."""
        frame = pl.DataFrame({"time": times, **dict(zip(COLUMNS, columns, strict=True))})
        frame = frame if ends is None else frame.with_columns(end=pl.Series(ends, dtype=pl.Int64))
        frame = frame.unique().sort("time", *COLUMNS, *(() if ends is None else ("end",)))
        subjects, relations, objects = (frame[name].cast(pl.Int32).to_numpy() for name in COLUMNS)
        steps, last = frame["time"].cast(pl.Int64).to_numpy(), None if ends is None else frame["end"].to_numpy()
        for column in (subjects, relations, objects, steps, last):
            if column is not None:
                column.setflags(write=False)
        return cls(subjects, relations, objects, steps, last)

    @classmethod
    def none(cls, *, with_ends: bool = False) -> TemporalFacts:
        """Return no facts."""
        ids, steps = np.empty(0, np.int32), np.empty(0, np.int64)
        return cls.of([ids, ids, ids], steps, steps if with_ends else None)

    def __len__(self) -> int:
        return len(self.times)

    def between(self, start: int, end: int) -> TemporalFacts:
        """Return the facts from the step `start` to before the step `end`."""
        first, last = np.searchsorted(self.times, [start, end])
        ends = None if self.ends is None else self.ends[first:last]
        subjects, relations, objects = (column[first:last] for column in (self.subjects, self.relations, self.objects))
        return TemporalFacts(subjects, relations, objects, self.times[first:last], ends)

    @property
    def triples(self) -> Ids:
        """The facts without their times, as an (n, 3) array of ids."""
        return np.stack([self.subjects, self.relations, self.objects], axis=1)


@dataclass(frozen=True, eq=False)
class TemporalDataset:
    """Three splits of facts with times, over one vocabulary and one clock; the first fact of all is at step 0.

    `reading` records how the data was read, `names` holds readable names of labels, `left_out` counts statements that
    did not become facts, and `n_duplicates` repetitions were dropped.
    """

    vocabulary: Vocabulary
    clock: Clock
    train: TemporalFacts
    valid: TemporalFacts
    test: TemporalFacts
    name: str = "facts"
    source: str | None = None
    reading: ReadOptions = field(default=ReadOptions(), repr=False)
    names: Names = field(default_factory=Names, repr=False)
    left_out: Mapping[str, int] = field(default_factory=dict, repr=False)
    n_duplicates: int = 0

    def split(self, name: str) -> TemporalFacts:
        """Return a split by its name."""
        if name not in SPLITS:
            raise InvalidOptionError("split", "train, valid or test", name)
        facts: TemporalFacts = getattr(self, name)
        return facts

    def splits_stating(self, subject: int, relation: int, object: int, step: int) -> tuple[str, ...]:
        """Return the names of the splits that state a fact at a step."""
        names = []
        for name in SPLITS:
            facts = self.split(name).between(step, step + 1)
            same = (facts.subjects == subject) & (facts.relations == relation) & (facts.objects == object)
            names += [name] if same.any() else []
        return tuple(names)

    @cached_property
    def fingerprint(self) -> str:
        """A digest of labels, times and facts: the same data in another order has the same fingerprint."""
        digest = hashlib.blake2b(f"{fingerprint(self.vocabulary, [])}{self.clock.to_json()}".encode(), digest_size=16)
        for split in SPLITS:
            facts = self.split(split)
            digest.update(f"\0{len(facts)}\0".encode())
            for column in (facts.subjects, facts.relations, facts.objects, facts.times, facts.ends):
                digest.update(b"" if column is None else np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()

    @property
    def steps(self) -> tuple[int, int]:
        """The first and the last step at which a fact begins."""
        times = [facts.times[[0, -1]] for split in SPLITS if len(facts := self.split(split))]
        return (int(min(first for first, _ in times)), int(max(last for _, last in times))) if times else (0, 0)

    @property
    def words(self) -> str:
        """How times are counted, in words: 365 days from 2014-01-01 to 2014-12-31."""
        first, last = self.steps
        return (
            f"times are counted {self.clock.words}: {self.clock.duration(last - first + 1)} "
            f"from {self.clock.label(first)} to {self.clock.label(last)}"
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{split} {len(self.split(split))}" for split in SPLITS)
        words = self.vocabulary
        return (
            f"TemporalDataset({self.name!r}: {counts}; {words.n_entities} entities, {words.n_relations} relations, "
            f"{self.words})"
        )


TemporalLike = str | os.PathLike[str] | TemporalDataset | TriplesLike
"""A data set by name, folder or file; or facts in a frame, array or list, with a time as the fourth part."""


def load_temporal_dataset(
    source: TemporalLike,
    options: ReadOptions | None = None,
    progress: Callable[[int], None] = lambda n_facts: None,
    **keywords: Any,
) -> TemporalDataset:
    """Load facts with times: by name, from a folder, a file or a database, or from a frame, an array or a list.

    A time is a whole number, a date, or a date and time, in the fourth column or in the one that `time` names; two
    columns are the begin and the end of a fact. `granularity` says how long a step is, by default as long as tells all
    times apart. Data without splits becomes train, unless `split` (three shares, in the order of time) or `split_at`
    (where valid and test begin, or where test begins) divide it. The keywords are those of `ReadOptions`.
    """
    check_not_forked()
    if isinstance(source, TemporalDataset):
        return source
    reading = choose_options(ReadOptions, options, keywords)
    if not reading.has_times:
        reading = reading.changed(ReadOptions(time=(RECOGNISED,)))
    coder, gathered = _FactCoder(), Gathered()
    if not isinstance(source, str | os.PathLike):
        _code(coder, "train", [label_frame(source, reading.columns, 0, reading.time)], lambda row, text: f"row {row}")
        return coder.finish(reading, "facts", None, gathered)
    with located(source) as files:
        files.check_split(reading)
        if files.index is not None:
            raise DataError(f"{files.source} is an index, which has no times: pass the facts it was made of")
        reported = reporting(progress)
        for split in SPLITS:
            location = _where(files.files.get(split) if files.address is None else None, files.source)
            _code(coder, split, reported(files.batches(split, reading, gathered)), location)
        return coder.finish(reading, files.name, files.source, gathered)


Location = Callable[[int, str], str]
"""Returns where a text stands, given the number of its row: data/train.txt:17."""


def _where(file: Path | None, source: str) -> Location:
    def location(row: int, text: str) -> str:
        if file is None or is_parquet(file):
            return f"{file or source}: row {row + 1:,}"
        return f"{file}:{_line_of(file, text)}"

    return location


def _line_of(file: Path, text: str) -> int:
    """Return the number of the first line that has a text after its first field."""
    number = 0
    for block in read_blocks(file, first_bytes(file, "facts", DataError), 1 << 20):
        for line in block.decode(errors="replace").split("\n"):
            number += 1
            separator = "\t" if "\t" in line else None
            fields = next(csv.reader([line]), []) if is_csv(file) else line.rstrip("\r").split(separator)
            if text in fields[1:]:
                return number
        number -= 1  # blocks end with a line break
    return max(1, number)


class _FactCoder:
    """Collects the facts of all splits as codes, and turns them into ids and steps when all times are known."""

    def __init__(self) -> None:
        self._labels = LabelCoder()
        self._time_type = pl.Categorical(pl.Categories.random())
        self._kept = pl.Series([], dtype=self._time_type)  # Polars forgets categories that no Series has
        self._parts: dict[str, list[list[NDArray[Any]]]] = {split: [] for split in SPLITS}
        self._locations: dict[str, Location] = {}
        self.has_ends = False

    def add(self, split: str, batch: pl.DataFrame, location: Location) -> None:
        """Add facts of a split."""
        self._locations[split] = location
        gap = batch["time"].is_null() | (batch["time"].str.strip_chars() == "")
        if gap.any():
            row = self._n_rows(split) + int(gap.arg_max() or 0)
            raise DataError(f"{location(row, '')}: expected {EXPECTED}, got an empty one")
        self.has_ends |= "end" in batch.columns
        texts = [batch["time"], batch["end"] if "end" in batch.columns else pl.Series([""] * batch.height)]
        coded = [text.fill_null("").str.strip_chars().cast(self._time_type).to_physical().to_numpy() for text in texts]
        self._parts[split].append([*self._labels.encode(batch), *coded])

    def _n_rows(self, split: str) -> int:
        return sum(len(part[0]) for part in self._parts[split])

    def finish(self, reading: ReadOptions, name: str, source: str | None, gathered: Gathered) -> TemporalDataset:
        """Return the data set."""
        codes = {
            split: [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else []
            for split, parts in self._parts.items()
        }
        n_facts = sum(len(columns[0]) for columns in codes.values() if columns)
        if not n_facts:
            raise DataError(f"{source or name}: expected at least one fact with a time, got none")
        vocabulary, ids = self._labels.finish()
        texts = self._time_type.categories.to_series()
        clock, steps = self._clock(texts, codes, reading)
        splits = [self._facts(codes[split], ids, steps, split, texts) for split in SPLITS]
        if reading.split or reading.split_at:
            splits = split_by_time(splits[0], clock, reading)
        names = Names(gathered.names, {**gathered.prefixes, **reading.prefixes})
        train, valid, test = splits
        return TemporalDataset(
            vocabulary,
            clock,
            train,
            valid,
            test,
            name,
            source,
            reading,
            names,
            gathered.left_out,
            n_facts - sum(map(len, splits)),
        )

    def _clock(self, texts: pl.Series, codes: Mapping[str, list[Any]], reading: ReadOptions) -> tuple[Clock, Steps]:
        """Return the clock of all times, and the step of each text; an empty end is `NEVER`."""
        is_time = texts.str.len_chars().to_numpy() > 0
        times = read_compact_dates(texts.filter(pl.Series(is_time)))
        moments = Moments.of(times)
        rows = np.flatnonzero(is_time)
        if (wrong := np.flatnonzero(moments.exactness == NO_TIME)).size:
            text = texts[int(rows[wrong[0]])]
            raise DataError(f"{self._where(codes, int(rows[wrong[0]]), text)}: expected {EXPECTED}, got {text!r}")
        if reading.granularity is not None:
            clock = chosen_clock(reading.granularity, moments)
        else:
            other = np.flatnonzero(moments.exactness != moments.exactness[0])
            if other.size:
                self._refuse_mixed(codes, texts, rows, moments, int(other[0]))
            clock = infer_clock(times, moments)
        if inexact := clock.first_inexact(moments):
            text = texts[int(rows[inexact[0]])]
            raise DataError(
                f"{self._where(codes, int(rows[inexact[0]]), text)}: expected a time such as {clock.example}, got "
                f"{SHOWN[inexact[1]]}: {text!r}; --granularity chooses longer steps"
            )
        begins = np.concatenate([columns[3] for columns in codes.values() if columns])
        is_begin = np.zeros(len(texts), np.bool_)
        is_begin[begins] = True
        clock = clock.starting_at(moments.take(is_begin[is_time])) if clock.size == 1 else clock
        steps = np.full(len(texts), NEVER, np.int64)
        steps[is_time] = clock.steps(moments)
        return clock, steps

    def _refuse_mixed(
        self, codes: Mapping[str, list[Any]], texts: pl.Series, rows: NDArray[Any], moments: Moments, other: int
    ) -> None:
        first, text = texts[int(rows[0])], texts[int(rows[other])]
        expected, got = (SHOWN[int(moments.exactness[row])] for row in (0, other))
        raise DataError(
            f"{self._where(codes, int(rows[other]), text)}: expected {expected} such as {first}, as in other rows, got "
            f"{got}: {text!r}; if all are dates, --granularity chooses a step that all of them state"
        )

    def _where(self, codes: Mapping[str, list[Any]], code: int, text: str) -> str:
        """Return where a text occurs first."""
        for split, columns in codes.items():
            for column in columns[3:]:
                if (rows := np.flatnonzero(column == code)).size:
                    return self._locations[split](int(rows[0]), text)
        return text

    def _facts(self, columns: list[Any], ids: list[Ids], steps: Steps, split: str, texts: pl.Series) -> TemporalFacts:
        if not columns:
            return TemporalFacts.none(with_ends=self.has_ends)
        times, ends = steps[columns[3]], steps[columns[4]]
        if self.has_ends and (early := np.flatnonzero(ends < times)).size:
            begin, end = (texts[int(columns[part][early[0]])] for part in (3, 4))
            location = self._locations[split](int(early[0]), end)
            raise DataError(f"{location}: expected an end that is not before the begin, got {begin!r} to {end!r}")
        triple = [of_code[column] for of_code, column in zip(ids, columns[:3], strict=True)]
        return TemporalFacts.of(triple, times, ends if self.has_ends else None)


def _code(coder: _FactCoder, split: str, batches: Iterable[pl.DataFrame], location: Location) -> None:
    for batch in batches:
        coder.add(split, batch, location)


def split_by_time(facts: TemporalFacts, clock: Clock, reading: ReadOptions) -> list[TemporalFacts]:
    """Return train, valid and test in the order of time; facts of the same time stay together."""
    last = int(facts.times[-1]) + 1 if len(facts) else 0
    if reading.split_at is not None:
        cuts = [clock.step(text) for text in reading.split_at]
        if sorted(cuts) != cuts:
            raise InvalidOptionError("split_at", "two times in their order", ",".join(reading.split_at))
        start, end = (cuts[0], cuts[-1])
        if not facts.times[0] < start <= end < last:
            raise InvalidOptionError(
                "split_at",
                f"after {clock.label(int(facts.times[0]))} and not after {clock.label(last - 1)}",
                ",".join(reading.split_at),
            )
    else:
        shares = np.cumsum(reading.split or (1.0, 0.0, 0.0))[:2]
        start, end = (_nearest_cut(facts.times, share) for share in shares)
    return [facts.between(min(0, start), start), facts.between(start, end), facts.between(end, last)]


def _nearest_cut(times: Steps, share: float) -> int:
    """Return the step that about this share of the facts lies before."""
    if not len(times):
        return 0
    rows = np.flatnonzero(np.diff(times)) + 1
    rows = np.concatenate([[0], rows, [len(times)]])
    row = int(rows[np.abs(rows - share * len(times)).argmin()])
    return int(times[row]) if row < len(times) else int(times[-1]) + 1
