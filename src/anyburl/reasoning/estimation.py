"""Estimates missing values of attributes from the values of entities that have something in common.

The entities that share a neighbour or a relation with an entity, its neighbours, and those with similar values of
another attribute are *groups*. Values are compared by rank, so that it makes no difference whether an attribute is read
on a linear or on a logarithmic scale. A group whose values are close together tells more: the closest groups, allowing
for their sizes, are pooled with weights, and the estimate is the weighted median of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, InvalidOptionError
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.names import Names
from anyburl.graph.build import known_answers
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of

# Chosen on the valid values of FB15k-237.
N_GROUPS = 12  # that are pooled
PRIOR = 5  # values of the usual spread that are added to each group
POWER = 3  # of the spread that a group's weight falls by
WHOLE_WEIGHT = 0.1  # of all values, as a group
N_NEAR = 16  # entities with similar values of another attribute

USUAL_SPREAD = 0.25  # of ranks from 0 to 1 around their median, if they are spread evenly
LEAST_SPREAD = 0.001
RANGE = (0.1, 0.5, 0.9)
QUARTERS = (0.25, 0.5, 0.75)
N_REASONS = 5
STEPS = (-1.6, -0.7, 0.0, 0.7, 1.6)  # in spreads: about a tenth of the values lies beyond the outermost
MOST_MEMBERS = 2_000  # of a group, spread evenly over a larger one
MOST_NEIGHBOURS = 500  # of an entity along a relation
LEAST_PAIRS = 3

Floats = NDArray[np.float64]
Ids = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class EstimateReason:
    """A group of entities whose values speak for an estimate.

    `group` is how they are chosen, as an atom: section(X,games), or installed_size(X) near 5. Half of their values lie
    between `low` and `high`; `share` is their part of the weight of all groups.
    """

    group: str
    n_values: int
    median: float
    low: float
    high: float
    share: float


@dataclass(frozen=True)
class Estimate:
    """The estimated value of an attribute of an entity: eight of ten such values or more lie between `low` and `high`.

    `stated` are the values that the data states, which the estimate does not use.
    """

    entity: str
    attribute: str
    value: float
    low: float
    high: float
    stated: tuple[float, ...]
    reasons: tuple[EstimateReason, ...]
    shown: Attribute = field(repr=False)

    def text(self, value: float) -> str:
        """Return a value as text, an estimated number with as many digits as make sense."""
        if self.shown.kind == "number" and value not in self.stated and abs(value) < 1e15:
            value = float(f"{value:.6g}")
        return self.shown.format(round(value) if self.shown.kind == "date" else value)

    def to_json(self) -> dict[str, Any]:
        """Return what `predict --json` prints."""
        return {
            "entity": self.entity,
            "attribute": self.attribute,
            "kind": str(self.shown.kind),
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "text": {name: self.text(getattr(self, name)) for name in ("value", "low", "high")},
            "stated": list(self.stated),
            "reasons": [asdict(reason) for reason in self.reasons],
        }


@dataclass(frozen=True)
class _Group:
    text: str
    values: Floats
    n_values: int  # from which the spread is known
    spread: float
    around: Floats | None = None  # what is pooled instead, where the values do not show the spread


class _Column:
    """One value of each entity, the median of those it has, and the rank among all entities, from 0 to 1."""

    def __init__(self, attribute: Attribute, n_entities: int) -> None:
        self.entities, self.medians = entity_medians(attribute)
        self.values = np.full(n_entities + 1, np.nan)  # the last one is the token `self`
        self.values[self.entities] = self.medians
        self._ordered = np.sort(self.medians)
        below, upto = (np.searchsorted(self._ordered, self.medians, side) for side in ("left", "right"))
        self.ranks = np.full(n_entities + 1, np.nan)
        self.ranks[self.entities] = (below + upto) / (2 * len(self._ordered))

    def around(self, entities: Ids, spread: float) -> Floats:
        """Return the values of entities, and those that lie as far from them by rank as others usually do."""
        ranks = np.clip(self.ranks[entities][:, None] + np.array(STEPS) * spread, 0, 1)
        rows = np.minimum((ranks * len(self._ordered)).astype(np.int64), len(self._ordered) - 1)
        values = self._ordered[rows]
        values[:, len(STEPS) // 2] = self.values[entities]
        return values.ravel()


def entity_medians(attribute: Attribute) -> tuple[NDArray[np.int32], Floats]:
    """Return the entities that have a value, ascending, and the median of those that each has."""
    entities, values = attribute.by_entity
    starts = np.flatnonzero(np.diff(entities, prepend=-1))
    sizes = np.diff(np.append(starts, len(entities)))
    return entities[starts], (values[starts + (sizes - 1) // 2] + values[starts + sizes // 2]) / 2


class Estimator:
    """Estimates values of one data set; what is computed once for an attribute is kept."""

    def __init__(self, dataset: Dataset, graph: GraphArrays | None = None, names: Names | None = None) -> None:
        self.dataset, self.names = dataset, names or dataset.names
        self._graph = graph_of(dataset.train) if graph is None else graph
        self._columns: dict[str, _Column] = {}
        self._pairs: dict[str, tuple[NDArray[np.int64], Floats]] = {}
        self._domains: dict[tuple[str, int], tuple[Ids, float]] = {}
        self._joint: dict[tuple[str, str], tuple[Floats, Ids, float]] = {}

    def estimate(self, entity: str, attribute: str) -> Estimate:
        """Estimate a value of an entity; both may be given by readable names."""
        known = pl.Series(list(self.dataset.attributes), dtype=pl.String)
        chosen = self.dataset.attributes.find(self.names.label_of(attribute, known, "attribute"))
        row = self.names.entity_id(entity, self.dataset.vocabulary)
        return self.estimate_id(row, chosen)

    def estimate_id(self, entity: int, attribute: Attribute) -> Estimate:
        """Estimate a value of an entity given by its id."""
        column = self._column(attribute.name)
        others = column.entities != entity
        if not others.any():
            raise DataError(f"no other entity has a value of {attribute.name}: there is nothing to estimate one from")
        groups = [group for group in self._groups(entity, attribute.name) if len(group.values)]
        spreads = [_shrunk(group) for group in groups]
        best = sorted(range(len(groups)), key=lambda row: (spreads[row], row))[:N_GROUPS]
        weights = [USUAL_SPREAD**-POWER * WHOLE_WEIGHT, *(spreads[row] ** -POWER for row in best)]
        pools = [column.medians[others], *(_pooled(groups[row]) for row in best)]
        each = np.concatenate([np.full(len(pool), w / len(pool)) for w, pool in zip(weights, pools, strict=True)])
        low, value, high = weighted_quantiles(np.concatenate(pools), each, RANGE)
        total = sum(weights)
        reasons = [
            EstimateReason(groups[row].text, len(groups[row].values), *_quarters(groups[row].values), weight / total)
            for row, weight in zip(best, weights[1:], strict=True)
        ]
        return Estimate(
            self.dataset.vocabulary.entity_label(entity),
            attribute.name,
            float(value),
            float(low),
            float(high),
            tuple(attribute.values_of(entity).tolist()),
            tuple(reasons[:N_REASONS]),
            attribute,
        )

    def evaluate(self, split: str = "test") -> pl.DataFrame:
        """Estimate the values of a split, each as if it were missing; return the errors, one row per attribute.

        The columns are `attribute`, `kind`, `values`, `mean_absolute_error`, `median_error` (of the attribute's median,
        which knows nothing of the entity) and `covered`, the share of the values within the estimated ranges.
        """
        if split not in SPLITS:
            raise InvalidOptionError("split", "train, valid or test", split)
        known = self.dataset.attributes
        judged = known if split == "train" else self.dataset.held_out.get(split, Attributes())
        judged = judged.select([name for name in judged if name in known])
        if judged.empty:
            raise DataError(
                f"{self.dataset.name} has no values held out for {split}: put them into attributes_{split}.tsv beside "
                "those that are learned from; the split train estimates each known value from the others"
            )
        rows = []
        for name, attribute in judged.items():
            medians, own = self._column(name).medians, self._column(name).entities
            errors, usual, covered = [], [], []
            for entity, value in zip(attribute.entities.tolist(), attribute.values.tolist(), strict=True):
                if not (own != entity).any():
                    continue
                estimate = self.estimate_id(entity, known[name])
                errors.append(abs(estimate.value - value))
                usual.append(abs(float(np.median(medians[own != entity] if split == "train" else medians)) - value))
                covered.append(estimate.low <= value <= estimate.high)
            if errors:
                figures = [float(np.mean(figure)) for figure in (errors, usual, covered)]
                rows.append((name, str(attribute.kind), len(errors), *figures))
        columns = ("attribute", "kind", "values", "mean_absolute_error", "median_error", "covered")
        return pl.DataFrame(rows, schema=columns, orient="row")

    def _column(self, name: str) -> _Column:
        if name not in self._columns:
            self._columns[name] = _Column(self.dataset.attributes[name], self.dataset.vocabulary.n_entities)
        return self._columns[name]

    def _groups(self, entity: int, name: str) -> Iterator[_Group]:
        graph, column = self._graph, self._column(name)
        first, last = (int(graph.segment_offsets[entity + i]) for i in (0, 1))
        for segment in range(first, last):
            relation = int(graph.segment_relations[segment])
            targets = graph.targets[slice(*graph.segment_starts[segment : segment + 2])]
            targets = _spread_evenly(targets[targets < graph.n_entities], MOST_NEIGHBOURS)
            inverse = (relation + graph.n_relations) % (2 * graph.n_relations)
            for target in targets.tolist():
                members = _spread_evenly(known_answers(graph, target, inverse), MOST_MEMBERS)
                if (group := self._group(members[members != entity], column)) is not None:
                    yield _Group(self._atom(relation, self._shown(target)), *group)
            yield self._domain(entity, name, relation)
            counts, spreads = self._along(name)
            near = targets[targets != entity]
            near = near[~np.isnan(column.values[near])]
            plain = relation % graph.n_relations
            if counts[plain] >= LEAST_PAIRS:
                text = f"the A of {self._atom(relation, 'A')}"
                spread = float(spreads[plain])
                around = column.around(near, spread)
                yield _Group(text, column.values[near], int(counts[plain]), spread, around)
        for other, own in self.dataset.attributes.values_of(entity).items():
            if other != name:
                yield self._similar(entity, name, other, float(np.median(own)))

    def _group(self, members: Ids, column: _Column) -> tuple[Floats, int, float] | None:
        ranks = column.ranks[members]
        has_value = ~np.isnan(ranks)
        n_values = int(has_value.sum())
        return None if n_values < 2 else (column.values[members][has_value], n_values, _spread(ranks[has_value]))

    def _domain(self, entity: int, name: str, relation: int) -> _Group:
        """Return all entities with a relation."""
        graph, column, key = self._graph, self._column(name), (name, relation)
        if key not in self._domains:
            members: Ids = graph.domains[slice(*graph.domain_offsets[relation : relation + 2])]
            members = _spread_evenly(members[~np.isnan(column.values[members])], MOST_MEMBERS)
            self._domains[key] = members, _spread(column.ranks[members])
        members, spread = self._domains[key]
        return _Group(self._atom(relation, "A"), column.values[members[members != entity]], len(members), spread)

    def _along(self, name: str) -> tuple[NDArray[np.int64], Floats]:
        """Return for each relation how many pairs both have a value, and how far these are apart on average."""
        if name not in self._pairs:
            ranks, triples = self._column(name).ranks, self.dataset.train.triples
            apart = np.abs(ranks[triples[:, 0]] - ranks[triples[:, 2]])
            both = ~np.isnan(apart) & (triples[:, 0] != triples[:, 2])
            relations, n_relations = triples[both, 1], self.dataset.vocabulary.n_relations
            counts = np.bincount(relations, minlength=n_relations)
            sums = np.bincount(relations, apart[both], minlength=n_relations)
            self._pairs[name] = counts, sums / np.maximum(counts, 1)
        return self._pairs[name]

    def _similar(self, entity: int, name: str, other: str, value: float) -> _Group:
        """Return the entities whose value of another attribute is nearest."""
        column, key, given = self._column(name), (name, other), self.dataset.attributes[other]
        n_near = 0 if given.kind is AttributeKind.BOOLEAN else N_NEAR
        if key not in self._joint:
            others = self._column(other)
            both: Ids = others.entities[~np.isnan(column.values[others.entities])]
            both = both[np.argsort(others.values[both], kind="stable")]
            sorted_values, apart = others.values[both], []
            for row in _spread_evenly(np.arange(len(both)), MOST_MEMBERS).tolist():
                near = both[slice(*_window(sorted_values, sorted_values[row], n_near))]
                near = near[near != both[row]]
                if len(near):
                    apart.append(abs(np.median(column.ranks[near]) - column.ranks[both[row]]))
            self._joint[key] = sorted_values, both, float(np.mean(apart)) if apart else USUAL_SPREAD
        sorted_values, both, spread = self._joint[key]
        near = both[slice(*_window(sorted_values, value, n_near))] if len(both) else both
        operator = "near" if n_near else "="
        text = f"{self.names.get(other)}(X) {operator} {given.format(value)}"
        return _Group(text, column.values[near[near != entity]], len(both), spread)

    def _atom(self, relation: int, other: str) -> str:
        n_relations = self._graph.n_relations
        label = self.names.get(self.dataset.vocabulary.relation_label(relation % n_relations))
        return f"{label}(X,{other})" if relation < n_relations else f"{label}({other},X)"

    def _shown(self, entity: int) -> str:
        return str(self.names.get(self.dataset.vocabulary.entity_label(entity)))


def weighted_quantiles(values: Floats, weights: Floats, shares: tuple[float, ...]) -> Floats:
    """Return the values below which these shares of the weight lie."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(weights[order])
    rows = np.searchsorted(upto, np.array(shares) * upto[-1])
    chosen: Floats = values[order][np.minimum(rows, len(values) - 1)]
    return chosen


