"""Joins rule sets, and moves them to another vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from tempfile import TemporaryFile
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from anyburl.errors import RuleError
from anyburl.ruleset.bodytable import joint_keys, merge_tables
from anyburl.ruleset.columns import COLUMN_TYPES, RuleColumns
from anyburl.ruleset.measures import MEASURES
from anyburl.triples.vocabulary import Vocabulary

Rules = TypeVar("Rules", bound=RuleColumns)
Ints = NDArray[np.int32]


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
    bodies, places = merge_tables([rules.bodies for rules in sets])
    columns = {}
    for name, dtype in COLUMN_TYPES.items():
        parts = (getattr(rules, name) for rules in sets)
        moved = (place[part] for place, part in zip(places, parts, strict=True)) if name == "body" else parts
        columns[name] = _joined(moved, sum(map(len, sets)), dtype, on_disk)
    margin = _joined(map(margins, sets), sum(map(len, sets)), np.float32, on_disk) if has_margins(sets) else None
    return first.with_checked({"bodies": bodies, **columns, "margin": margin, **_joined_measures(sets, on_disk)})


def has_margins(sets: Sequence[RuleColumns]) -> bool:
    """Whether some of the sets say how well estimated confidences are known."""
    return any(rules.margin is not None for rules in sets)


def margins(rules: RuleColumns) -> NDArray[np.float32]:
    """Return how far confidences may be off: 0 where they are exact, NaN where that is not known."""
    if rules.margin is not None:
        return rules.margin
    return np.where(rules.exact, np.float32(0), np.float32(np.nan))


def _joined_measures(sets: Sequence[Rules], on_disk: bool) -> dict[str, NDArray[np.float64] | None]:
    """Put the measures of sets after each other; one that a set lacks is None."""
    joint: dict[str, NDArray[np.float64] | None] = dict.fromkeys(MEASURES)
    for name in MEASURES:
        if all(name in rules.measures for rules in sets):
            parts = (getattr(rules, name) for rules in sets)
            joint[name] = _joined(parts, sum(map(len, sets)), np.float64, on_disk)
    return joint


def replace_rows(rules: Rules, rows: NDArray[np.int64], others: Rules) -> Rules:
    """Put `others` (over the same vocabulary) in place of the rules at some rows; there may be more or fewer."""
    bodies, (own, theirs) = merge_tables([rules.bodies, others.bodies])
    n_rules, n_swapped = len(rules), min(len(rows), len(others))
    columns = {}
    for name, dtype in COLUMN_TYPES.items():
        old, new = getattr(rules, name), getattr(others, name)
        column: NDArray[Any] = np.empty(n_rules + len(others) - n_swapped, dtype)
        column[:n_rules] = own[old] if name == "body" else old
        moved = theirs[new] if name == "body" else new
        column[rows[:n_swapped]], column[n_rules:] = moved[:n_swapped], moved[n_swapped:]
        columns[name] = column if n_swapped == len(rows) else np.delete(column, rows[n_swapped:])
    if not has_margins([rules, others]):
        return rules.replace(bodies=bodies, **columns)
    margin = np.concatenate([margins(rules), margins(others)[n_swapped:]])
    margin[rows[:n_swapped]] = margins(others)[:n_swapped]
    kept = margin if n_swapped == len(rows) else np.delete(margin, rows[n_swapped:])
    return rules.replace(bodies=bodies, **columns, margin=kept)


def merge(sets: Sequence[Rules]) -> Rules:
    """Join sets over one vocabulary; of equal rules, the first is kept with its scores."""
    joint = concatenate(sets)
    return joint.take(first_of_each(joint))


def reencode(rules: Rules, vocabulary: Vocabulary) -> tuple[Rules, int]:
    """Give the rules the ids of another vocabulary; drop and count those with labels that it does not have."""
    if rules.vocabulary.same_labels(vocabulary):
        return (rules if rules.vocabulary is vocabulary else rules.replace(vocabulary=vocabulary)), 0
    entities = _entity_map(rules.vocabulary, vocabulary)
    relations = _directed_map(rules.vocabulary, vocabulary)
    moved = relations[rules.bodies]
    readable = (moved != -2).all(axis=1)
    head = relations[rules.head]
    head_constant, body_constant = entities[rules.head_constant], entities[rules.body_constant]
    known = (head != -2) & readable[rules.body] & (head_constant != -2) & (body_constant != -2)
    moved_rules = rules.replace(
        vocabulary=vocabulary,
        bodies=moved[readable],
        type=rules.type[known],
        head=head[known],
        body=(np.cumsum(readable, dtype=np.int32) - 1)[rules.body[known]],
        head_constant=head_constant[known],
        body_constant=body_constant[known],
        predictions=rules.predictions[known],
        support=rules.support[known],
        exact=rules.exact[known],
        **{name: getattr(rules, name)[known] for name in rules.extras},
    )
    return moved_rules, len(rules) - len(moved_rules)


def join_vocabularies(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    """Return the vocabulary with all labels of several."""
    first = vocabularies[0]
    if all(first.same_labels(other) for other in vocabularies[1:]):
        return first
    return Vocabulary.from_labels(
        pl.concat([vocabulary.entities for vocabulary in vocabularies]),
        pl.concat([vocabulary.relations for vocabulary in vocabularies]),
    )


def _joined(parts: Iterable[NDArray[Any]], length: int, dtype: DTypeLike, on_disk: bool) -> NDArray[Any]:
    """Put parts of a column after each other, in memory or in a file that vanishes with the array."""
    column = _room(length, dtype, on_disk)
    start = 0
    for part in parts:
        column[start : start + len(part)] = part
        start += len(part)
    return column


def _room(length: int, dtype: DTypeLike, on_disk: bool) -> NDArray[Any]:
    """Return an array to be filled."""
    if not on_disk or not length:
        return np.empty(length, dtype)
    with TemporaryFile(prefix="anyburl-rules-") as file:
        return np.memmap(file, dtype, "w+", shape=(length,))


def first_of_each(rules: RuleColumns) -> NDArray[np.bool_]:
    """Mark the first of rules that are equal but for their scores."""
    keys = joint_keys([rules.head, rules.body, rules.head_constant, rules.body_constant])
    return pl.Series(keys).is_first_distinct().to_numpy()


def _entity_map(old: Vocabulary, new: Vocabulary) -> Ints:
    """Return new ids by old ones: -2 where unknown; `self` stays `self`, and -1 (the last place) stays -1."""
    known = new.encode_entities(old.entities)
    return np.concatenate([_or_unknown(known), np.array([new.self_id, -1], dtype=np.int32)])


def _directed_map(old: Vocabulary, new: Vocabulary) -> Ints:
    """Return new directed relations by old ones: -2 where unknown; -1 (the last place) stays -1."""
    known = new.encode_relations(old.relations)
    forward = _or_unknown(known)
    backward = np.where(known < 0, -2, known + new.n_relations)
    return np.concatenate([forward, backward, [-1]]).astype(np.int32)


def _or_unknown(ids: Ints) -> Ints:
    return np.where(ids < 0, np.int32(-2), ids)
