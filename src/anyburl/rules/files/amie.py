"""Reading AMIE's text: `?a  livesIn  ?b   => ?a  wasBornIn  ?b` and its measures, separated by tabs, one rule a line.

Positive examples are the support and the body size is the number of predictions, counted without object identity. What
AMIE prints besides rules counts as comments. Labels are taken as they stand, with brackets if AMIE's data had them.
AMIE finds thousands of rules, not millions, so lines are parsed one by one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import polars as pl

from anyburl.base.errors import RuleError
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import first_of_each, reencode
from anyburl.rules.files.rule_file import (
    PathLike,
    ReadReport,
    encode_rules,
    first_lines_of_rules,
    label_rules,
    numbered_rule_lines,
    repeated,
)
from anyburl.rules.rule import Atom, Constant, Rule, Term, Variable

HEADER = "Rule\tHead Coverage"
ARROW = " => "
RULE = re.compile(rf"\?\w+ .*{ARROW}")
N_LINES = 100  # before the first rule, AMIE prints its options
SLICE_LINES = 100_000

COLUMNS = ("Positive Examples", "Body size")
POSITIONS = (4, 5)
"""Of these columns in a line, if no header says so."""

MOST_SUPPORT = np.iinfo(np.int32).max
MOST_PREDICTIONS = np.iinfo(np.int64).max


class Scored(NamedTuple):
    """A rule with its counts."""

    rule: Rule
    support: int
    predictions: int


def is_amie(path: PathLike) -> bool:
    """Whether a file of text starts as AMIE's do."""
    return any(line.startswith(HEADER) or RULE.match(line) for line in first_lines_of_rules(path, N_LINES))


def read_amie(path: PathLike, vocabulary: Vocabulary | None = None) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines; those that are not of our language are reported."""
    scored: list[Scored] = []
    rejected: list[tuple[int, str]] = []
    n_comments, positions = 0, POSITIONS
    lines = (
        row for frame in numbered_rule_lines(path, SLICE_LINES) for row in frame.select("number", "line").iter_rows()
    )
    for number, line in lines:
        if line.startswith(HEADER):
            positions = _positions(line)
        if ARROW not in line:
            n_comments += bool(line.strip())
            continue
        try:
            scored.append(_parse_line(line, positions))
        except RuleError as error:
            rejected.append((number, str(error)))
    encoded = _encode(scored)
    rules = encoded.take(first_of_each(encoded))
    known = rules if vocabulary is None else reencode(rules, vocabulary)
    remarks = [*repeated(len(encoded) - len(rules))]
    return known, ReadReport(len(known), n_comments, rejected, len(rules) - len(known), remarks=remarks)


def _encode(scored: list[Scored]) -> RuleColumns:
    predictions = pl.Series([line.predictions for line in scored], dtype=pl.Int64)
    support = pl.Series([line.support for line in scored], dtype=pl.Int64)
    return encode_rules(label_rules([line.rule for line in scored]), predictions, support)


def _positions(header: str) -> tuple[int, int]:
    names = header.rstrip("\r\n").split("\t")
    support, predictions = (names.index(name) if name in names else -1 for name in COLUMNS)
    return support, predictions


def _parse_line(line: str, positions: tuple[int, int]) -> Scored:
    text, *fields = line.rstrip("\r\n").split("\t")
    support, predictions = (_count(fields, position, name) for position, name in zip(positions, COLUMNS, strict=True))
    if not 0 <= support <= predictions:
        raise RuleError(f"expected 0 <= positive examples <= body size, got {support} and {predictions}")
    if support > MOST_SUPPORT or predictions > MOST_PREDICTIONS:
        raise RuleError(f"counts are too large: {support} positive examples, body size {predictions}")
    body, _, head = text.rpartition(ARROW)
    heads = _atoms(head)
    if len(heads) != 1:
        raise RuleError(f"expected one atom after =>, got {head.strip()!r}")
    return Scored(Rule(heads[0], tuple(_atoms(body))), support, predictions)


def _count(fields: list[str], position: int, name: str) -> int:
    """Return a number, which AMIE may write as 12 or 12.0; `position` counts the rule."""
    if not 1 <= position <= len(fields):
        raise RuleError(f"expected AMIE's columns, with {name}, got {len(fields) + 1}")
    try:
        return round(float(fields[position - 1]))
    except (ValueError, OverflowError):
        raise RuleError(f"expected a number as {name}, got {fields[position - 1]!r}") from None


def _atoms(text: str) -> list[Atom]:
    """Read atoms of three words, which two blanks separate, so that labels may have one; or any blanks."""
    words = re.split(r" {2,}", text.strip())
    if len(words) % 3:
        words = text.split()
    if len(words) % 3:
        raise RuleError(f"expected atoms of subject, relation and object, got {text.strip()!r}")
    triples = zip(words[::3], words[1::3], words[2::3], strict=True)
    return [Atom(relation, _term(subject), _term(object)) for subject, relation, object in triples]


def _term(word: str) -> Term:
    return Variable(word[1:]) if word.startswith("?") else Constant(word)