def _quarters(values: Floats) -> tuple[float, float, float]:
    low, median, high = np.quantile(values, QUARTERS).tolist()
    return median, low, high


def _pooled(group: _Group) -> Floats:
    return group.values if group.around is None else group.around


def _spread(ranks: Floats) -> float:
    """Return the mean distance from the median that another value of the group can be expected to have."""
    n = len(ranks)
    return USUAL_SPREAD if n < 2 else float(np.abs(ranks - np.median(ranks)).mean() * n / (n - 1))


def _shrunk(group: _Group) -> float:
    """Return the spread of a group, nearer to the usual one the fewer values it is known from."""
    known = group.n_values * group.spread + PRIOR * USUAL_SPREAD
    return max(LEAST_SPREAD, known / (group.n_values + PRIOR))


def _window(sorted_values: Floats, value: float, n_near: int) -> tuple[int, int]:
    """Return the range of about `n_near` values around one, with all that are equal to the outermost; 0 for those that
    are equal to it.
    """
    start, end = (int(np.searchsorted(sorted_values, value, side)) for side in ("left", "right"))
    if not n_near:
        return start, end
    first = max(0, min((start + end) // 2 - n_near // 2, len(sorted_values) - n_near))
    last = min(len(sorted_values), first + n_near) - 1
    return (
        int(np.searchsorted(sorted_values, sorted_values[first])),
        int(np.searchsorted(sorted_values, sorted_values[last], "right")),
    )


def _spread_evenly(ids: Any, most: int) -> Any:
    """Return at most so many ids, spread evenly over all."""
    return ids if len(ids) <= most else ids[np.arange(most) * len(ids) // most]
