"""Which rules meet conditions, and which are the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import InvalidOptionError, RuleError, UnknownLabelError
from anyburl.data.vocabulary import SELF_TOKEN
from anyburl.rules import columns as measures
from anyburl.rules.columns import COLUMNS, MEASURES, Holds, RuleColumns
from anyburl.rules.combine import distinct_rows
from anyburl.rules.types import RuleType

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Key = Callable[[Rows], NDArray[Any]]
"""Returns a number for each of some rows; rules with higher numbers come first."""

MEASURE_ORDERS = {name.replace("_", "-"): name for name in MEASURES}
ORDERS = ("confidence", "support", "value", "predictions", *MEASURE_ORDERS)
"""By which rules can be sorted."""


def default_order(rules: RuleColumns) -> str:
    """Return the default order of rules: by worth if they are distilled, by surprise if that was measured."""
    return next((name for name in ("worth", "surprise") if name in rules.measures), "confidence")


MINIMUMS = {f"min_{name}": name for name in MEASURES}
"""The conditions of `RuleSet.filter` on measures."""


def check_minimums(counts: Mapping[str, int | None], numbers: Mapping[str, float | None]) -> None:
    """Refuse minimums that are no numbers, or below 0."""
    for name, count in counts.items():
        if count is not None:
            checking.whole(name, count, 0)
    for name, number in numbers.items():
        if number is not None:
            checking.real(name, number, 0)


def minimum_masks(rules: RuleColumns, minimums: Mapping[str, float | None]) -> list[Mask]:
    """Return for each minimum of a measure, such as {"min_lift": 2}, which rules reach it."""
    given = [(MINIMUMS[name], least) for name, least in minimums.items() if least is not None]
    return [measure_column(rules, name) >= least for name, least in given]


def type_mask(rules: RuleColumns, types: RuleType | str | Iterable[RuleType | str]) -> Mask:
    """Mark rules of one type or of several."""
    names = [types] if isinstance(types, str) else checking.texts("type", types, f"some of {', '.join(RuleType)}")
    return np.isin(rules.type, [_type(name).code for name in names])


def relation_mask(rules: RuleColumns, relation: str) -> Mask:
    """Mark rules that predict `relation`."""
    number = rules.vocabulary.relation_id(relation)
    return np.isin(rules.head, [number, number + rules.vocabulary.n_relations])


def label_mask(rules: RuleColumns, label: str) -> Mask:
    """Mark rules that hold an entity or a relation, in the head or in the body."""
    if not isinstance(label, str):
        raise InvalidOptionError("contains", "the label of an entity or a relation", label)
    vocabulary = rules.vocabulary
    relation = int(vocabulary.encode_relations([label])[0])
    entity = int(vocabulary.encode_entities([label])[0])
    if relation < 0 and entity < 0 and label != SELF_TOKEN:
        raise _unknown(rules, label)
    mask = np.zeros(len(rules), dtype=np.bool_)
    if relation >= 0:
        directed = [relation, relation + vocabulary.n_relations]
        mask |= np.isin(rules.head, directed)
        in_body: Mask = np.logical_or.reduce(np.isin(rules.bodies, directed), axis=1)
        mask |= in_body[rules.body]
    entities = {entity} - {-1} | ({vocabulary.self_id} if label == SELF_TOKEN else set())
    for number in entities:
        mask |= (rules.head_constant == number) | (rules.body_constant == number)
    return mask


def measure_column(rules: RuleColumns, name: str) -> NDArray[np.float64]:
    """Return a measure of rules that takes the data; rules that were not measured are refused."""
    column = getattr(rules, name)
    if column is None:
        raise RuleError(f"the rules have no {name}: add it with {COLUMNS[name].added_by}")
    measured: NDArray[np.float64] = column
    return measured


def best_rows(rules: RuleColumns, k: int, by: str | None, smoothing: float) -> Rows:
    """Return the rows of the k best rules, best first; `smoothing` matters to the confidence only.

    Without an order, the default one is used.

    Ties go to the rule with more support, then the shorter one, then by type, head, body and constants, so
    that the result does not depend on the order of the rules.
    """
    checking.whole("k", k, 0, checking.MOST_KEPT)
    checking.real("smoothing", smoothing, 0)
    keys = [_score(rules, default_order(rules) if by is None else by, smoothing), *_tie_breakers(rules)]
    rows = _narrow(keys, np.arange(len(rules), dtype=np.int64), k)
    columns = [key(rows) for key in reversed(keys)]
    return rows[np.lexsort([-column for column in columns])][:k]


def _narrow(keys: Sequence[Key], rows: Rows, k: int) -> Rows:
    """Keep the k best rows (in any order), key after key, looking at a later key only among ties."""
    kept: list[Rows] = []
    for key in keys:
        if len(rows) <= k or k == 0:
            break
        values = key(rows)
        least = np.partition(values, len(values) - k)[len(values) - k]
        better = rows[values > least]
        kept.append(better)
        k -= len(better)
        rows = rows[values == least]
    return np.concatenate([*kept, rows[:k]])


def _score(rules: RuleColumns, by: str, smoothing: float) -> Key:
    support, predictions = rules.support, rules.predictions
    by = checking.choice("by", by, ORDERS)
    if by in MEASURE_ORDERS:
        column = measure_column(rules, MEASURE_ORDERS[by])
        return lambda rows: column[rows]
    scores: dict[str, Key] = {
        "confidence": lambda rows: measures.confidence(support[rows], predictions[rows], smoothing),
        "support": lambda rows: support[rows],
        "value": lambda rows: measures.value(support[rows], predictions[rows]),
        "predictions": lambda rows: predictions[rows],
    }
    return scores[by]


def _tie_breakers(rules: RuleColumns) -> list[Key]:
    """Return keys, larger is better, that tell any two different rules apart."""
    return [
        lambda rows: rules.support[rows],
        lambda rows: -(rules.bodies >= 0).sum(axis=1, dtype=np.int64)[rules.body[rows]],
        *(_ascending(rules, name) for name in rules.columns if COLUMNS[name].is_identity),
    ]


def _ascending(rules: RuleColumns, name: str) -> Key:
    """Return the key that puts rules with smaller numbers first, NaN before all; bodies are compared by their
    relations, not their rows.
    """
    if COLUMNS[name].holds is Holds.BODY:
        return lambda rows: -distinct_rows(rules.bodies[rules.body[rows]])[1]
    column: NDArray[Any] = getattr(rules, name)
    return lambda rows: -np.nan_to_num(column[rows].astype(np.float64), nan=-np.inf)


def _type(name: RuleType | str) -> RuleType:
    try:
        return RuleType(name)
    except ValueError:
        raise InvalidOptionError("type", f"one of {', '.join(RuleType)}", name) from None


def _unknown(rules: RuleColumns, label: str) -> UnknownLabelError:
    suggestions: list[str] = []
    for find in (rules.vocabulary.relation_id, rules.vocabulary.entity_id):
        try:
            find(label)
        except UnknownLabelError as error:
            suggestions += error.suggestions
    return UnknownLabelError("entity or relation", label, suggestions[:3])
