"""Facts found by both their questions: each once, with its higher score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from anyburl.completion.facts import FactColumns
from anyburl.writing import temporary_folder

MOST_FACTS = 1 << 22  # in memory; more of them go to temporary files
FACTS_AT_A_TIME = 1 << 18


def merge_directions(found: Iterator[FactColumns]) -> Iterator[FactColumns]:
    """Yield every fact once, with the higher of its scores; all facts of a subject come together.

    If the search is interrupted, what was found is yielded before the interrupt is raised.
    """
    with temporary_folder() as folder:
        files, waiting, interrupt = list[Path](), list[FactColumns](), None
        try:
            for facts in found:
                waiting.append(facts)
                if sum(map(len, waiting)) > MOST_FACTS:
                    files.append(_spill(waiting, folder, len(files)))
                    waiting = []
        except KeyboardInterrupt as raised:
            interrupt = raised
        if files:
            files.append(_spill(waiting, folder, len(files)))
            yield from _merge_files(files)
        else:
            yield from _by_subject(_best_of_each(FactColumns.concat(waiting)))
    if interrupt is not None:
        raise interrupt


def _merge_files(files: list[Path]) -> Iterator[FactColumns]:
    for first, last in _ranges(files):
        stored = pl.scan_parquet(files).filter(pl.col("subject").is_between(first, last)).collect()
        yield from _by_subject(_best_of_each(_columns(stored)))


def _best_of_each(facts: FactColumns) -> FactColumns:
    """Return each fact with its highest score, of equals with the most rules; sorted by the fact."""
    subjects, relations, objects = facts.triples.T
    order = np.lexsort((facts.rules, -facts.n_rules, -facts.scores, objects, relations, subjects))
    triples = facts.triples[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return facts.take(order[is_first])


def _by_subject(facts: FactColumns) -> Iterator[FactColumns]:
    """Cut facts that are sorted by subject into parts of whole subjects."""
    start, subjects = 0, facts.triples[:, 0]
    while start < len(facts):
        last = subjects[min(start + FACTS_AT_A_TIME, len(facts)) - 1]
        stop = int(np.searchsorted(subjects, last, "right"))
        yield facts.take(np.arange(start, stop))
        start = stop


def _spill(parts: list[FactColumns], folder: Path, number: int) -> Path:
    """Write facts to a temporary file."""
    facts, path = _best_of_each(FactColumns.concat(parts)), folder / f"{number}.parquet"
    subjects, relations, objects = facts.triples.T
    columns = {"subject": subjects, "relation": relations, "object": objects, "score": facts.scores}
    frame = pl.DataFrame({**columns, "rule": facts.rules, "rules": facts.n_rules})
    frame.write_parquet(path, compression="lz4", row_group_size=FACTS_AT_A_TIME)
    return path


def _columns(frame: pl.DataFrame) -> FactColumns:
    triples = frame.select("subject", "relation", "object").to_numpy().astype(np.int32)
    return FactColumns(triples, *(frame[name].to_numpy() for name in ("score", "rule", "rules")))


def _ranges(files: list[Path]) -> Iterator[tuple[int, int]]:
    """Return ranges of subjects that have about as many facts as there may be in memory."""
    counts = pl.scan_parquet(files).group_by("subject").len().sort("subject").collect()
    subjects, groups = counts["subject"].to_numpy(), np.cumsum(counts["len"].to_numpy()) // MOST_FACTS
    for group in np.unique(groups):
        within = subjects[groups == group]
        yield int(within[0]), int(within[-1])
