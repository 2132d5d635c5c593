"""AnyBURL's text: `predictions<TAB>support<TAB>confidence<TAB>rule`, one rule a line.

Lines are read by columns. Those of an unusual shape (names with commas or parentheses, a body in another order) are
parsed one by one; what is not a rule is reported with its line number.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from anyburl.errors import RuleError, counted
from anyburl.polars_unstable import sink_frames
from anyburl.rules.rule import Rule
from anyburl.rules.syntax import parse_rule
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import concatenate, first_of_each, unify
from anyburl.ruleset.files.anyburl_shapes import label_common_shapes
from anyburl.ruleset.files.labelled import encode_rules, label_rules
from anyburl.ruleset.files.rule_file import PathLike, ReadReport, first_bytes, numbered_lines, repeated
from anyburl.ruleset.labels import RuleTexts, check_writable, float_texts
from anyburl.triples.vocabulary import Vocabulary
from anyburl.writing import replacing

SLICE_LINES = 500_000
COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
FIELDS = ("predictions", "support", "confidence", "rule")
CONTRADICTION = "line {number}: {confidence} for {support} of {predictions}"
MOST_ROUNDED = 0.01  # tools may write two digits of a confidence


class Lines(NamedTuple):
    """What some lines hold."""

    rules: RuleColumns | None
    n_comments: int
    rejected: list[tuple[int, str]]
    n_contradicting: int = 0  # lines whose confidence does not fit their counts
    contradiction: str = ""  # the first of them


def read_text(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines; return them and a report of what was left out.

    Their counts are taken for estimates, since the text does not say.
    """
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
    remarks = [*repeated(len(whole) - len(rules)), *_contradictions(batches)]
    return rules, ReadReport(len(rules), n_comments, rejected, parts.n_unknown, remarks=remarks)


def write_text(rules: RuleColumns, path: PathLike, *, escaped: bool = False) -> None:
    """Write rules as text, compressed if the path ends in .gz or .zst; it appears when it is complete.

    Labels that text cannot carry are refused, or escaped on request.
    """
    if not escaped:
        check_writable(rules)
    texts = RuleTexts(rules, escaped=escaped)

    def frames() -> Iterator[pl.DataFrame]:
        for start in range(0, len(rules), SLICE_LINES):
            yield _line_frame(texts, start, min(start + SLICE_LINES, len(rules)))

    with replacing(Path(path), RuleError) as unfinished:
        sink_frames(
            pl.Schema({"line": pl.String}),
            frames,
            lambda lines: lines.sink_csv(
                unfinished,
                include_header=False,
                quote_style="never",
                compression=COMPRESSIONS.get(Path(path).suffix.lower(), "uncompressed"),
                check_extension=False,
            ),
        )


def _line_frame(texts: RuleTexts, start: int, stop: int) -> pl.DataFrame:
    part = texts.rules.slice(start, stop)
    columns = {
        "predictions": pl.Series(part.predictions),
        "support": pl.Series(part.support),
        "confidence": float_texts(part.confidence()),
        "rule": texts.texts(start, stop),
    }
    return pl.DataFrame(columns).select(line=pl.concat_str(pl.all(), separator="\t"))


def _contradictions(batches: list[Lines]) -> Iterator[str]:
    """Say that confidences contradict the counts."""
    n_lines = sum(batch.n_contradicting for batch in batches)
    if n_lines:
        verb = "has a confidence that contradicts its" if n_lines == 1 else "have confidences that contradict their"
        first = next(batch.contradiction for batch in batches if batch.n_contradicting)
        yield f"{counted(n_lines, 'line')} {verb} counts, which are used ({first})"


