"""Lines of AnyBURL's text, by columns: which are rules, and what is wrong with the others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from anyburl.errors import RuleError
from anyburl.rules.rule import Rule
from anyburl.rules.syntax import parse_rule
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.files.anyburl_shapes import label_common_shapes
from anyburl.ruleset.files.labelled import encode_rules, label_rules
from anyburl.ruleset.files.unify import unify

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
    told = [CONTRADICTION.format(**row) for row in odd.head(1).iter_rows(named=True)]
    return Lines(rules, int(is_comment.sum()), rejected + unparsed, len(odd), "".join(told))


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
