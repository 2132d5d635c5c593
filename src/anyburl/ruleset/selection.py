"""Filters rules, and finds the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from anyburl import checking
from anyburl.errors import InvalidOptionError, RuleError, UnknownLabelError
from anyburl.rules.types import RuleType
from anyburl.ruleset import measures
from anyburl.ruleset.bodytable import distinct_rows
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.measures import Measure
from anyburl.triples.vocabulary import SELF_TOKEN

Order = Literal["confidence", "support", "value", "predictions", "pca-confidence", "head-coverage", "lift"]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Key = Callable[[Rows], NDArray[Any]]
"""What some rows have of something; the more, the better."""


def check_bounds(counts: Mapping[str, int | None], **measures: float | None) -> None:
    """Refuse bounds that are no numbers, or below 0."""
    for name, count in counts.items():
        if count is not None:
            checking.whole(name, count, 0)
    for name, measure in measures.items():
        if measure is not None:
            checking.real(name, measure, 0)


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


def measure_column(rules: RuleColumns, name: Measure) -> NDArray[np.float64]:
    """Return a measure of rules that takes the data; rules that were not measured are refused."""
    column = getattr(rules, name)
    if column is None:
        raise RuleError(f"the rules have no {name}: add it with anyburl.measure(rules, table)")
    measured: NDArray[np.float64] = column
    return measured


def best_rows(rules: RuleColumns, k: int, by: Order, smoothing: float) -> Rows:
    """Return the rows of the k best rules, best first; `smoothing` matters to the confidence only.

    Ties go to the rule with more support, then the shorter one, then by type, head, body and constants, so
    that the result does not depend on the order of the rules.
    """
    checking.whole("k", k, 0, checking.MOST_KEPT)
    checking.real("smoothing", smoothing, 0)
    keys = [_score(rules, by, smoothing), *_tie_breakers(rules)]
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


def _score(rules: RuleColumns, by: Order, smoothing: float) -> Key:
    support, predictions = rules.support, rules.predictions
    scores: dict[str, Key] = {
        "confidence": lambda rows: measures.confidence(support[rows], predictions[rows], smoothing),
        "support": lambda rows: support[rows],
        "value": lambda rows: measures.value(support[rows], predictions[rows]),
        "predictions": lambda rows: predictions[rows],
        "pca-confidence": lambda rows: measure_column(rules, "pca_confidence")[rows],
        "head-coverage": lambda rows: measure_column(rules, "head_coverage")[rows],
        "lift": lambda rows: measure_column(rules, "lift")[rows],
    }
    return scores[checking.choice("by", by, scores)]


def _tie_breakers(rules: RuleColumns) -> list[Key]:
    """Return keys, larger is better, that tell any two different rules apart."""
    return [
        lambda rows: rules.support[rows],
        lambda rows: -(rules.bodies >= 0).sum(axis=1, dtype=np.int64)[rules.body[rows]],
        _ascending(rules.type),
        _ascending(rules.head),
        lambda rows: -distinct_rows(rules.bodies[rules.body[rows]])[1],
        _ascending(rules.head_constant),
        _ascending(rules.body_constant),
    ]


def _ascending(column: NDArray[Any]) -> Key:
    return lambda rows: -column[rows].astype(np.int64)


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
