"""Reading AnyBURL's text: `predictions<TAB>support<TAB>confidence<TAB>rule`, one rule a line.

Lines are read by columns. Those of an unusual shape (names with commas or parentheses, a body in another order) are
parsed one by one; what is not a rule is reported with its line number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from anyburl.errors import RuleError
from anyburl.polars_unstable import line_batches
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.files.anyburl_lines import parse_lines
from anyburl.ruleset.files.opening import PathLike, first_bytes
from anyburl.ruleset.files.report import ReadReport
from anyburl.ruleset.files.unify import unify
from anyburl.triples.vocabulary import Vocabulary

SLICE_LINES = 500_000


def read_text(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines. Scores are taken as sampled, since the text does not say."""
    first_bytes(path)
    batches = [parse_lines(frame, escaped=escaped) for frame in _numbered_lines(path)]
    n_comments = sum(batch.n_comments for batch in batches)
    rejected = sorted(pair for batch in batches for pair in batch.rejected)
    parts = unify((batch.rules for batch in batches if batch.rules is not None), vocabulary)
    if not parts.sets:
        nothing = RuleColumns.empty(vocabulary or Vocabulary.from_labels([], []))
        return nothing, ReadReport(0, n_comments, rejected)
    return concatenate(parts.sets), ReadReport(parts.n_rules, n_comments, rejected, parts.n_unknown)


def _numbered_lines(path: PathLike) -> Iterator[pl.DataFrame]:
    try:
        yield from line_batches(Path(path), SLICE_LINES, numbered=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{os.fspath(path)}: expected text in UTF-8, plain or compressed ({error})") from error
