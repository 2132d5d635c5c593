"""`RuleSet`: columns of rules, and the operations people use; reads and writes rules in any format.

The format is chosen by suffix when writing, by contents when reading.
"""

from __future__ import annotations

import html
import operator
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from anyburl.base import checking
from anyburl.base.errors import MissingExtraError, OptionError, RuleError
from anyburl.base.files import at_home
from anyburl.base.machine import check_not_forked
from anyburl.data.vocabulary import Vocabulary, check_vocabulary
from anyburl.rules import selection
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import concatenate, merge, reencode
from anyburl.rules.labels import RuleTexts, rule_object
from anyburl.rules.parquet import FrameReader, read_rules_parquet, to_frame, write_parquet
from anyburl.rules.rule import Atom, Rule, X, Y
from anyburl.rules.rule_file import PathLike, ReadReport, encode_rules, first_bytes_of_rules, label_rules
from anyburl.rules.run_folder import missing_rules, read_run
from anyburl.rules.text import is_amie, read_amie, read_text, write_text
from anyburl.rules.types import KINDS, SMOOTHING, RuleType

if TYPE_CHECKING:
    import pandas as pd

PARQUET = ".parquet"
TEXT_SUFFIXES = tuple(name + packed for name in (".txt", ".tsv") for packed in ("", ".gz", ".zst"))
RULE_SUFFIXES = (PARQUET, *TEXT_SUFFIXES)


def check_suffix(path: PathLike) -> None:
    """Refuse a file whose suffix is not that of a rule file."""
    if not os.fspath(path).lower().endswith(RULE_SUFFIXES):
        raise RuleError(f"{path}: expected a rule file that ends in one of {', '.join(RULE_SUFFIXES)}")


def write_rules(rules: RuleColumns, path: PathLike, *, escaped: bool = False) -> None:
    """Write Parquet or text by suffix."""
    if not isinstance(path, str | os.PathLike):
        raise RuleError(f"expected the path of a rule file, got {type(path).__name__}")
    check_suffix(path)
    if os.fspath(path).lower().endswith(PARQUET):
        write_parquet(rules, path)
    else:
        write_text(rules, path, escaped=escaped)


def read_rules(
    path: PathLike,
    vocabulary: Vocabulary | None = None,
    *,
    at: float | str | None = None,
    escaped: bool = False,
) -> tuple[RuleColumns, ReadReport]:
    """Read a run folder (or its snapshot `at` some seconds), Parquet, AnyBURL's or AMIE's text.

    Return the rules and a report of what was left out.

    The vocabulary is made of the labels in the file; with `vocabulary`, that one is used, and rules with
    other labels are dropped and counted.
    """
    if Path(path).is_dir():
        rules, damaged = read_run(Path(path), at)
        known = rules if vocabulary is None else reencode(rules, vocabulary)
        remarks = [] if len(rules) or at is not None else missing_rules(Path(path))
        return known, ReadReport(len(known), n_unknown=len(rules) - len(known), damaged=damaged, remarks=remarks)
    if at is not None:
        raise OptionError(f"at needs a run folder with snapshots, got the file {os.fspath(path)!r}")
    if first_bytes_of_rules(path) == b"PAR1" or os.fspath(path).lower().endswith(PARQUET):
        return read_rules_parquet(path, vocabulary)
    if is_amie(path):
        return read_amie(path, vocabulary)
    return read_text(path, vocabulary, escaped=escaped)


N_SHOWN = 10
HEADINGS: dict[str, Literal["left", "right"]] = {
    "type": "left",
    "confidence": "right",
    "support/predictions": "right",
    "rule": "left",
}
"""The columns of a table of rules, and how each is aligned."""

Rows = slice | Sequence[int] | Sequence[bool] | NDArray[Any] | pl.Series


