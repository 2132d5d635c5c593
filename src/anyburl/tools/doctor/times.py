"""What is odd about facts with times: facts of the future in train, gaps, relations whose facts end."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, counted
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.table import TripleTable
from anyburl.temporal.clock import Clock
from anyburl.temporal.facts import NEVER, TemporalDataset, TemporalFacts, TemporalLike, load_temporal_dataset
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Report, Severity, share_text
from anyburl.tools.doctor.labels import find_label_faults
from anyburl.tools.doctor.structure import check_degrees, check_reflexive, check_unseen
from anyburl.tools.options import TIME_CHECKS

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
