"""Joins rule sets, and gives rules the ids of another vocabulary: the one way in which rules and data are matched.

The rules of a set share a table of distinct bodies. A body is a row of directed relations, padded with -1 at the end;
the empty body of a zero rule is all -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from tempfile import TemporaryFile
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from anyburl.base.errors import RuleError
from anyburl.data.attributes import attributes_of
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import COLUMNS, IDENTITY_COLUMNS, Column, Holds, RuleColumns

Ints = NDArray[np.int32]

MOST_LOOKED_UP = 1 << 24
"""Keys below this are numbered through a table as large as they are, others by sorting."""


def pad_lists(flat: Ints, lengths: NDArray[np.int64]) -> Ints:
    """Lay out lists that follow each other in `flat` as the rows of a matrix, filled up with -1."""
    width = max(1, int(lengths.max(initial=0)))
    rows = np.full((len(lengths), width), -1, dtype=np.int32)
    if len(flat) == rows.size:
        return flat.reshape(rows.shape).astype(np.int32)
    rows[np.arange(width) < lengths[:, None]] = flat
    return rows


def distinct_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows in ascending order, and for each given row which of them it is."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    n_numbers = min(1, len(rows))
    for column in rows.T:
        base = int(column.max(initial=-1)) + 2
        numbers, n_numbers = dense_numbers(numbers * base + (column + 1), n_numbers * base)
    representative = np.empty(n_numbers, dtype=np.int64)
    representative[numbers] = np.arange(len(rows))
    return np.ascontiguousarray(rows[representative]), numbers.astype(np.int32)


def merge_tables(tables: Sequence[Ints]) -> tuple[Ints, list[Ints]]:
    """Join tables of bodies; return the joint table and for each table where its rows went."""
    width = max((table.shape[1] for table in tables), default=1)
    padded = [widen(table, width) for table in tables]
    merged, numbers = distinct_rows(np.concatenate(padded) if padded else np.empty((0, 1), dtype=np.int32))
    ends = np.cumsum([len(table) for table in tables])[:-1]
    return merged, np.split(numbers, ends) if tables else []


def widen(table: Ints, width: int) -> Ints:
    """Add columns of -1."""
    missing = width - table.shape[1]
    return np.pad(table, ((0, 0), (0, missing)), constant_values=-1) if missing > 0 else table


def dense_numbers(keys: NDArray[np.int64], n_keys: int) -> tuple[NDArray[np.int64], int]:
    """Number the keys that occur (from 0 to `n_keys` - 1) without gaps, in the same order; also return how many."""
    if n_keys > max(MOST_LOOKED_UP, 2 * len(keys)):
        distinct, numbers = np.unique(keys, return_inverse=True)
        return numbers.reshape(-1), len(distinct)
    occurs = np.zeros(n_keys, dtype=np.bool_)
    occurs[keys] = True
    number_of = np.cumsum(occurs) - 1
    return number_of[keys], int(occurs.sum())


def joint_keys(columns: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return one number per row, equal for two rows if all their columns (ids of -1 or more, or floats) are equal.

    The numbers are in the order of the rows, compared by the first column, then by the second, and so on; NaN is first.
    """
    keys, n_keys = np.zeros(1, dtype=np.int64), 1
    for column in columns:
        for part in _digits(column) if column.dtype.kind == "f" else (column,):
            base = int(part.max(initial=0)) + 2
            if n_keys * base >= 1 << 63:
                keys, n_keys = dense_numbers(keys, n_keys)
            keys = keys * base + part
            keys += 1
            n_keys *= base
    return keys


def _digits(floats: NDArray[np.floating[Any]]) -> list[Ints]:
    """Return floats as whole numbers in the same order, in three parts of at most 22 bits; NaN is 0."""
    bits = floats.astype(np.float64, copy=False).view(np.uint64)
    negative = bits >> np.uint64(63) == 1
    ordered = np.where(negative, ~bits, bits | np.uint64(1 << 63))
    ordered[np.isnan(floats)] = 0
    mask = np.uint64((1 << 22) - 1)
    return [(ordered >> np.uint64(shift) & mask).astype(np.int32) for shift in (44, 22, 0)]


Rules = TypeVar("Rules", bound=RuleColumns)

FIRST = ("type", "body")
"""What rules are sorted by first."""

UNKNOWN = -2
"""Stands for the id of a label that a vocabulary does not have; -1 is no label at all."""

HOLDS_IDS = {Holds.DIRECTED_RELATION, Holds.BODY, Holds.CONSTANT}


