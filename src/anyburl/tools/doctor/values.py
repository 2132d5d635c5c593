"""Doctor of what stands beside triples: values that contradict strong regularities, and what is odd about times.

Three regularities of values are looked at. Two attributes of one entity, or one attribute of two entities joined by a
relation, are nearly always in the same order: who is born before dying, and before their children. Values lie within a
range, on a linear or on a logarithmic scale, whichever suits them. And a value that is 10, 100 or 1000 times what
similar entities have may be in the wrong unit. Suspicion is about the logarithm of wrong : right, as for facts.

Of times: facts of the future in train, gaps, relations whose facts end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, counted
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.data.clock import Clock
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.table import TripleTable
from anyburl.reasoning.estimation import Estimator, entity_medians
from anyburl.temporal.facts import NEVER, TemporalDataset, TemporalFacts, TemporalLike, load_temporal_dataset
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Report, Severity, share_text
from anyburl.tools.doctor.labels import find_label_faults
from anyburl.tools.doctor.structure import check_degrees, check_reflexive, check_unseen
from anyburl.tools.options import TIME_CHECKS

FEWEST_PAIRS = 30  # that show an order
CORRELATED = 0.5  # two attributes whose order is compared
RARE = 0.02  # the share of pairs that may break it
LEAST_VALUES = 20  # of an attribute whose outliers are sought
FAR = 5.0  # robust standard deviations from the median, where an outlier begins
MOST_COMPARED = 40  # outliers of an attribute, which are compared with similar entities
SUSPICIOUS = float(np.log(20))
NEAR_POWER = 0.1  # of the logarithm to base 10
UNIT = 2.0  # what is added for a power of ten
MOST_OF_ONE = 5  # values of an attribute that are listed

Floats = NDArray[np.float64]


class Suspect(NamedTuple):
    """A value that may be wrong."""

    entity: int
    attribute: str
    value: float
    suspicion: float
    reason: str


def check_values(facts: DatasetFacts, top: int) -> list[Finding]:
    """Describe the attributes, and list the values that are most likely wrong."""
    attributes = facts.dataset.attributes
    if attributes.empty:
        return []
    described = [
        (
            name,
            str(one.kind),
            len(one),
            len(np.unique(one.entities)),
            *(one.format(float(one.values[row])) for row in (0, (len(one) - 1) // 2, -1)),
        )
        for name, one in attributes.items()
    ]
    columns = ("attribute", "kind", "values", "entities", "smallest", "median", "largest")
    table = pl.DataFrame(described, schema=columns, orient="row").sort("values", descending=True, maintain_order=True)
    noun = counted(attributes.n_values, "value")
    sentence = f"{noun} of {counted(len(attributes), 'attribute')}"
    findings = [Finding.of("values", Severity.NOTE, sentence, attributes.n_values, table.head(top))]
    suspects = find_suspects(facts)
    if suspects:
        labels, shown = facts.dataset.vocabulary, suspects[:top]
        examples = pl.DataFrame(
            {
                "entity": [labels.entity_label(one.entity) for one in shown],
                "attribute": [one.attribute for one in shown],
                "value": [attributes[one.attribute].format(one.value) for one in shown],
                "suspicion": [round(one.suspicion, 1) for one in shown],
                "why": [one.reason for one in shown],
            }
        )
        verb = "contradicts" if len(suspects) == 1 else "contradict"
        sentence = f"{counted(len(suspects), 'value')} {verb} what others show, the most suspicious first"
        findings.insert(0, Finding.of("values", Severity.WARNING, sentence, len(suspects), examples))
    return findings


def find_suspects(facts: DatasetFacts) -> list[Suspect]:
    """Return the values that are likely wrong, the most suspicious first, a few of each attribute."""
    strongest: dict[tuple[int, str, float], Suspect] = {}
    for suspect in (*_orders_of_attributes(facts), *_orders_along_relations(facts), *_outliers(facts)):
        key = suspect.entity, suspect.attribute, suspect.value
        if key not in strongest or strongest[key].suspicion < suspect.suspicion:
            strongest[key] = suspect
    listed, counts = [], dict.fromkeys(facts.dataset.attributes, 0)
    for suspect in sorted(strongest.values(), key=lambda one: (-one.suspicion, one.attribute, one.entity)):
        counts[suspect.attribute] += 1
        if counts[suspect.attribute] <= MOST_OF_ONE and suspect.suspicion >= SUSPICIOUS:
            listed.append(suspect)
    return listed


def _orders_of_attributes(facts: DatasetFacts) -> Iterator[Suspect]:
    """Yield values of entities that have two attributes in an unusual order."""
    attributes = facts.dataset.attributes
    medians = {name: entity_medians(one) for name, one in attributes.items() if one.kind != AttributeKind.BOOLEAN}
    for first, second in combinations(medians, 2):
        if attributes[first].kind != attributes[second].kind:
            continue
        (a, own), (b, others) = medians[first], medians[second]
        both, rows, other_rows = np.intersect1d(a, b, assume_unique=True, return_indices=True)
        if not _go_together(own[rows], others[other_rows]):
            continue  # a latitude is below a population, but that means nothing
        for row, suspicion, share, way in _breaking(own[rows], others[other_rows]):
            values = {first: float(own[rows][row]), second: float(others[other_rows][row])}
            texts = {name: attributes[name].format(value) for name, value in values.items()}
            usual, unusual = _order_words(attributes[first])[:: -1 if way > 0 else 1]
            order = f"{first} {texts[first]} is {unusual} {second} {texts[second]}"
            reason = f"{order}; {first} is {usual} in {share:.1%} of {len(both):,}"
            name = _farther(attributes, values)
            yield Suspect(int(both[row]), name, values[name], suspicion, reason)


def _go_together(first: Floats, second: Floats) -> bool:
    """Return whether two attributes rise together, by the correlation of their ranks."""
    if len(first) < FEWEST_PAIRS:
        return False
    ranks = [pl.Series(values).rank().to_numpy() for values in (first, second)]
    return all(rank.std() for rank in ranks) and float(np.corrcoef(np.stack(ranks))[0, 1]) >= CORRELATED


def _orders_along_relations(facts: DatasetFacts) -> Iterator[Suspect]:
    """Yield values of entities whose order along a relation is unusual."""
    vocabulary, names = facts.dataset.vocabulary, facts.dataset.names
    for name, one in facts.dataset.attributes.items():
        if one.kind == AttributeKind.BOOLEAN:
            continue
        values = np.full(facts.n_entities, np.nan)
        entities, medians = entity_medians(one)
        values[entities] = medians
        train = facts.train[~np.isnan(values[facts.train[:, 0]]) & ~np.isnan(values[facts.train[:, 2]])]
        for relation in np.flatnonzero(np.bincount(train[:, 1]) >= FEWEST_PAIRS).tolist():
            pairs = train[train[:, 1] == relation]
            label = names.get(vocabulary.relation_label(relation))
            for row, suspicion, share, way in _breaking(values[pairs[:, 0]], values[pairs[:, 2]]):
                ends = [int(end) for end in pairs[row, [0, 2]]]
                chosen, other = ends if np.argmax(_distances(one, values[ends])) == 0 else ends[::-1]
                is_above = values[chosen] > values[other]
                shown = f"{names.get(vocabulary.entity_label(other))}, {one.format(float(values[other]))}"
                words = _order_words(one)
                reason = (
                    f"{words[int(is_above)]} {shown}; along {label}, subjects are {words[int(way > 0)]} objects in "
                    f"{share:.1%} of {len(pairs):,}"
                )
                yield Suspect(chosen, name, float(values[chosen]), suspicion, reason)


def _order_words(attribute: Attribute) -> tuple[str, str]:
    """Return what a smaller value is called, and a larger one."""
    return ("before", "after") if attribute.kind is AttributeKind.DATE else ("below", "above")


def _breaking(first: Floats, second: Floats) -> Iterator[tuple[int, float, float, int]]:
    """Yield pairs that are not in the order of nearly all: row, suspicion, share of the others, and the usual order.

    The order is -1 if the first is below the second. Equal ones break no order.
    """
    n_pairs = len(first)
    if n_pairs < FEWEST_PAIRS:
        return
    signs = np.sign(first - second)
    for way in (-1, 1):
        breaking = np.flatnonzero(signs == -way)
        in_order = int((signs == way).sum())
        if len(breaking) <= RARE * n_pairs and in_order >= (1 - 2 * RARE) * n_pairs:
            suspicion = float(np.log((in_order + 1) / (len(breaking) + 1)))
            for row in breaking.tolist():
                yield row, suspicion, in_order / n_pairs, way


def _outliers(facts: DatasetFacts) -> Iterator[Suspect]:
    """Yield values far from the others, unless similar entities have such values, too."""
    estimator = None
    for name, one in facts.dataset.attributes.items():
        if one.kind == AttributeKind.BOOLEAN or len(one) < LEAST_VALUES:
            continue
        distances = _distances(one, one.values)
        order = np.argsort(-distances, kind="stable")[:MOST_COMPARED]
        for row in order[distances[order] >= FAR].tolist():
            estimator = estimator or Estimator(facts.dataset, facts.graph)
            entity, value = int(one.entities[row]), float(one.values[row])
            if (one.entities == entity).all():
                continue
            estimate = estimator.estimate_id(entity, one)
            if estimate.low <= value <= estimate.high:
                continue
            suspicion = float(3 * np.log(distances[row] / 4))
            reason = f"similar entities have {estimate.text(estimate.low)} to {estimate.text(estimate.high)}"
            power = _power_of_ten(value, estimate.value) if one.kind == AttributeKind.NUMBER else 0
            if power:
                factor = f"{10 ** abs(power):,}"
                side = f"{factor} times" if power > 0 else f"1/{factor} of"
                reason += f": is it in another unit? It is about {side} {estimate.text(estimate.value)}"
                suspicion += UNIT
            yield Suspect(entity, name, value, suspicion, reason)


def _power_of_ten(value: float, usual: float) -> int:
    """Return the power of ten that a value is about times the usual one; 0 if it is not."""
    if not value or not usual or (value < 0) != (usual < 0):
        return 0
    power = float(np.log10(value / usual))
    return round(power) if abs(power - round(power)) <= NEAR_POWER else 0


def _farther(attributes: Attributes, values: Mapping[str, float]) -> str:
    """Return the attribute whose value is farther from the others of that attribute."""
    distances = {name: float(_distances(attributes[name], np.array([value]))[0]) for name, value in values.items()}
    return max(distances, key=lambda name: distances[name])


def _distances(attribute: Attribute, values: Floats) -> Floats:
    """Return how many robust standard deviations values are from the median, on the scale that suits the attribute."""
    known = attribute.values
    if attribute.kind == AttributeKind.NUMBER and known[0] > 0 and _skew(np.log(known)) < _skew(known):
        known, values = np.log(known), np.log(values)
    low, median, high = np.quantile(known, (0.25, 0.5, 0.75))
    deviation = (high - low) / 1.349
    if not deviation:
        low, high = np.quantile(known, (0.05, 0.95))
        deviation = (high - low) / 3.29
    if not deviation:
        return np.zeros(len(values))
    distances: Floats = np.abs(values - median) / deviation
    return distances


def _skew(values: Floats) -> float:
    """Return how far the tenths at both ends are from lying evenly around the median, from 0 to 1."""
    low, median, high = np.quantile(values, (0.1, 0.5, 0.9))
    return abs(low + high - 2 * median) / (high - low) if high > low else 0.0


LONG_GAP = 5  # times the median distance of moments
FEWEST_IN_RELATION = 10  # facts, to say that they end early
LONG_SILENCE = 3  # times the longest pause of a relation before


def examine_times(data: TemporalLike, top: int = 10) -> Report:
    """Report what is odd about facts with times; `top` examples are given of each finding."""
    started, dataset = time.monotonic(), load_temporal_dataset(data)
    if not len(dataset.train):
        raise DataError(f"{dataset.name} has no train facts to examine")
    facts = DatasetFacts(without_times(dataset))
    findings = [
        *_moments(dataset, top),
        *_future(dataset, top),
        *_gaps(dataset, top),
        *_ending(dataset, top),
        *check_unseen(facts, top),
        *check_reflexive(facts, top),
        *check_degrees(facts, top),
        *find_label_faults(facts, top),
    ]
    findings.sort(key=lambda finding: list(TIME_CHECKS).index(finding.check))
    nothing, n_facts = np.zeros(len(facts.train)), {split: len(dataset.split(split)) for split in SPLITS}
    seconds = time.monotonic() - started
    return Report(dataset.name, tuple(findings), nothing, None, seconds, facts, TIME_CHECKS, n_facts)


def without_times(dataset: TemporalDataset) -> Dataset:
    """Return the same facts without their times."""
    train, valid, test = (TripleTable.from_ids(dataset.split(split).triples, dataset.vocabulary) for split in SPLITS)
    return Dataset(dataset.name, train, valid, test, dataset.source, names=dataset.names)


def labelled(dataset: TemporalDataset, facts: TemporalFacts, rows: NDArray[np.int64]) -> pl.DataFrame:
    """Return some facts as people read them: subject, relation, object, time."""
    times = [dataset.clock.label(step) for step in facts.times[rows]]
    return dataset.vocabulary.decode_triples(facts.triples[rows]).with_columns(pl.Series("time", times))


def _moments(dataset: TemporalDataset, top: int) -> list[Finding]:
    steps, counts = np.unique(_all_times(dataset), return_counts=True)
    order = np.argsort(-counts, kind="stable")[:top]
    table = pl.DataFrame({"time": [dataset.clock.label(step) for step in steps[order]], "facts": counts[order]})
    sentence = (
        f"{dataset.words}; a moment with facts has {np.median(counts):g} (median; fewest {counts.min():,}, "
        f"most {counts.max():,})"
    )
    return [Finding.of("times", Severity.NOTE, sentence, len(steps), table)]


def _future(dataset: TemporalDataset, top: int) -> list[Finding]:
    findings = []
    for before, after in combinations(SPLITS, 2):
        early, late = dataset.split(before), dataset.split(after)
        if not len(early) or not len(late):
            continue
        start = int(late.times[0])
        rows = np.flatnonzero(early.times >= start)
        if len(rows):
            sentence = (
                f"{counted(len(rows), 'fact')} of {before} ({share_text(len(rows), len(early))}) "
                f"{'is' if len(rows) == 1 else 'are'} not before {after}, which begins at {dataset.clock.label(start)}"
            )
            examples = labelled(dataset, early, rows[-top:][::-1])
            findings.append(Finding.of("future", Severity.PROBLEM, sentence, len(rows), examples))
    return findings


def _gaps(dataset: TemporalDataset, top: int) -> list[Finding]:
    steps = np.unique(_all_times(dataset))
    distances = np.diff(steps)
    if len(distances) < 2:
        return []
    usual = float(np.median(distances))
    rows = np.flatnonzero(distances > max(LONG_GAP * usual, 1))
    if not len(rows):
        return []
    order = rows[np.argsort(-distances[rows], kind="stable")][:top]
    clock = dataset.clock
    table = pl.DataFrame(
        {
            "after": [clock.label(step) for step in steps[order]],
            "before": [clock.label(step) for step in steps[order + 1]],
            "without facts": [clock.duration(int(distances[row]) - 1) for row in order],
        }
    )
    sentence = (
        f"{counted(len(rows), 'stretch', 'stretches')} of time without any fact, where facts are usually "
        f"{clock.duration(round(usual))} apart"
    )
    return [Finding.of("gaps", Severity.WARNING, sentence, len(rows), table)]


def _ending(dataset: TemporalDataset, top: int) -> list[Finding]:
    """Return relations whose facts have an end, and relations that have fallen silent long before the end."""
    parts = [dataset.split(split) for split in SPLITS]
    relations = np.concatenate([part.relations for part in parts])
    times = np.concatenate([part.times for part in parts])
    rows = [_silence(dataset, relation, times[relations == relation]) for relation in np.unique(relations)]
    silent = [row for row in rows if row is not None]
    findings = []
    if silent:
        sentence = f"{counted(len(silent), 'relation has', 'relations have')} no facts any more long before the end"
        table = pl.DataFrame(silent[:top], schema=["relation", "facts", "last", "silent for"], orient="row")
        findings.append(Finding.of("ending", Severity.NOTE, sentence, len(silent), table))
    if all(part.ends is not None for part in parts):
        ends = np.concatenate([part.ends for part in parts if part.ends is not None])
        findings += _ended(dataset, relations, ends, top)
    return findings


def _silence(dataset: TemporalDataset, relation: int, times: NDArray[np.int64]) -> tuple[str, int, str, str] | None:
    clock: Clock = dataset.clock
    steps, last = np.unique(times), dataset.steps[1]
    silence = last - int(steps[-1])
    if len(times) < FEWEST_IN_RELATION or silence <= LONG_SILENCE * int(np.diff(steps).max(initial=1)):
        return None
    label = dataset.vocabulary.relation_label(relation)
    return label, len(times), clock.label(int(steps[-1])), clock.duration(silence)


def _ended(dataset: TemporalDataset, relations: NDArray[np.int32], ends: NDArray[np.int64], top: int) -> list[Finding]:
    ended = np.bincount(relations[ends != NEVER], minlength=dataset.vocabulary.n_relations)
    counts = np.bincount(relations, minlength=dataset.vocabulary.n_relations)
    order = np.argsort(-ended, kind="stable")
    order = order[ended[order] > 0]
    if not len(order):
        return []
    table = pl.DataFrame(
        {
            "relation": dataset.vocabulary.relations.gather(order[:top]),
            "facts": counts[order[:top]],
            "ended": ended[order[:top]],
        }
    )
    sentence = f"{counted(len(order), 'relation has', 'relations have')} facts that end"
    return [Finding.of("ending", Severity.NOTE, sentence, int(ended.sum()), table)]


def _all_times(dataset: TemporalDataset) -> NDArray[np.int64]:
    return np.concatenate([dataset.split(split).times for split in SPLITS])
