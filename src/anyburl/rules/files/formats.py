"""Reads and writes rules in any format: chosen by suffix when writing, by contents when reading."""

from __future__ import annotations

import os
from pathlib import Path

from anyburl.base.errors import OptionError, RuleError
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import reencode
from anyburl.rules.files.amie import is_amie, read_amie
from anyburl.rules.files.anyburl import read_text, write_text
from anyburl.rules.files.parquet import read_rules_parquet, write_parquet
from anyburl.rules.files.rule_file import PathLike, ReadReport, first_bytes_of_rules
from anyburl.rules.files.run_folder import missing_rules, read_run

PARQUET = ".parquet"
TEXT_SUFFIXES = tuple(name + packed for name in (".txt", ".tsv") for packed in ("", ".gz", ".zst"))
SUFFIXES = (PARQUET, *TEXT_SUFFIXES)


def check_suffix(path: PathLike) -> None:
    """Refuse a file whose suffix is not that of a rule file."""
    if not os.fspath(path).lower().endswith(SUFFIXES):
        raise RuleError(f"{path}: expected a rule file that ends in one of {', '.join(SUFFIXES)}")


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
