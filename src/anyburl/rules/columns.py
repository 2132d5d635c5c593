"""What a rule consists of, written once: `COLUMNS`, one record for each column of `RuleColumns`.

Rules are columns, tens of millions of rows, never objects. Checks, concatenation, new vocabularies, comparison, Parquet
files, run folders, prepared runs and tables of rules loop over `COLUMNS`: a new column is one field of `RuleColumns`,
and whatever computes it. Ids and counts are checked here, when rules are made, because kernels use them unchecked. The
checks take a few passes over each column, about 10 ms for a million rules.

Confidence and other measures are computed here as well, from the counts of rules.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Any, Self, get_args, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from anyburl.base import checking
from anyburl.base.errors import RuleError
from anyburl.data.attributes import AttributeKind
from anyburl.data.table import can_change
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.parts import COMPARED
from anyburl.rules.rule import MAX_BODY_ATOMS
from anyburl.rules.types import KINDS, SMOOTHING, Form, types_that

Counts = NDArray[np.int32] | NDArray[np.int64]


def confidence(support: Counts, predictions: Counts, smoothing: float = 0) -> NDArray[np.float64]:
    """Return support / (predictions + smoothing), 0 where there are no predictions."""
    divisors = predictions + np.float64(smoothing)
    divisors[predictions == 0] = np.inf
    return support / divisors


def value(support: Counts, predictions: Counts) -> NDArray[np.float64]:
    """Return support times confidence: how much a rule says, and how surely."""
    return support * confidence(support, predictions)


def pca_confidence(support: Counts, pca_predictions: Counts) -> NDArray[np.float64]:
    """Return the confidence under the partial completeness assumption: support / the predictions that it can judge."""
    return confidence(support, pca_predictions)


def head_coverage(support: Counts, head_facts: Counts) -> NDArray[np.float64]:
    """Return which part of the facts of the head's relation a rule predicts."""
    return confidence(support, head_facts)


