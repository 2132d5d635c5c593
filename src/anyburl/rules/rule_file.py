"""What readers of rule files share: first bytes, lines, the report of what was left out, rules as columns of labels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import files, polars_unstable
from anyburl.base.errors import RuleError, counted
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import VALUE_KINDS, RuleColumns
from anyburl.rules.combine import distinct_rows, pad_lists
from anyburl.rules.labels import SELF_MARKER
from anyburl.rules.rule import Constant, Rule, unescape_label

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class ReadReport:
    """How many rules were read, and what was not.

    `rejected` has the line number and the reason of each line that is neither a rule nor a comment nor blank;
    `n_unknown` counts rules with labels that are not in the given vocabulary; `damaged` says which files
    of a run folder are damaged and were left out, `remarks` what else was odd.
    """

    n_rules: int
    n_comments: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)
    n_unknown: int = 0
    damaged: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every rule of the file was read, and nothing was odd."""
        return not (self.rejected or self.n_unknown or self.damaged or self.remarks)

    def __str__(self) -> str:
        parts = [f"{counted(self.n_rules, 'rule')} read"]
        if self.rejected:
            line, reason = self.rejected[0]
            verb = "is not a rule" if len(self.rejected) == 1 else "are not rules"
            parts.append(f"{counted(len(self.rejected), 'line')} {verb} (line {line}: {reason})")
        if self.n_unknown:
            verb = "uses" if self.n_unknown == 1 else "use"
            parts.append(f"{counted(self.n_unknown, 'rule')} {verb} labels that are not in the data")
        return "; ".join([*parts, *self.remarks, *self.damaged])


def repeated(n_lines: int) -> Iterator[str]:
    """Say that rules occur again: as rules of their own, they would count twice."""
    if n_lines:
        verb = "repeats an earlier rule and was" if n_lines == 1 else "repeat earlier rules and were"
        yield f"{counted(n_lines, 'line')} {verb} left out"


def first_bytes_of_rules(path: PathLike) -> bytes:
    """Return the first four bytes of a file of rules, or say why it cannot be read."""
    return files.first_bytes(Path(path), "rules", RuleError)


def first_lines_of_rules(path: PathLike, n_lines: int) -> list[str]:
    """Return the first lines of a file of text."""
    with _as_text(path):
        return polars_unstable.first_lines(Path(path), n_lines)


def numbered_rule_lines(path: PathLike, n_lines: int) -> Iterator[pl.DataFrame]:
    """Yield the lines of a file of text with their numbers, some at a time."""
    with _as_text(path):
        yield from polars_unstable.line_batches(Path(path), n_lines, numbered=True)


@contextmanager
def _as_text(path: PathLike) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{os.fspath(path)}: expected UTF-8 text, plain or compressed ({error})") from error


class LabelledRules(NamedTuple):
    """Columns of rules; `SELF_MARKER` stands for the token self, null for no constant."""

    type: NDArray[np.uint8]
    head: pl.Series
    is_flipped: NDArray[np.bool_]  # h(c, Y)
    head_constant: pl.Series
    body_constant: pl.Series
    lengths: NDArray[np.int64]
    relations: pl.Series  # of all body atoms, rule after rule
    forward: NDArray[np.bool_]  # likewise
    low: NDArray[np.float64] | None = None  # of a condition on the last relation, NaN for none
    high: NDArray[np.float64] | None = None
    value_kind: NDArray[np.uint8] | None = None


def label_rules(rules: Sequence[Rule]) -> LabelledRules:
    """Lay out rule objects as columns."""
    steps = [step for rule in rules for step in rule.steps]
    conditions = [rule.condition for rule in rules]
    bounds: dict[str, NDArray[Any]] = {}
    if any(conditions):
        bounds["low"] = np.array([one.low if one else np.nan for one in conditions])
        bounds["high"] = np.array([one.high if one else np.nan for one in conditions])
        kinds = [VALUE_KINDS.index(one.kind) if one else 0 for one in conditions]
        bounds["value_kind"] = np.array(kinds, np.uint8)
    return LabelledRules(
        type=np.array([rule.type.code for rule in rules], dtype=np.uint8),
        head=pl.Series([rule.head.relation for rule in rules], dtype=pl.String),
        is_flipped=np.array([isinstance(rule.head.subject, Constant) for rule in rules], dtype=np.bool_),
        head_constant=pl.Series([_head_constant(rule) for rule in rules], dtype=pl.String),
        body_constant=pl.Series([_body_constant(rule) for rule in rules], dtype=pl.String),
        lengths=np.array([rule.length for rule in rules], dtype=np.int64),
        relations=pl.Series([relation for relation, _ in steps], dtype=pl.String),
        forward=np.array([forward for _, forward in steps], dtype=np.bool_),
        **bounds,
    )


def encode_rules(
    labelled: LabelledRules, predictions: pl.Series, support: pl.Series, *, escaped: bool = False
) -> RuleColumns:
    """Return the rules as columns over the vocabulary of the labels; with `escaped`, undo the escapes first."""
    if escaped:
        labelled = _unescape(labelled)
    constants = [labelled.head_constant, labelled.body_constant]
    entities = pl.concat(constants).unique().drop_nulls()
    vocabulary = Vocabulary.from_labels(
        entities.filter(entities != SELF_MARKER), pl.concat([labelled.head, labelled.relations]).unique()
    )
    n_relations = vocabulary.n_relations
    relations = vocabulary.encode_relations(labelled.relations)
    steps = np.where(labelled.forward, relations, relations + n_relations).astype(np.int32)
    bodies, body = distinct_rows(pad_lists(steps, labelled.lengths))
    head_constant, body_constant = (_entity_ids(column, vocabulary) for column in constants)
    return RuleColumns(
        vocabulary=vocabulary,
        bodies=bodies,
        type=labelled.type,
        head=vocabulary.encode_relations(labelled.head) + n_relations * labelled.is_flipped,
        body=body,
        head_constant=head_constant,
        body_constant=body_constant,
        predictions=predictions.to_numpy(),
        support=support.cast(pl.Int32).to_numpy(),
        exact=np.zeros(len(labelled.type), dtype=np.bool_),
        low=labelled.low,
        high=labelled.high,
        value_kind=labelled.value_kind,
    )


def _entity_ids(labels: pl.Series, vocabulary: Vocabulary) -> NDArray[np.int32]:
    is_self = (labels == SELF_MARKER).fill_null(False).to_numpy()
    return np.where(is_self, np.int32(vocabulary.self_id), vocabulary.encode_entities(labels))


def _unescape(labelled: LabelledRules) -> LabelledRules:
    return labelled._replace(
        head=_unescape_column(labelled.head),
        head_constant=_unescape_column(labelled.head_constant),
        body_constant=_unescape_column(labelled.body_constant),
        relations=_unescape_column(labelled.relations),
    )


def _unescape_column(labels: pl.Series) -> pl.Series:
    escaped = labels.filter(labels.str.contains("%", literal=True)).unique().to_list()
    return labels.replace(escaped, [unescape_label(label) for label in escaped]) if escaped else labels


def _head_constant(rule: Rule) -> str | None:
    return _label(rule.head.subject) or _label(rule.head.object)


def _body_constant(rule: Rule) -> str | None:
    return _label(rule.body[-1].subject) or _label(rule.body[-1].object) if rule.body else None


def _label(term: object) -> str | None:
    if not isinstance(term, Constant):
        return None
    return SELF_MARKER if term.is_self else term.label