def concatenate(sets: Sequence[Rules], *, on_disk: bool = False) -> Rules:
    """Put sets over one vocabulary after each other; `on_disk`, their columns are temporary files, memory-mapped."""
    for rules in sets:
        if not isinstance(rules, RuleColumns):
            raise RuleError(f"expected rule sets to join, got {type(rules).__name__}")
    if not sets:
        raise RuleError("expected at least one rule set to join, got none")
    first = sets[0]
    if len(sets) == 1 and not on_disk:
        return first
    for other in sets[1:]:
        if not first.vocabulary.same_labels(other.vocabulary):
            raise RuleError("the rule sets have different vocabularies: use with_vocabulary first")
    bodies, new_rows = merge_tables([rules.bodies for rules in sets])
    n_rules = sum(map(len, sets))
    columns: dict[str, NDArray[Any] | None] = {"bodies": bodies}
    for name, column in COLUMNS.items():
        parts = _parts_of_column(column, sets, new_rows)
        columns[name] = None if parts is None else _joined(parts, n_rules, column.dtype, on_disk)
    return first.with_checked(columns)


def merge(sets: Sequence[Rules]) -> Rules:
    """Join sets over one vocabulary; of equal rules, the first is kept with its scores."""
    joint = concatenate(sets)
    return joint.take(first_of_each(joint))


def first_of_each(rules: RuleColumns) -> NDArray[np.bool_]:
    """Mark the first of rules that are equal but for their scores."""
    return pl.Series(rule_keys(rules)[0]).is_first_distinct().to_numpy()


def rule_keys(*sets: RuleColumns) -> list[NDArray[np.int64]]:
    """Return for each set (all over one vocabulary) a number for each rule, equal for rules that say the same.

    Their order depends on nothing but the rules: by type, then by the relations of the body, not by its row in a table
    whose order depends on what was found first, then by the other columns that tell rules apart.
    """
    _, new_rows = merge_tables([rules.bodies for rules in sets])
    columns = (_parts_of_column(COLUMNS[name], sets, new_rows) for name in dict.fromkeys((*FIRST, *IDENTITY_COLUMNS)))
    keys = joint_keys(np.concatenate(list(parts)) for parts in columns if parts is not None)
    return np.split(keys, np.cumsum([len(rules) for rules in sets])[:-1])


class MatchedRules(NamedTuple, Generic[Rules]):
    """Rules and triples with the same ids, and how many of the rules have labels that the triples did not have."""

    rules: Rules
    table: TripleTable
    n_unknown: int


def match_triples(rules: Rules, table: TripleTable) -> MatchedRules[Rules]:
    """Re-encode rules and triples with the same ids, by label. All rules are kept.

    The ids are those of the triples; if rules have labels that the triples do not have, both get new ids.
    """
    matched = reencode(rules, table.vocabulary)
    if len(matched) == len(rules):
        return MatchedRules(matched, table, 0)
    joint = join_vocabularies([table.vocabulary, rules.vocabulary])
    known = attributes_of(table.vocabulary)
    if not known.empty:
        joint = joint.with_attributes(known.reencode(joint.encode_entities(table.vocabulary.entities)))
    return MatchedRules(reencode(rules, joint), table.from_frame(table.to_polars(), joint), len(rules) - len(matched))


def reencode(rules: Rules, vocabulary: Vocabulary) -> Rules:
    """Return the rules with the ids of another vocabulary; rules with labels that it does not have are dropped."""
    if rules.vocabulary.same_labels(vocabulary):
        return rules if rules.vocabulary is vocabulary else rules.replace(vocabulary=vocabulary)
    new_ids = _NewIds(rules, vocabulary)
    columns = {name: new_ids.of_column(COLUMNS[name], column) for name, column in rules.columns.items()}
    known = reduce(np.logical_and, (columns[name] != UNKNOWN for name in columns if COLUMNS[name].holds in HOLDS_IDS))
    return rules.replace(
        vocabulary=vocabulary, bodies=new_ids.bodies, **{name: column[known] for name, column in columns.items()}
    )


def known_rules(rules: RuleColumns, vocabulary: Vocabulary, *kinds: Holds) -> NDArray[np.bool_]:
    """Mark the rules whose ids of some kinds (constants; relations and bodies) have labels of a vocabulary."""
    new_ids = _NewIds(rules, vocabulary)
    columns = [(COLUMNS[name], column) for name, column in rules.columns.items() if COLUMNS[name].holds in kinds]
    return reduce(np.logical_and, (new_ids.of_column(*column) != UNKNOWN for column in columns))