def parse_lines(lines: pl.DataFrame, *, escaped: bool) -> Lines:
    """Read a frame of lines with their numbers."""
    first = pl.col("number") == 1
    lines = lines.with_columns(
        pl.when(first).then(pl.col("line").str.strip_prefix("\ufeff")).otherwise("line").alias("line")
    )
    is_comment = lines["line"].str.starts_with("#")
    is_blank = lines["line"].str.strip_chars(" \t\r") == ""
    fields = _split_fields(lines.filter(~is_comment & ~is_blank))
    wrong, right = fields.filter(pl.col("fault").is_not_null()), fields.filter(pl.col("fault").is_null())
    rejected: list[tuple[int, str]] = list(wrong.select("number", "fault").iter_rows())
    rules, unparsed = _parse(right, escaped)
    odd = _contradicting(right)
    first_odd = [CONTRADICTION.format(**row) for row in odd.head(1).iter_rows(named=True)]
    return Lines(rules, int(is_comment.sum()), rejected + unparsed, len(odd), "".join(first_odd))


def _split_fields(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines at tabs, read the numbers, and name the first fault of each line."""
    texts = pl.col("line").str.splitn("\t", len(FIELDS)).struct.rename_fields(list(FIELDS))
    n_fields = pl.col("line").str.count_matches("\t", literal=True) + 1
    fields = lines.with_columns(n_fields=n_fields, fields=texts).unnest("fields")
    return fields.with_columns(
        pl.col("predictions", "support").cast(pl.Int64, strict=False).name.prefix("n_"),
        number_of_confidence=pl.col("confidence").cast(pl.Float64, strict=False),
    ).with_columns(fault=_fault())


def _contradicting(fields: pl.DataFrame) -> pl.DataFrame:
    """Return the lines whose confidence is not, even roughly, support / predictions."""
    predictions, support, confidence = (pl.col(name) for name in ("n_predictions", "n_support", "number_of_confidence"))
    fits = (confidence - support / predictions).abs() <= MOST_ROUNDED
    return fields.filter((predictions > 0) & ~(fits & confidence.is_finite()))


def _fault() -> pl.Expr:
    """Say what is wrong with a line, null if nothing is."""
    predictions, support = pl.col("n_predictions"), pl.col("n_support")
    return (
        pl.when(pl.col("n_fields") != len(FIELDS))
        .then(pl.format("expected 4 tab-separated fields, got {}", "n_fields"))
        .when(pl.col("line").str.contains("\0", literal=True))
        .then(pl.lit("expected text, got a NUL character"))
        .when(predictions.is_null())
        .then(pl.format("expected a whole number of predictions, got '{}'", "predictions"))
        .when(support.is_null())
        .then(pl.format("expected a whole number as support, got '{}'", "support"))
        .when(pl.col("number_of_confidence").is_null())
        .then(pl.format("expected a number as confidence, got '{}'", "confidence"))
        .when((support < 0) | (support > predictions))
        .then(pl.format("expected 0 <= support <= predictions, got {} and {}", "support", "predictions"))
        .when(support > np.iinfo(np.int32).max)
        .then(pl.format("the support {} is too large", "support"))
    )


def _parse(fields: pl.DataFrame, escaped: bool) -> tuple[RuleColumns | None, list[tuple[int, str]]]:
    """Return the rules in the order of their lines, and the lines that are not rules."""
    labelled, is_common = label_common_shapes(fields["rule"])
    common, others = fields.filter(is_common), fields.filter(~is_common)
    parsed: list[Rule] = []
    rows: list[int] = []
    rejected: list[tuple[int, str]] = []
    for row, (number, text) in enumerate(others.select("number", "rule").iter_rows()):
        try:
            parsed.append(parse_rule(text, escaped=escaped))
            rows.append(row)
        except RuleError as error:
            rejected.append((number, str(error)))
    others = others[rows]
    sets = [encode_rules(labelled, common["n_predictions"], common["n_support"], escaped=escaped)]
    if parsed:
        sets.append(encode_rules(label_rules(parsed), others["n_predictions"], others["n_support"]))
    joint = concatenate(unify(sets, None).sets)
    order = pl.concat([common["number"], others["number"]]).arg_sort().to_numpy()
    return (joint.take(order) if parsed else joint) if len(joint) else None, rejected
