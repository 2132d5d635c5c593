"""Checks columns of rules, once, because kernels use ids and counts unchecked.

This takes a few passes over each column, about 10 ms for a million rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from anyburl.errors import RuleError
from anyburl.rules.rule import MAX_BODY_ATOMS
from anyburl.rules.types import RuleType
from anyburl.triples.table import can_change
from anyburl.triples.vocabulary import Vocabulary

Columns = Mapping[str, NDArray[Any]]
"""The columns of a `RuleSet` by their names, and the table of `bodies`."""

Mask = NDArray[np.bool_]


def owned_column(name: str, column: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return a column as a read-only array of its type, which the caller cannot change: what can be written to, or is a
    view of such an array, is copied. Numbers that the type cannot hold are refused.
    """
    given = np.asarray(column)
    if given.dtype.kind not in "biuf":
        raise RuleError(f"expected numbers in the column {name!r}, got {given.dtype}")
    if given.dtype != dtype:
        given = _converted(name, given, dtype)
    elif can_change(given):
        given = given.copy()
    given.flags.writeable = False
    return given


def check_columns(vocabulary: Vocabulary, columns: Columns) -> None:
    """Refuse columns that are not those of rules over the vocabulary."""
    if not isinstance(vocabulary, Vocabulary):
        raise RuleError(f"expected rules with a Vocabulary, got {type(vocabulary).__name__}")
    _check_shapes(columns)
    _check_ids(vocabulary, columns)
    _check_types(vocabulary, columns)
    support, predictions = columns["support"], columns["predictions"]
    if len(support) and (int(support.min()) < 0 or (support > predictions).any()):
        row = int(((support < 0) | (support > predictions)).argmax())
        raise RuleError(f"expected 0 <= support <= predictions, got {support[row]} and {predictions[row]} in row {row}")


def _converted(name: str, given: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        converted = given.astype(dtype)
    if not (converted == given).all() and np.dtype(dtype).kind != "f":
        raise RuleError(f"expected numbers of type {np.dtype(dtype)} in the column {name!r}, got {given.dtype}")
    return converted


def _check_shapes(columns: Columns) -> None:
    bodies, n_rules = columns["bodies"], columns["head"].size
    if bodies.ndim != 2 or not bodies.shape[1]:
        raise RuleError(f"expected bodies as the rows of a matrix, got an array of shape {bodies.shape}")
    if bodies.shape[1] > MAX_BODY_ATOMS:
        raise RuleError(f"expected at most {MAX_BODY_ATOMS} body atoms, got {bodies.shape[1]}")
    for name, column in columns.items():
        if name != "bodies" and column.shape != (n_rules,):
            raise RuleError(f"expected columns of {n_rules} rules, got another length for {name!r}")


def _check_ids(vocabulary: Vocabulary, columns: Columns) -> None:
    """Refuse ids that the vocabulary or the table of bodies does not have."""
    last_directed, last_constant = 2 * vocabulary.n_relations - 1, vocabulary.self_id
    ranges = {
        "bodies": (-1, last_directed),
        "type": (0, len(RuleType) - 1),
        "head": (0, last_directed),
        "body": (0, len(columns["bodies"]) - 1),
        "head_constant": (-1, last_constant),
        "body_constant": (-1, last_constant),
    }
    for name, (least, most) in ranges.items():
        column = columns[name]
        found = (int(column.min()), int(column.max())) if column.size else ()
        wrong = [number for number in found if not least <= number <= most]
        if wrong:
            raise RuleError(
                f"expected numbers from {least} to {most} in the column {name!r}, got {wrong[0]}: "
                "do the rules belong to another vocabulary?"
            )
    if ((columns["bodies"][:, 1:] >= 0) & (columns["bodies"][:, :-1] < 0)).any():
        raise RuleError("expected bodies padded with -1 at the end, got one with -1 before a relation")


def _check_types(vocabulary: Vocabulary, columns: Columns) -> None:
    """Refuse rules whose type is not that of their head and body."""
    types = columns["type"]
    is_binary, is_constant = types == RuleType.BINARY.code, types == RuleType.UNARY_CONSTANT.code
    _refuse(is_binary != (columns["head_constant"] < 0), "rules of type B, and no others, have no constant in the head")
    _refuse(is_binary & (columns["head"] >= vocabulary.n_relations), "the head of a rule of type B is read forward")
    has_constant = columns["body_constant"] >= 0
    _refuse(is_constant != has_constant, "rules of type Uc, and no others, have a constant in the body")
    is_empty = columns["bodies"][:, 0] < 0
    has_no_body = is_empty[columns["body"]] if is_empty.any() else np.zeros_like(is_binary)
    _refuse((types == RuleType.ZERO.code) != has_no_body, "rules of type Z, and no others, have an empty body")


def _refuse(wrong: Mask, reason: str) -> None:
    if wrong.any():
        raise RuleError(f"{reason}: row {int(wrong.argmax())} does not comply")