class _NewIds:
    """The ids of another vocabulary for those of a rule set: `UNKNOWN` where it does not have the label."""

    def __init__(self, rules: RuleColumns, vocabulary: Vocabulary) -> None:
        relations = _directed_relations(rules.vocabulary, vocabulary)
        bodies = relations[rules.bodies]
        is_known = (bodies != UNKNOWN).all(axis=1)
        self.bodies: Ints = bodies[is_known]
        self._by_kind = {
            Holds.DIRECTED_RELATION: relations,
            Holds.BODY: np.where(is_known, np.cumsum(is_known, dtype=np.int32) - 1, np.int32(UNKNOWN)),
            Holds.CONSTANT: _entities(rules.vocabulary, vocabulary),
        }

    def of_column(self, column: Column, values: NDArray[Any]) -> NDArray[Any]:
        """Return a column with new ids, or as it is if it does not hold ids."""
        new_ids = self._by_kind.get(column.holds)
        return values if new_ids is None else new_ids[values]


def _entities(old: Vocabulary, new: Vocabulary) -> Ints:
    """Return new ids by old ones; `self` stays `self`, and -1 (the last row) stays -1."""
    known = new.encode_entities(old.entities)
    return np.concatenate([_or_unknown(known), np.array([new.self_id, -1], dtype=np.int32)])


def _directed_relations(old: Vocabulary, new: Vocabulary) -> Ints:
    """Return new directed relations by old ones; -1 (the last row) stays -1."""
    known = new.encode_relations(old.relations)
    backward = np.where(known < 0, UNKNOWN, known + new.n_relations)
    return np.concatenate([_or_unknown(known), backward, [-1]]).astype(np.int32)


def _or_unknown(ids: Ints) -> Ints:
    return np.where(ids < 0, np.int32(UNKNOWN), ids)


def join_vocabularies(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """Return the vocabulary with all labels of several."""
    first = vocabularies[0]
    if all(first.same_labels(other) for other in vocabularies[1:]):
        return first
    return Vocabulary.from_labels(
        pl.concat([vocabulary.entities for vocabulary in vocabularies]),
        pl.concat([vocabulary.relations for vocabulary in vocabularies]),
    )


class FileParts(NamedTuple):
    """Rules over one vocabulary, part by part, and how many others use labels that it does not have."""

    sets: list[RuleColumns]
    n_unknown: int

    @property
    def n_rules(self) -> int:
        return sum(map(len, self.sets))


def unify(sets: Iterable[RuleColumns], vocabulary: Vocabulary | None) -> FileParts:
    """Re-encode the parts of a file to `vocabulary` as they come or, if it is None, to that of all their labels."""
    if vocabulary is not None:
        n_rules, moved = 0, []
        for rules in sets:
            n_rules += len(rules)
            moved.append(reencode(rules, vocabulary))
        return FileParts(moved, n_rules - sum(map(len, moved)))
    parts = list(sets)
    joint = join_vocabularies([rules.vocabulary for rules in parts]) if parts else None
    return FileParts([reencode(rules, joint) for rules in parts] if joint else [], 0)


def _parts_of_column(
    column: Column, sets: Sequence[RuleColumns], new_rows: Sequence[Ints]
) -> Iterator[NDArray[Any]] | None:
    """Yield a column of each set; return None if the joint rules cannot have it.

    `new_rows` are the rows of each set's bodies in the joint table of bodies.
    """
    parts: list[NDArray[Any] | None] = [getattr(rules, column.name) for rules in sets]
    n_absent = sum(part is None for part in parts)
    if n_absent and (column.filled is None or n_absent == len(parts)):
        return None
    return (
        _filled(column, rules) if part is None else moved[part] if column.holds is Holds.BODY else part
        for part, rules, moved in zip(parts, sets, new_rows, strict=True)
    )


def _filled(column: Column, rules: RuleColumns) -> NDArray[Any]:
    assert column.filled is not None
    return column.filled(rules)


def _joined(parts: Iterable[NDArray[Any]], length: int, dtype: DTypeLike, on_disk: bool) -> NDArray[Any]:
    """Put parts of a column after each other, in memory or in a file that vanishes with the array."""
    column = _empty_column(length, dtype, on_disk)
    start = 0
    for part in parts:
        column[start : start + len(part)] = part
        start += len(part)
    return column


def _empty_column(length: int, dtype: DTypeLike, on_disk: bool) -> NDArray[Any]:
    """Return an array to be filled."""
    if not on_disk or not length:
        return np.empty(length, dtype)
    with TemporaryFile(prefix="anyburl-rules-") as file:
        return np.memmap(file, dtype, "w+", shape=(length,))
