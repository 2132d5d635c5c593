"""`TemporalRules`: what was counted and fitted, as rules that people read and as tables that answer questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import whole
from anyburl.base.errors import InvalidOptionError, RuleError
from anyburl.base.sealed import seal
from anyburl.base.writing import replacing
from anyburl.data.clock import Clock
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.options import TEMPORAL_FORMS, TemporalOptions
from anyburl.rules.labels import gather_labels
from anyburl.temporal.kernel_bodies import (
    N_RECENCY,
    RECENCY,
    ConstantArrays,
    HopArrays,
    PairArrays,
    TableArrays,
)

SCHEMA: dict[str, Any] = {
    "form": pl.String,
    "head": pl.String,
    "asks": pl.String,
    "body": pl.List(pl.String),
    "forward": pl.List(pl.Boolean),
    "constant": pl.String,
    "answer": pl.String,
    "confidence": pl.Float32,
    "right": pl.Int64,
    "cases": pl.Int64,
    "curve": pl.List(pl.Float32),
    "cells": pl.List(pl.Float32),
    "alone": pl.List(pl.Float32),
    "right_cells": pl.List(pl.Int64),
    "case_cells": pl.List(pl.Int64),
}
SHOWN = ("form", "head", "asks", "body", "forward", "constant", "answer", "confidence", "right", "cases", "curve")

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class PairRules:
    """Rules h(X,Y,T) <= b(X,Y,U): one row each, with counts and values by cell of recency and frequency."""

    heads: NDArray[np.int32]
    bodies: NDArray[np.int32]
    right: Ints | NDArray[np.int32]  # (rows, cells)
    cases: Ints | NDArray[np.int32]
    values: Floats  # intensities that share the credit
    alone: Floats  # the chance of a step, counted over all times
    curves: Floats  # (rows, N_RECENCY): confidence by age, never rising


@dataclass(frozen=True)
class TemporalRule:
    """One rule, for people."""

    number: int
    form: str
    head: str
    asks: str
    body: tuple[str, ...]
    forward: tuple[bool, ...]
    constant: str | None
    answer: str | None
    confidence: float
    right: int
    cases: int
    curve: tuple[float, ...]
    clock: Clock
    options: TemporalOptions

    def atom(self, relation: str, left: str, right: str, moment: str, *, forward: bool) -> str:
        """Return one atom as text."""
        first, second = (left, right) if forward else (right, left)
        return f"{relation}({first},{second},{moment})"

    @property
    def rule(self) -> str:
        """The rule without its figures: X is the entity that the question names."""
        target = "Y" if self.answer is None else self.answer
        head = self.atom(self.head, "X", target, "T", forward=self.asks == "object")
        if self.form == "pair":
            body = self.atom(self.body[0], "X", "Y", "U", forward=self.forward[0])
            return f"{head} <= {body}, T-U in {self._ages()}"
        if self.form == "constant":
            relation, other = self.body[0] if self.body else "any", "A" if self.constant is None else self.constant
            body = self.atom(relation, "X", other, "U", forward=self.forward[0] if self.forward else True)
            return f"{head} <= {body}, T-U in 1..{self.clock.duration(self.options.oldest)}"
        if self.form == "hops":
            entities = (*("X", "A", "B")[: len(self.body)], "Y")
            steps = zip(self.body, pairwise(entities), "UVW", self.forward, strict=False)
            atoms = (self.atom(body, *ends, moment, forward=forward) for body, ends, moment, forward in steps)
            return f"{head} <= {', '.join(atoms)}"
        other = self.atom(self.head, "Z", "Y", "U", forward=self.asks == "object")
        return f"{head} <= {other}"

    def _ages(self) -> str:
        last = int(np.flatnonzero(np.array(self.curve) > 0)[-1]) if any(self.curve) else 0
        if last + 1 == N_RECENCY:
            return f"1.. {self.clock.unit}s" if self.clock.unit else "1.."
        return f"1..{self.clock.duration(RECENCY[last + 1] - 1)}"

    @property
    def figures(self) -> str:
        """Its confidence by age, and the counts behind it."""
        counts = f"{self.right:,} of {self.cases:,} cases".replace(",", " ")
        if self.form != "pair":
            return f"{self.confidence:.2f}; {counts}" if self.form != "popular" else f"weight {self.confidence:.2f}"
        ages = [(0, f"after {self.clock.duration(1)}")]
        ages += [(i, f"after {self.clock.duration(RECENCY[i])}") for i in (5, 9) if self.curve[i] > 0]
        parts = [f"{self.curve[i]:.2f} {words}" for i, words in ages]
        return f"{', '.join(parts)}; {counts}"

    def __str__(self) -> str:
        return f"{self.rule} [{self.figures}]"


@dataclass(frozen=True, eq=False)
class TemporalRules:
    """All rules of a history, over the vocabulary and the clock of the data.

    `weights` say how the forms are mixed for each relation and context, `model` orders the best candidates, if there is
    one. Rules are numbered: pairs first, then constants, hops, and one rule of popularity for each directed relation.
    """

    vocabulary: Vocabulary
    clock: Clock
    options: TemporalOptions
    pairs: PairRules
    favour: NDArray[np.float64]
    constants: ConstantArrays
    constant_counts: Ints  # (2, rules): right and all cases
    hops: HopArrays
    hop_counts: Ints  # (2, rules)
    weights: NDArray[np.float64]
    vectors: Floats
    model: Any = None
    about: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(self.sizes.values())

    @cached_property
    def sizes(self) -> dict[str, int]:
        """How many rules there are of each form."""
        sizes = (len(self.pairs.heads), len(self.constants.constants), len(self.hops.bodies), len(self.favour))
        return dict(zip(TEMPORAL_FORMS, sizes, strict=True))

    @property
    def n_relations(self) -> int:
        """How many directed relations there are."""
        return 2 * self.vocabulary.n_relations

    @cached_property
    def slots(self) -> NDArray[np.int32]:
        """The row of every pair rule, by head and body, -1 where there is none."""
        slots = np.full((self.n_relations, self.n_relations), -1, np.int32)
        slots[self.pairs.heads, self.pairs.bodies] = np.arange(len(self.pairs.heads), dtype=np.int32)
        return slots

    def tables(self) -> TableArrays:
        """Return what kernels read."""
        return TableArrays(
            PairArrays(self.slots, self.pairs.values),
            self.pairs.alone,
            self.favour,
            self.constants,
            self.hops,
            self.options.n_last,
            self.options.oldest,
            self.options.n_first,
            self.options.n_second,
            self.options.three_hops,
            self.vectors,
        )

    def form_of(self, number: int) -> tuple[str, int]:
        """Return the form of a rule, and its place among the rules of that form."""
        for form, size in self.sizes.items():
            if number < size:
                return form, number
            number -= size
        raise InvalidOptionError("number", f"below {len(self)}", number)

    def number_of(self, form: str, position: int) -> int:
        """Return the number of a rule."""
        before = TEMPORAL_FORMS[: TEMPORAL_FORMS.index(form)]
        return sum(self.sizes[name] for name in before) + position

    def __getitem__(self, number: int) -> TemporalRule:
        return self.at([whole("number", number, 0, max(len(self) - 1, 0))])[0]

    def at(self, numbers: Sequence[int] | Ints) -> list[TemporalRule]:
        """Return the rules of some numbers."""
        rows = self.frame(np.asarray(numbers, np.int64)).iter_rows(named=True)
        return [self._rule(int(number), row) for number, row in zip(numbers, rows, strict=True)]

    def _rule(self, number: int, row: dict[str, Any]) -> TemporalRule:
        return TemporalRule(
            number,
            row["form"],
            row["head"],
            row["asks"],
            tuple(row["body"]),
            tuple(row["forward"]),
            row["constant"],
            row["answer"],
            row["confidence"],
            row["right"],
            row["cases"],
            tuple(row["curve"] or ()),
            self.clock,
            self.options,
        )

    def __iter__(self) -> Iterator[TemporalRule]:
        return (self[number] for number in range(len(self)))

    def top(self, n: int = 20, *, relation: str | None = None, form: str | None = None) -> list[TemporalRule]:
        """Return the rules with the most right cases, weighed by their confidence, of one relation or form if given."""
        if form is not None and form not in TEMPORAL_FORMS:
            raise InvalidOptionError("form", f"one of {', '.join(TEMPORAL_FORMS)}", form)
        numbers = np.arange(len(self))
        if form is not None:
            start = self.number_of(form, 0)
            numbers = numbers[start : start + self.sizes[form]]
        heads, confidences, right, _ = self.columns
        if relation is not None:
            numbers = numbers[heads[numbers] % self.vocabulary.n_relations == self.vocabulary.relation_id(relation)]
        worth = right[numbers] * confidences[numbers]
        order = np.argsort(-worth, kind="stable")[: whole("n", n, 0)]
        return self.at(numbers[order])

    @cached_property
    def columns(self) -> tuple[Ints, NDArray[np.float64], Ints, Ints]:
        """Heads, confidences, right cases and all cases of all rules, by number."""
        pairs = self.pairs
        right, cases = pairs.right.sum(axis=1), pairs.cases.sum(axis=1)
        body_heads = np.repeat(np.arange(self.n_relations), np.diff(self.constants.head_offsets))
        constant_heads = np.repeat(body_heads, np.diff(self.constants.rule_offsets))
        hop_heads = np.repeat(np.arange(self.n_relations), np.diff(self.hops.offsets))
        nothing = np.zeros(len(self.favour), np.int64)
        return (
            np.concatenate([pairs.heads, constant_heads, hop_heads, np.arange(len(self.favour))]).astype(np.int64),
            np.concatenate(
                [
                    right / np.maximum(cases, 1),
                    self.constants.confidences,
                    self.hops.confidences,
                    self.favour.sum(axis=1),
                ]
            ),
            np.concatenate([right, self.constant_counts[0], self.hop_counts[0], nothing]),
            np.concatenate([cases, self.constant_counts[1], self.hop_counts[1], nothing]),
        )

    def to_polars(self) -> pl.DataFrame:
        """Return all rules, one row each, with confidences, counts and curves."""
        return self.frame(np.arange(len(self))).select(SHOWN)

    def frame(self, numbers: Ints, *, with_cells: bool = False) -> pl.DataFrame:
        """Return some rules, one row each; `with_cells` with everything that answers are scored by."""
        heads, confidences, right, cases = (column[numbers] for column in self.columns)
        n = self.vocabulary.n_relations
        bounds = np.cumsum([0, *self.sizes.values()])
        forms = np.searchsorted(bounds[1:], numbers, side="right")
        positions = numbers - bounds[forms]
        bodies, constants, answers = self._bodies(forms, positions)
        entity = self.vocabulary.entities
        labels = self.vocabulary.relations
        columns = {
            "form": pl.Series(np.array(TEMPORAL_FORMS)[forms]),
            "head": labels.gather(heads % n),
            "asks": pl.Series(np.where(heads < n, "object", "subject")),
            "constant": gather_labels(entity, constants),
            "answer": gather_labels(entity, answers),
            "confidence": pl.Series(confidences, dtype=pl.Float32),
            "right": pl.Series(right, dtype=pl.Int64),
            "cases": pl.Series(cases, dtype=pl.Int64),
        }
        body_labels = [gather_labels(labels, np.where(column >= 0, column % n, -1)) for column in bodies]
        body_forward = [pl.Series(column < n).set(pl.Series(column < 0), None) for column in bodies]
        made = pl.select(
            body=pl.concat_list(*body_labels).list.drop_nulls(),
            forward=pl.concat_list(*body_forward).list.drop_nulls(),
        )
        lists = self._lists(forms, positions, with_cells=with_cells)
        frame = pl.DataFrame({**columns, "body": made["body"], "forward": made["forward"], **lists})
        return frame.select(name for name in SCHEMA if name in frame.columns)

    def _bodies(self, forms: Ints, positions: Ints) -> tuple[tuple[Ints, Ints, Ints], Ints, Ints]:
        """Return the directed relations of bodies, the constants in them and those in heads, -1 where there is none."""
        one, two, three, constants, answers = np.full((5, len(forms)), -1, np.int64)
        at = [np.flatnonzero(forms == code) for code in range(len(TEMPORAL_FORMS))]
        one[at[0]] = self.pairs.bodies[positions[at[0]]]
        if len(at[1]):
            body_of = np.searchsorted(self.constants.rule_offsets, positions[at[1]], side="right") - 1
            keys, width = self.constants.bodies[body_of], self.vocabulary.n_entities + 1
            one[at[1]] = keys // width - 1
            constants[at[1]] = np.where(keys % width == width - 1, -1, keys % width)
            answers[at[1]] = self.constants.constants[positions[at[1]]]
        hops = self.hops.bodies[positions[at[2]]]
        n = self.n_relations
        is_long = hops >= n * n  # see `three_hops_key`
        three[at[2]] = np.where(is_long, hops % n, -1)
        hops = np.where(is_long, hops // n - n, hops)
        one[at[2]], two[at[2]] = hops // n, hops % n
        return (one, two, three), constants, answers

    def _lists(self, forms: Ints, positions: Ints, *, with_cells: bool) -> dict[str, pl.Series]:
        """Return the columns of lists: curves and, `with_cells`, everything by cell; null for forms without."""
        tables: dict[str, tuple[int, NDArray[Any], Any]] = {"curve": (0, self.pairs.curves, pl.Float32)}
        if with_cells:
            tables |= {
                "cells": (0, self.pairs.values, pl.Float32),
                "alone": (0, self.pairs.alone, pl.Float32),
                "right_cells": (0, self.pairs.right, pl.Int64),
                "case_cells": (0, self.pairs.cases, pl.Int64),
            }
        lists = {}
        for name, (code, table, kind) in tables.items():
            rows = np.flatnonzero(forms == code)
            width = table.shape[1]
            filled = pl.Series(name, table[positions[rows]], dtype=pl.Array(kind, width)).cast(pl.List(kind))
            indices = np.full(len(forms), -1, np.int64)
            indices[rows] = np.arange(len(rows))
            chosen = pl.Series(indices)
            lists[name] = filled.gather(chosen.set(chosen < 0, None))
        if with_cells:
            popular = np.flatnonzero(forms == TEMPORAL_FORMS.index("popular"))
            if len(popular):
                cells = lists["cells"].to_list()
                for row in popular:
                    cells[row] = self.favour[positions[row]].tolist()
                lists["cells"] = pl.Series("cells", cells, dtype=pl.List(pl.Float32))
        return lists

    def save(self, path: str | Path) -> None:
        """Write all rules as Parquet, with everything that `load` needs to answer questions by them."""
        frame = self.frame(np.arange(len(self)), with_cells=True)
        with replacing(Path(path), RuleError) as unfinished:
            frame.write_parquet(unfinished, compression="zstd")
            seal(unfinished)

    def with_parts(self, **changes: Any) -> TemporalRules:
        """Return the same rules with other weights, model or description."""
        return replace(self, **changes)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{size:,} {form}" for form, size in self.sizes.items())
        return f"TemporalRules({len(self):,} rules: {sizes})"
