"""Reading AnyBURL's text: `predictions<TAB>support<TAB>confidence<TAB>rule`, one rule a line.

Lines are read by columns. Those of an unusual shape (names with commas or parentheses, a body in another order) are
parsed one by one; what is not a rule is reported with its line number.
"""

from __future__ import annotations

from collections.abc import Iterator

from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import concatenate, first_of_each
from anyburl.ruleset.files.anyburl_lines import Lines, parse_lines
from anyburl.ruleset.files.opening import PathLike, first_bytes, numbered_lines
from anyburl.ruleset.files.report import ReadReport, counted, repeated
from anyburl.ruleset.files.unify import unify
from anyburl.triples.vocabulary import Vocabulary

SLICE_LINES = 500_000


def read_text(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines. Scores are taken as sampled, since the text does not say."""
    first_bytes(path)
    batches = [parse_lines(frame, escaped=escaped) for frame in numbered_lines(path, SLICE_LINES)]
    n_comments = sum(batch.n_comments for batch in batches)
    rejected = sorted(pair for batch in batches for pair in batch.rejected)
    parts = unify((batch.rules for batch in batches if batch.rules is not None), vocabulary)
    if not parts.sets:
        nothing = RuleColumns.empty(vocabulary or Vocabulary.from_labels([], []))
        return nothing, ReadReport(0, n_comments, rejected)
    whole = concatenate(parts.sets)
    is_first = first_of_each(whole)
    rules = whole if is_first.all() else whole.take(is_first)
    remarks = [*repeated(len(whole) - len(rules)), *_contradicting(batches)]
    return rules, ReadReport(len(rules), n_comments, rejected, parts.n_unknown, remarks=remarks)


def _contradicting(batches: list[Lines]) -> Iterator[str]:
    """Say that confidences contradict the counts."""
    n_lines = sum(batch.n_contradicting for batch in batches)
    if n_lines:
        verb = "has a confidence that contradicts its" if n_lines == 1 else "have confidences that contradict their"
        first = next(batch.contradiction for batch in batches if batch.n_contradicting)
        yield f"{counted(n_lines, 'line')} {verb} counts, which are used ({first})"