def lift(support: Counts, predictions: Counts, head_probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many times likelier the head is where the body holds than anywhere, 0 where it never holds."""
    return confidence(support, predictions) / np.where(head_probability > 0, head_probability, np.inf)


DISTILLING = "anyburl.distil(rules, data)"
"""What computes the measures of a set as a whole."""


def surprise(support: Counts, predictions: Counts, base_rates: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return how far the confidence is above the base rate of the head, 0 where it is not.

    This is the *added value* of a rule, P(head | body) - P(head) (L. Geng and H. J. Hamilton, Interestingness Measures
    for Data Mining: A Survey, ACM Computing Surveys 38(3), 2006), with the confidence smoothed, so that 500 of 510
    comes before 2 of 2.
    """
    return np.maximum(confidence(support, predictions, SMOOTHING) - base_rates, 0).astype(np.float32)


Rows = slice | NDArray[Any]
Mask = NDArray[np.bool_]


class Holds(Enum):
    """What the numbers in a column stand for."""

    RULE_TYPE = auto()  # the code of a `RuleType`
    DIRECTED_RELATION = auto()  # relation d if d < n_relations, else d - n_relations read backward
    BODY = auto()  # a row of the table of bodies
    CONSTANT = auto()  # an entity, the vocabulary's `self_id`, or -1 for none
    BOUND = auto()  # of the value of an attribute, NaN for rules without a condition
    VALUE_KIND = auto()  # how bounds are written: a row of `VALUE_KINDS`
    COUNT = auto()  # a whole number, 0 or more
    FLAG = auto()
    MARGIN = auto()  # how far another number may be off
    MEASURE = auto()  # a number that takes the data to compute, see `anyburl.measure`


IDENTITY = {Holds.RULE_TYPE, Holds.DIRECTED_RELATION, Holds.BODY, Holds.CONSTANT, Holds.BOUND}
"""Two rules with equal columns of these kinds are the same rule; the other columns say how good it is."""


@dataclass(frozen=True)
class Column:
    """Describes a column. The fields that every column has are taken from its annotation in `RuleColumns`."""

    holds: Holds
    if_absent: Any = None
    """The value of all rules in a frame or Parquet file without this column; None if such a file is refused. (Files
    never need to have optional columns.)"""
    filled: Callable[[Any], NDArray[Any]] | None = None
    """Computes an optional column for rules without it, when they are joined with rules that have it. If None, the
    joint rules do not have the column either."""
    named_in_parts: bool = True
    """Whether an optional column is stored with its name in the parts of a run folder. (Others are stored in order.)"""
    heading: str = ""
    """What tables of rules call it."""
    most: float = 1.0
    """The largest value of a measure; the least is 0, but for `worth`."""
    added_by: str = "anyburl.measure(rules, table)"
    """What computes a measure."""

    name: str = ""
    dtype: DTypeLike = "V"
    optional: bool = False

    @property
    def is_identity(self) -> bool:
        """Whether the column is part of what the rule says, not of how good it is."""
        return self.holds in IDENTITY

    @property
    def is_written(self) -> bool:
        """Whether the column is part of what the rule says, or of how that is written."""
        return self.is_identity or self.holds is Holds.VALUE_KIND

    @property
    def is_measure(self) -> bool:
        return self.holds is Holds.MEASURE

    def described_by(self, name: str, annotation: Any) -> Column:
        """Return this record with the name, type and optionality of a field of `RuleColumns`."""
        array, optional = annotation, False
        if type(None) in get_args(annotation):
            (array,), optional = (part for part in get_args(annotation) if part is not type(None)), True
        last = get_args(array)[-1]  # dtype[t], or t where NDArray is an alias with a parameter, from NumPy 2.5 on
        (dtype,) = get_args(last) or (last,)
        return dataclasses.replace(self, name=name, dtype=dtype, optional=optional)


VALUE_KINDS = tuple(AttributeKind)
"""The kinds of values by their codes in the column `value_kind`."""


def _no_bounds(rules: RuleColumns) -> NDArray[np.float64]:
    return np.full(len(rules), np.nan)


def _no_kinds(rules: RuleColumns) -> NDArray[np.uint8]:
    return np.zeros(len(rules), np.uint8)


def _margin_of_counts(rules: RuleColumns) -> NDArray[np.float32]:
    """Return the margins of rules without them: 0 where counts are exact, NaN (unknown) elsewhere."""
    return np.where(rules.exact, np.float32(0), np.float32(np.nan))


@dataclass(frozen=True, eq=False, repr=False)
class RuleColumns:
    """Rules and their scores, one column per property; all arrays are read-only.

    With R relations, a directed relation d is relation d read forward if d < R, and d - R read backward
    otherwise. Unary heads h(X, c) have d = h, heads h(c, Y) have d = h + R.
    """

    vocabulary: Vocabulary
    bodies: NDArray[np.int32]
    """(m, L) distinct bodies: directed relations along the path from the head's variable, padded with -1."""
    type: Annotated[NDArray[np.uint8], Column(Holds.RULE_TYPE)]
    """The code of each rule's `RuleType`."""
    head: Annotated[NDArray[np.int32], Column(Holds.DIRECTED_RELATION)]
    """Directed relation of the head; forward in binary rules."""
    body: Annotated[NDArray[np.int32], Column(Holds.BODY)]
    """Row of `bodies`."""
    head_constant: Annotated[NDArray[np.int32], Column(Holds.CONSTANT)]
    """Entity, the vocabulary's `self_id`, or -1 in binary rules."""
    body_constant: Annotated[NDArray[np.int32], Column(Holds.CONSTANT)]
    """Entity or `self_id` at the end of the last body atom, -1 where that is a variable."""
    predictions: Annotated[NDArray[np.int64], Column(Holds.COUNT)]
    support: Annotated[NDArray[np.int32], Column(Holds.COUNT)]
    exact: Annotated[NDArray[np.bool_], Column(Holds.FLAG, if_absent=False)]
    """Whether predictions and support are exact, not estimated from a sample."""
    margin: Annotated[
        NDArray[np.float32] | None, Column(Holds.MARGIN, filled=_margin_of_counts, named_in_parts=False)
    ] = None
    """How far the true confidence may be from that of estimated counts (95 % interval): 0 where they are exact, NaN
    where that is not known; None if it is not known of any rule."""
    low: Annotated[NDArray[np.float64] | None, Column(Holds.BOUND, filled=_no_bounds)] = None
    """The least value that satisfies a rule's condition, -inf if there is none; NaN for a rule without a condition,
    None if no rule has one. The attribute is the last step of the body: a relation's label, without triples. Of a
    binary rule, `low` and `high` are one of `COMPARED`."""
    high: Annotated[NDArray[np.float64] | None, Column(Holds.BOUND, filled=_no_bounds)] = None
    """What a value must be less than, likewise."""
    value_kind: Annotated[NDArray[np.uint8] | None, Column(Holds.VALUE_KIND, filled=_no_kinds)] = None
    """How the bounds are written: a row of `VALUE_KINDS`."""
    pca_confidence: Annotated[NDArray[np.float64] | None, Column(Holds.MEASURE, heading="PCA conf.")] = None
    """Support / the predictions that the partial completeness assumption can judge; None unless measured."""
    head_coverage: Annotated[NDArray[np.float64] | None, Column(Holds.MEASURE, heading="head cov.")] = None
    """Which part of the facts of the head's relation is predicted; None unless measured."""
    lift: Annotated[NDArray[np.float64] | None, Column(Holds.MEASURE, heading="lift", most=np.inf)] = None
    """How many times likelier the head is where the body holds than anywhere; None unless measured."""
    surprise: Annotated[NDArray[np.float32] | None, Column(Holds.MEASURE, heading="surprise")] = None
    """How far the smoothed confidence is above the base rate of the head, see `surprise`; None unless measured."""
    worth: Annotated[
        NDArray[np.float64] | None, Column(Holds.MEASURE, heading="worth", most=np.inf, added_by=DISTILLING)
    ] = None
    """What the set would lose without the rule: by how much the sum of the reciprocal ranks of known answers would
    fall; below 0 where they would rank better. None unless distilled, as in the columns that follow."""
    decides: Annotated[
        NDArray[np.int32] | None, Column(Holds.MEASURE, heading="decides", most=np.inf, added_by=DISTILLING)
    ] = None
    """Of how many known answers it is the best rule of the set."""
    only: Annotated[
        NDArray[np.int32] | None, Column(Holds.MEASURE, heading="only", most=np.inf, added_by=DISTILLING)
    ] = None
    """How many known answers no other rule of the set predicts."""
    stands_for: Annotated[
        NDArray[np.int32] | None, Column(Holds.MEASURE, heading="stands for", most=np.inf, added_by=DISTILLING)
    ] = None
    """How many of the rules that were left out say nearly the same, see `represented`."""

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in (*REQUIRED, *self.columns)}  # what is required may be None
        columns = {name: owned_column(name, column, COLUMNS[name].dtype) for name, column in given.items()}
        bodies = owned_column("bodies", self.bodies, np.int32)
        check_columns(self.vocabulary, bodies, columns)
        vars(self).update(columns, bodies=bodies)

    @classmethod
    def empty(cls, vocabulary: Vocabulary) -> Self:
        """Return a set without rules."""
        columns: dict[str, Any] = {name: np.empty(0, COLUMNS[name].dtype) for name in REQUIRED}
        return cls(vocabulary=vocabulary, bodies=np.empty((0, 1), np.int32), **columns)

    @classmethod
    def of(cls, columns: RuleColumns) -> Self:
        """Return the same rules as an object of this class; nothing is copied."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(columns))
        return made

    @classmethod
    def checked_before(cls, vocabulary: Vocabulary, columns: Mapping[str, NDArray[Any]]) -> Self:
        """Return rules of columns (and `bodies`) that were checked when they were stored; checking again is slow."""
        made = cls.__new__(cls)
        made.__dict__.update(columns, vocabulary=vocabulary)
        return made

    def with_checked(self, columns: Mapping[str, NDArray[Any] | None]) -> Self:
        """Return a set with some columns replaced by others that need no check, such as parts of the same columns."""
        made = copy.copy(self)
        for name, column in columns.items():
            object.__setattr__(made, name, None if column is None else _read_only(column))
        return made

    @property
    def n_rules(self) -> int:
        return len(self.head)

    def __len__(self) -> int:
        return len(self.head)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that these rules have, by name, in the order of `COLUMNS`."""
        return {name: column for name in COLUMNS if (column := getattr(self, name)) is not None}

    @property
    def is_binary(self) -> Mask:
        """Which rules have two variables in the head; their bodies join the two."""
        return self.head_constant < 0

    @property
    def has_condition(self) -> Mask:
        """Which rules have a condition on a value."""
        return np.zeros(len(self), np.bool_) if self.low is None else ~np.isnan(self.low)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of body atoms of each rule."""
        lengths: NDArray[np.int32] = (self.bodies >= 0).sum(axis=1, dtype=np.int32)[self.body]
        return lengths

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures that these rules have."""
        return tuple(name for name in MEASURES if getattr(self, name) is not None)

    def confidence(self, smoothing: float = 0) -> NDArray[np.float64]:
        """Return support / (predictions + smoothing), 0 where there are no predictions."""
        return confidence(self.support, self.predictions, checking.real("smoothing", smoothing, 0))

    def take(self, index: ArrayLike) -> Self:
        """Return the rules at some rows, in that order, or the rules that a mask marks."""
        rows = np.asarray(index)
        if rows.size == 0 and rows.dtype != np.bool_:
            rows = rows.astype(np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "biu":
            raise TypeError(f"expected the numbers of rules or a mask, got {rows.ndim} dimensions of {rows.dtype}")
        return self._at(rows)

    def slice(self, start: int, stop: int) -> Self:
        """Return the rules from row `start` to row `stop`, without copying."""
        return self._at(slice(start, stop))

    def replace(self, **changes: Any) -> Self:
        """Return a set with some columns replaced; arrays that can be written to are copied."""
        return dataclasses.replace(self, **changes)

    def counts_by_type(self) -> dict[str, int]:
        """Return the number of rules of each type; of types with conditions, if there are any."""
        counts = np.bincount(self.type, minlength=len(KINDS))
        return {str(kind): int(counts[kind.code]) for kind in KINDS if counts[kind.code] or not kind.form.has_condition}

    def counts_by_length(self) -> dict[str, int]:
        """Return the number of rules of each type and length that occurs: {"B 1": 11, "Uc 1": 35}."""
        width = self.bodies.shape[1] + 1
        counts = np.bincount(self.type * np.int64(width) + self.lengths, minlength=len(KINDS) * width)
        table = counts.reshape(len(KINDS), width)
        return {
            f"{kind} {length}": int(table[kind.code, length])
            for kind in KINDS
            for length in range(width)
            if table[kind.code, length]
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for column in (self.bodies, *self.columns.values()):
            column.flags.writeable = False  # an array forgets it when it is copied to another process

    def _at(self, rows: Rows) -> Self:
        """Return some of the rules; what was checked is not checked again."""
        return self.with_checked({name: column[rows] for name, column in self.columns.items()})


def _columns_of(kind: Any) -> dict[str, Column]:
    """Return the records of the columns of `RuleColumns` by name, completed with what the annotations say."""
    annotations = get_type_hints(kind, include_extras=True).items()
    described = ((name, get_args(annotation)) for name, annotation in annotations)
    records = ((name, parts[0], parts[-1]) for name, parts in described if parts and isinstance(parts[-1], Column))
    return {name: record.described_by(name, annotation) for name, annotation, record in records}


COLUMNS = _columns_of(RuleColumns)
"""What a rule consists of, column by column."""

REQUIRED = tuple(name for name, column in COLUMNS.items() if not column.optional)
IDENTITY_COLUMNS = tuple(name for name, column in COLUMNS.items() if column.is_identity)
MEASURES = tuple(name for name, column in COLUMNS.items() if column.is_measure)
"""The columns that take the data to compute, not only the counts of a rule."""
DISTILLED = tuple(name for name in MEASURES if COLUMNS[name].added_by == DISTILLING)
"""Those that say what a rule is worth to the set that it is in."""


def condition_attributes(rules: RuleColumns) -> NDArray[np.int32]:
    """Return the last step of each body: the attribute, of a rule with a condition; -1 of an empty body."""
    lengths = (rules.bodies >= 0).sum(axis=1)
    last: NDArray[np.int32] = np.where(lengths > 0, rules.bodies[np.arange(len(lengths)), lengths - 1], np.int32(-1))
    return last[rules.body]


def owned_column(name: str, column: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return a column as a read-only array of its type, which the caller cannot change.

    An array that can be written to, or is a view of one, is copied. Numbers that the type cannot hold are refused.
    """
    given = np.asarray(column)
    if given.dtype.kind not in "biuf":
        raise RuleError(f"expected numbers in the column {name!r}, got {given.dtype}")
    if given.dtype != dtype:
        given = _converted(name, given, dtype)
    elif can_change(given):
        given = given.copy()
    return _read_only(given)


def check_columns(vocabulary: Vocabulary, bodies: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse columns that are not those of rules over the vocabulary."""
    if not isinstance(vocabulary, Vocabulary):
        raise RuleError(f"expected rules with a Vocabulary, got {type(vocabulary).__name__}")
    _check_shapes(bodies, columns)
    _check_ids(vocabulary, bodies, columns)
    _check_types(vocabulary, bodies, columns)
    support, predictions = columns["support"], columns["predictions"]
    if len(support) and (int(support.min()) < 0 or (support > predictions).any()):
        row = int(((support < 0) | (support > predictions)).argmax())
        raise RuleError(f"expected 0 <= support <= predictions, got {support[row]} and {predictions[row]} in row {row}")


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return the column, read-only from now on."""
    column.flags.writeable = False
    return np.asarray(column)


def _converted(name: str, column: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        converted = column.astype(dtype)
    if not (converted == column).all() and np.dtype(dtype).kind != "f":
        raise RuleError(f"expected numbers of type {np.dtype(dtype)} in the column {name!r}, got {column.dtype}")
    return converted


def _check_shapes(bodies: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
    n_rules = columns["head"].size
    if bodies.ndim != 2 or not bodies.shape[1]:
        raise RuleError(f"expected bodies as the rows of a matrix, got an array of shape {bodies.shape}")
    if bodies.shape[1] > MAX_BODY_ATOMS:
        raise RuleError(f"expected at most {MAX_BODY_ATOMS} body atoms, got {bodies.shape[1]}")
    for name, column in columns.items():
        if column.shape != (n_rules,):
            raise RuleError(f"expected columns of {n_rules} rules, got another length for {name!r}")


def _check_ids(vocabulary: Vocabulary, bodies: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse ids that the vocabulary or the table of bodies does not have."""
    last_directed = 2 * vocabulary.n_relations - 1
    ranges = {
        Holds.RULE_TYPE: (0, len(KINDS) - 1),
        Holds.DIRECTED_RELATION: (0, last_directed),
        Holds.BODY: (0, len(bodies) - 1),
        Holds.CONSTANT: (-1, vocabulary.self_id),
        Holds.VALUE_KIND: (0, len(VALUE_KINDS) - 1),
    }
    _check_range("bodies", bodies, -1, last_directed)
    for name, column in columns.items():
        if COLUMNS[name].holds in ranges:
            _check_range(name, column, *ranges[COLUMNS[name].holds])
    if ((bodies[:, 1:] >= 0) & (bodies[:, :-1] < 0)).any():
        raise RuleError("expected bodies padded with -1 at the end, got one with -1 before a relation")


def _check_range(name: str, column: NDArray[Any], least: int, most: int) -> None:
    extremes = (int(column.min()), int(column.max())) if column.size else ()
    wrong = [number for number in extremes if not least <= number <= most]
    if wrong:
        raise RuleError(
            f"expected numbers from {least} to {most} in the column {name!r}, got {wrong[0]}: "
            "do the rules belong to another vocabulary?"
        )


def _check_types(vocabulary: Vocabulary, bodies: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse rules whose type is not that of their head and body."""
    types, is_binary = columns["type"], columns["head_constant"] < 0
    _refuse(*misfits(types, is_binary, lambda form: not form.has_head_constant, "have no constant in the head"))
    names = types_that(lambda form: not form.has_head_constant)
    _refuse(
        is_binary & (columns["head"] >= vocabulary.n_relations), f"the head of a rule of type {names} is read forward"
    )
    has_constant = columns["body_constant"] >= 0
    _refuse(*misfits(types, has_constant, lambda form: form.has_body_constant, "have a constant in the body"))
    is_empty = bodies[:, 0] < 0
    has_no_body = is_empty[columns["body"]] if is_empty.any() else np.zeros_like(is_binary)
    _refuse(*misfits(types, has_no_body, lambda form: not form.has_body, "have an empty body"))
    _check_conditions(vocabulary, bodies, columns)


def _check_conditions(vocabulary: Vocabulary, bodies: NDArray[np.int32], columns: Mapping[str, NDArray[Any]]) -> None:
    """Refuse conditions of rules that have none, and those that no value or every value satisfies."""
    types = columns["type"]
    conditional = ~np.isnan(columns["low"]) if "low" in columns else np.zeros(len(types), np.bool_)
    _refuse(*misfits(types, conditional, lambda form: form.has_condition, "have a condition on a value"))
    bounded = np.flatnonzero(conditional)
    if len(bounded):
        low, high = columns["low"][bounded], columns["high"][bounded]
        wrong = ~(low < high) | (np.isinf(low) & np.isinf(high))
        if wrong.any():
            row = int(wrong.argmax())
            raise RuleError(f"expected a condition with low < high, got {low[row]} and {high[row]}")
        steps, compares = bodies[columns["body"][bounded]], columns["head_constant"][bounded] < 0
        lengths = (steps >= 0).sum(axis=1)
        last = steps[np.arange(len(steps)), lengths - 1]
        if (~compares & (lengths > 2)).any() or (last >= vocabulary.n_relations).any():
            raise RuleError("expected a condition on an attribute, at most one step from the head's variable")
        known = np.isin(low, [one for one, _ in COMPARED.values()]) & (high == low + 1) & (lengths > 1)
        if (compares & ~known).any():
            row = int((compares & ~known).argmax())
            raise RuleError(
                f"expected a comparison after the atoms of a binary rule, its bounds one of {list(COMPARED.values())}, "
                f"got {low[row]} and {high[row]}"
            )


def misfits(
    types: NDArray[np.uint8], has_property: Mask, expected: Callable[[Form], bool], said: str
) -> tuple[Mask, str]:
    """Mark the rules that have a property which their type excludes, or lack one that it requires; also return the rule
    in words.
    """
    table = np.zeros(256, np.bool_)
    table[: len(KINDS)] = [expected(kind.form) for kind in KINDS]
    return table[types] != has_property, f"rules of type {types_that(expected)}, and no others, {said}"


def _refuse(wrong: Mask, reason: str) -> None:
    if wrong.any():
        raise RuleError(f"{reason}: row {int(wrong.argmax())} does not comply")