class RuleSet(RuleColumns):
    """Rules and their scores: `rules[0]` is a rule, `rules[:10]` or `rules[rules.support > 5]` a smaller set.

    One column per property, and all arrays are read-only. With R relations, a directed relation d is relation d read
    forward if d < R, and d - R read backward otherwise. Unary heads h(X, c) have d = h, heads h(c, Y) have d = h + R.
    """

    @classmethod
    def concat(cls, sets: Sequence[Self]) -> Self:
        """Put sets over one vocabulary after each other; equal rules are kept."""
        if isinstance(sets, str) or not isinstance(sets, Iterable):
            raise RuleError(f"expected a list of rule sets, got {type(sets).__name__}")
        return concatenate(list(sets))

    def merge(self, *others: Self) -> Self:
        """Join sets over one vocabulary; of equal rules, the first is kept with its scores."""
        return merge([self, *others])

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Rule: ...

    @overload
    def __getitem__(self, index: Rows) -> Self: ...

    def __getitem__(self, index: Any) -> Rule | Self:
        """Return one rule as an object, or a set of the rules of a slice, of an array of rows or of a mask."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            return self.slice(start, stop) if step == 1 else self.take(np.arange(start, stop, step))
        if np.ndim(index):
            return self.take(index)
        return self.rule(operator.index(index))

    def rule(self, row: int) -> Rule:
        """Return one rule as an object."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"expected the row of one of {len(self)} rules, got {row}")
        return rule_object(self, row % len(self))

    def rule_behind(self, row: int) -> Rule | None:
        """Return the rule behind an answer, by the row that ranking gives it: None for -1, an answer of no rule."""
        return self.rule(row) if row >= 0 else None

    def __iter__(self) -> Iterator[Rule]:
        return (self.rule(row) for row in range(len(self)))

    def filter(
        self,
        *,
        type: RuleType | str | Iterable[RuleType | str] | None = None,
        relation: str | None = None,
        min_confidence: float | None = None,
        min_support: int | None = None,
        contains: str | None = None,
        length: int | None = None,
        **minimums: float | None,
    ) -> Self:
        """Return the rules that meet every condition; `contains` is an entity or relation anywhere in it.

        Rules that `anyburl.measure` measured can also be filtered by `min_pca_confidence`, `min_head_coverage` and
        `min_lift`.
        """
        if unknown := minimums.keys() - selection.MINIMUMS:
            raise TypeError(f"filter() got an unexpected keyword argument {min(unknown)!r}")
        selection.check_minimums(
            {"min_support": min_support, "length": length}, {"min_confidence": min_confidence, **minimums}
        )
        masks: list[NDArray[np.bool_]] = []
        if type is not None:
            masks.append(selection.type_mask(self, type))
        if relation is not None:
            masks.append(selection.relation_mask(self, relation))
        if min_confidence is not None:
            masks.append(self.confidence() >= min_confidence)
        if min_support is not None:
            masks.append(self.support >= min_support)
        if contains is not None:
            masks.append(selection.label_mask(self, contains))
        if length is not None:
            masks.append(self.lengths == length)
        masks += selection.minimum_masks(self, minimums)
        return self.take(np.logical_and.reduce(masks)) if masks else self

    def for_relation(self, relation: str) -> Self:
        """Return the rules that predict a relation."""
        return self.filter(relation=relation)

    def top(self, k: int, by: str | None = None, *, smoothing: float = SMOOTHING) -> Self:
        """Return the k best rules, best first; ties are settled.

        By "worth" if the rules are distilled, by "surprise" if that was measured, else by "confidence", that is
        support / (predictions + smoothing), so that 500 of 510 comes before 2 of 2; "value" is support times
        confidence, without smoothing. Rules that `anyburl.measure` measured can be sorted by
        "pca-confidence", "head-coverage" and "lift".
        """
        return self.take(selection.best_rows(self, k, by, smoothing))

    def with_vocabulary(self, vocabulary: Vocabulary) -> Self:
        """Return the rules with the ids of another vocabulary, matched by label.

        Rules with labels that the vocabulary does not have are dropped: compare the lengths to see how many.
        """
        check_vocabulary(vocabulary)
        return reencode(self, vocabulary)

    def texts(self) -> pl.Series:
        """Return the rules as text, as AnyBURL writes them."""
        return RuleTexts(self).texts(0, len(self))

    def to_polars(self) -> pl.DataFrame:
        r"""Return a frame of labels and scores, with the columns of a rules.parquet file.

        Labels are strings, and `me_myself_i` is the token self. An entity with that label is written `\me_myself_i`.
        """
        return to_frame(self)

    @classmethod
    def from_polars(cls, frame: pl.DataFrame) -> Self:
        """Read a frame like that of `to_polars`, or the contents of a file; the vocabulary is made of its labels."""
        if not isinstance(frame, pl.DataFrame):
            raise RuleError(f"expected a Polars frame of rules, got {type(frame).__name__}")
        return cls.of(FrameReader(frame.lazy(), "frame").read(frame))

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_polars` as a pandas frame."""
        try:
            return self.to_polars().to_pandas()
        except ModuleNotFoundError as error:
            raise MissingExtraError("RuleSet.to_pandas()", "pandas") from error

    def save(self, path: str | os.PathLike[str], *, escaped: bool = False) -> None:
        """Write Parquet or AnyBURL's text, by suffix: .parquet, .txt, .tsv; text also with .gz or .zst.

        The text format cannot represent every label; with `escaped`, special characters are written as %28 and the
        like.
        """
        write_rules(self, at_home(path), escaped=checking.flag("escaped", escaped))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        *,
        at: float | str | None = None,
        escaped: bool = False,
    ) -> Self:
        """Read a rule file or a run folder, or its snapshot `at` some seconds; warn if rules were left out.

        A run that is still learning, or was killed, has the rules found so far. With `vocabulary`, its ids are used,
        and rules with other labels are left out.
        """
        rules, report = cls.read(path, vocabulary, at=at, escaped=escaped)
        if not report.is_complete:
            warnings.warn(f"{os.fspath(path)}: {report}", stacklevel=2)
        return rules

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary | None = None,
        *,
        at: float | str | None = None,
        escaped: bool = False,
    ) -> tuple[Self, ReadReport]:
        """Like `load`, but also return a report of what was left out."""
        check_not_forked()
        if not isinstance(path, str | os.PathLike):
            raise RuleError(f"expected the path of a rule file or run folder, got {type(path).__name__}")
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        columns, report = read_rules(at_home(path), vocabulary, at=at, escaped=checking.flag("escaped", escaped))
        return cls.of(columns), report

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {name}" for name, n in self.counts_by_type().items() if n)
        return f"RuleSet({len(self)} rules{': ' if counts else ''}{counts})"

    def __rich__(self) -> Table:
        """Return a table of the best rules for the console."""
        title, caption = self._title(), self._caption()
        table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
        for name, side in HEADINGS.items():
            table.add_column(name, justify=side, overflow="fold")
        for cells in self._best_rows():
            table.add_row(*map(Text, cells))
        return table

    def _repr_html_(self) -> str:
        """Return a table of the best rules for notebooks."""
        headings = "".join(f"<th>{name}</th>" for name in HEADINGS)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in cells) for cells in self._best_rows())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<table><caption>{html.escape(self._title())}</caption>"
            f"<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>{self._caption() or ''}"
        )

    def _title(self) -> str:
        counts = ", ".join(f"{n:,} {name}" for name, n in self.counts_by_type().items() if n)
        return f"{len(self):,} rules" + (f" ({counts})" if counts else "")

    def _caption(self) -> str | None:
        if len(self) <= N_SHOWN:
            return None
        return f"the {N_SHOWN} best by {selection.default_order(self)}, and {len(self) - N_SHOWN:,} more"

    def _best_rows(self) -> list[tuple[str, str, str, str]]:
        """Return the cells of the table of rules: of the best, if there are many."""
        few = self.top(N_SHOWN) if len(self) > N_SHOWN else self
        counts = zip(few.support, few.predictions, few.exact, strict=True)
        scores = [f"{support}/{'' if exact else '~'}{predictions}" for support, predictions, exact in counts]
        columns = zip(few.type, few.confidence(), scores, few.texts(), strict=True)
        return [(str(KINDS[code]), f"{confidence:.4f}", score, text) for code, confidence, score, text in columns]


def one_rule(vocabulary: Vocabulary) -> RuleSet:
    """Return r(X,Y) <= r(Y,X), for the first relation: with it kernels are compiled."""
    relation = vocabulary.relation_label(0)
    rule = Rule(Atom(relation, X, Y), (Atom(relation, Y, X),))
    columns = encode_rules(label_rules([rule]), predictions=pl.Series([4]), support=pl.Series([4]))
    return RuleSet.of(columns).with_vocabulary(vocabulary)
