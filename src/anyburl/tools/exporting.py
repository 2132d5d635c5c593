"""`export_rules`: write rules to a file."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, Unpack

from anyburl.base.checking import callback, from_keywords
from anyburl.base.errors import DataError, OptionError
from anyburl.base.files import at_home
from anyburl.base.writing import replacing
from anyburl.rules.ruleset import RuleSet
from anyburl.tools.export_languages import (
    Clause,
    CypherWriter,
    DatalogWriter,
    PrologWriter,
    Scores,
    ShaclWriter,
    SqlWriter,
    Writer,
    make_clause,
    sparql_writer,
)
from anyburl.tools.options import LANGUAGES, ExportKeywords, ExportOptions, options_for

WRITERS: dict[str, Callable[[ExportOptions], Writer]] = {
    "sparql": sparql_writer,
    "sql": SqlWriter,
    "cypher": CypherWriter,
    "datalog": DatalogWriter,
    "prolog": PrologWriter,
    "shacl": ShaclWriter,
}


@dataclass(frozen=True)
class ExportReport:
    """How many rules were written and, by reason, how many were left out."""

    to: str
    n_rules: int
    left_out: dict[str, int] = field(default_factory=dict)


def export_rules(
    rules: RuleSet,
    file: str | os.PathLike[str] | TextIO,
    *,
    to: str | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Unpack[ExportKeywords],
) -> ExportReport:
    """Write rules in the language of another system: SPARQL, SQL, Cypher, Datalog, Prolog or SHACL.

    `file` is a path, whose suffix sets the language if `to` does not (.ru: SPARQL that inserts; .gz: compressed), or an
    open text file. `options` are the fields of `ExportOptions`. `progress` is called with the number of further rules
    written.
    """
    callback("progress", progress)
    if isinstance(file, str | os.PathLike):
        chosen = options_for(file, to, **options)
        with open_export(at_home(file)) as out:
            return write_exported_rules(rules, out, chosen, progress)
    if to is None:
        raise OptionError(f"an open file does not tell the language: set to, one of {', '.join(LANGUAGES)}")
    if not hasattr(file, "write"):
        raise OptionError(f"expected a path or an open text file, got {type(file).__name__}")
    return write_exported_rules(rules, file, from_keywords(ExportOptions, {"to": to, **options}), progress)


def write_exported_rules(
    rules: RuleSet, out: TextIO, options: ExportOptions, progress: Callable[[int], None] | None = None
) -> ExportReport:
    """Write rules into an open file."""
    writer = WRITERS[options.to](options)
    left_out: Counter[str] = Counter()
    out.write(writer.begin())
    n_written = 0
    for clause in _clauses(rules, object_identity=options.object_identity):
        if fault := writer.fault(clause):
            left_out[fault] += 1
        else:
            out.write(f"{writer.between if n_written else ''}{writer.write(clause)}")
            n_written += 1
        if progress:
            progress(1)
    out.write(writer.end())
    return ExportReport(options.to, n_written, dict(left_out))


def _clauses(rules: RuleSet, *, object_identity: bool) -> Iterator[Clause]:
    columns = (rules.predictions.tolist(), rules.support.tolist(), rules.confidence().tolist(), rules.exact.tolist())
    for rule, *scores in zip(rules, *columns, strict=True):
        yield make_clause(rule, Scores(*scores), object_identity=object_identity)


@contextmanager
def open_export(path: Path) -> Iterator[TextIO]:
    """Open a file for writing, compressed if it ends in .gz; it appears when it is complete."""
    if path.is_dir():
        raise DataError(f"{path} is a folder: expected a file for the rules")
    if not path.parent.is_dir():
        raise DataError(f"{path}: the folder {path.parent} does not exist")
    packed = path.name.lower().endswith(".gz")
    with replacing(path) as unfinished:
        opener = gzip.open if packed else open
        with opener(unfinished, "wt", encoding="utf-8", newline="\n") as out:
            yield out
