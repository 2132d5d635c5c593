"""Rules and facts for other systems: `export_rules` writes rules to a file, `publish` sends facts that were completed.

Facts go to a SPARQL endpoint in updates, or to a table in one transaction.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TextIO, Unpack

import polars as pl

from anyburl.base.checking import callback, from_keywords
from anyburl.base.errors import DataError, OptionError, quoted
from anyburl.base.files import at_home, first_bytes
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet
from anyburl.base.writing import put_in_free_place, replacing, unfinished_folder
from anyburl.data.files import read_triples
from anyburl.data.formats.delimited import GZIP
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import ReadOptions
from anyburl.data.remote.addresses import DUCKDB, ENDPOINT, POSTGRESQL, Address, find_address
from anyburl.data.remote.database import column_name, connected, is_of_driver, table_name
from anyburl.data.remote.http import send
from anyburl.data.terms import OWN, is_blank_node, rdf_term
from anyburl.reasoning.completion.files import FACT_SUFFIXES, PARQUET, TEXTS
from anyburl.rules.ruleset import RuleSet
from anyburl.tools.export_languages import WRITERS, Clause, Scores, make_clause
from anyburl.tools.options import LANGUAGES, ExportKeywords, ExportOptions, Progress, PublishOptions, options_for


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


N_SHOWN = 5


class EndpointPlan:
    """Updates to be sent to an endpoint. Each is applied or not, and sending it again changes nothing."""

    def __init__(self, facts: pl.DataFrame, address: Address, options: PublishOptions) -> None:
        self.address, self._options = address, options
        terms = [_terms(facts[name], is_object=name == "object") for name in COLUMNS]
        self._statements = [f"{' '.join(fact)} ." for fact in zip(*terms, strict=True) if "" not in fact]
        self.n_facts = len(self._statements)
        self.n_left_out = facts.height - self.n_facts
        if not self.n_facts:
            raise DataError("nothing to send: every fact has a blank node, which an update cannot name")
        self._updates = [
            _update(self._statements[start : start + options.batch_size], options.graph)
            for start in range(0, self.n_facts, options.batch_size)
        ]

    @property
    def summary(self) -> list[str]:
        """The plan in lines for people."""
        graph = f"the graph <{self._options.graph}>" if self._options.graph else "the default graph"
        n_bytes = sum(len(update.encode()) for update in self._updates)
        lines = [f"{self.n_facts:,} facts into {graph} of {self.address.shown}"]
        lines.append(f"in {len(self._updates):,} updates, {n_bytes / 1e6:,.2f} MB, which begin with")
        lines += [f"    {statement}" for statement in self._statements[:N_SHOWN]]
        if self.n_left_out:
            lines.append(f"left out: {self.n_left_out:,} facts with a blank node, which an update cannot name")
        return lines

    def write(self, progress: Progress = lambda n_facts: None) -> int:
        """Send all updates; return the number of facts. An error says how many updates were sent before."""
        for number, update in enumerate(self._updates):
            try:
                send(self.address, "update", update, timeout=self._options.timeout, read=lambda answer: None)
            except DataError as error:
                n_in = number * self._options.batch_size
                raise type(error)(
                    f"{error}; {number:,} of {len(self._updates):,} updates went through ({n_in:,} facts): send the "
                    "file again, no fact is written twice"
                ) from error
            progress(min(self._options.batch_size, self.n_facts - number * self._options.batch_size))
        return self.n_facts


def _terms(labels: pl.Series, *, is_object: bool) -> list[str]:
    """Return labels as terms, blank nodes as "", since an update would create new ones."""
    known = {label: "" if is_blank_node(label) else rdf_term(label, is_object=is_object) for label in labels.unique()}
    return [known[label] for label in labels]


def _update(statements: list[str], graph: str | None) -> str:
    lines = "\n".join(statements)
    return f"INSERT DATA {{ GRAPH <{graph}> {{\n{lines}\n}} }}" if graph else f"INSERT DATA {{\n{lines}\n}}"


SQL_TYPES: dict[pl.DataType, str] = {pl.Float64(): "DOUBLE PRECISION", pl.Int64(): "BIGINT"}
INCOMING = "anyburl_incoming"


class TablePlan:
    """Facts to be written to a table, which is created if missing: those that are not in it yet."""

    def __init__(self, facts: pl.DataFrame, address: Address, options: PublishOptions) -> None:
        if address.table is None:
            raise DataError(f"{address.text}: no table named; add #TABLE to the address")
        if options.graph is not None:
            raise OptionError("--graph is for SPARQL endpoints; a database has tables")
        self.address, self._table = address, table_name(address.table)
        self._facts, self._options = facts, options
        self.n_facts, self.n_left_out = facts.height, 0
        self._is_new = not self._exists()

    def _exists(self) -> bool:
        """Whether the table exists; raise an error if it has other columns."""
        if self.address.file is not None and not self.address.file.exists():
            return False
        with connected(self.address, timeout=self._options.timeout) as connection:
            columns = _columns(connection, self._table)
        if columns is not None and columns != self._facts.columns:
            raise DataError(
                f"{self.address.text} has the columns {', '.join(columns)}: expected {', '.join(self._facts.columns)}; "
                "choose another table"
            )
        return columns is not None

    @property
    def summary(self) -> list[str]:
        """The plan in lines for people."""
        made = " (a new table)" if self._is_new else " (those that are not there yet)"
        lines = [f"{self.n_facts:,} facts into {self.address.text}{made}, in one transaction"]
        return [*lines, f"columns: {', '.join(self._facts.columns)}"]

    def write(self, progress: Progress = lambda n_facts: None) -> int:
        """Write everything or nothing; return how many facts were not there before."""
        file = self.address.file
        n_new = self._write_file(file.resolve()) if file is not None and not file.exists() else None
        if n_new is None:
            with connected(self.address, timeout=self._options.timeout, writing=True) as connection:
                n_new = self._write(connection, is_new=self._is_new)
        progress(self.n_facts)
        return n_new

    def _write_file(self, file: Path) -> int | None:
        """Write a new database beside `file` and rename it; return None if another process has created the file."""
        try:
            with unfinished_folder(file) as folder:
                unfinished = folder / file.name
                with connected(self.address, timeout=self._options.timeout, new=unfinished) as connection:
                    n_new = self._write(connection, is_new=True)
                if put_in_free_place(unfinished, file):
                    return n_new
        except OSError as refusal:
            raise DataError(f"{self.address.text}: cannot write the file ({refusal.strerror or refusal})") from refusal
        self._is_new = not self._exists()
        return None

    def _write(self, connection: Any, *, is_new: bool) -> int:
        names = ", ".join(map(column_name, self._facts.columns))
        if self.address.kind != POSTGRESQL:  # which begins a transaction by itself
            connection.execute("BEGIN")
        if is_new:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({_declared(self._facts)})")
        before = _count(connection, self._table)
        with TemporaryDirectory() as folder:
            source = _load(connection, self.address.kind, self._facts, Path(folder))
            same = " AND ".join(f"old.{name} = new.{name}" for name in COLUMNS)
            connection.execute(
                f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {source} AS new "
                f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} AS old WHERE {same})"
            )
        n_new = _count(connection, self._table) - before
        connection.commit()
        return n_new


def _columns(connection: Any, table: str) -> list[str] | None:
    try:
        columns = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
    except Exception as error:
        if not is_of_driver(error):
            raise
        return None  # missing; if it cannot be read for another reason, creating it fails
    return [column[0] for column in columns]


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _declared(facts: pl.DataFrame) -> str:
    kinds = [
        SQL_TYPES.get(kind, "TEXT") + (" NOT NULL" if name in COLUMNS else "") for name, kind in facts.schema.items()
    ]
    return ", ".join(f"{column_name(name)} {kind}" for name, kind in zip(facts.columns, kinds, strict=True))


def _load(connection: Any, kind: str, facts: pl.DataFrame, folder: Path) -> str:
    """Load facts into a database; return the SQL expression for them."""
    if kind == DUCKDB:  # whose inserts are slow
        facts.write_parquet(folder / "facts.parquet")
        path = str(folder / "facts.parquet").replace("'", "''")
        return f"read_parquet('{path}')"
    connection.execute(f"CREATE TEMPORARY TABLE {INCOMING} ({_declared(facts)})")
    if kind == POSTGRESQL:
        with connection.cursor() as cursor, cursor.copy(f"COPY {INCOMING} FROM STDIN") as copy:
            for row in facts.iter_rows():
                copy.write_row(row)
    else:
        marks = ", ".join("?" * facts.width)
        connection.executemany(f"INSERT INTO {INCOMING} VALUES ({marks})", facts.iter_rows())
    return INCOMING


TYPES: dict[str, type[pl.DataType]] = {
    "score": pl.Float64,
    "probability": pl.Float64,
    "rules": pl.Int64,
}
"""The types of the columns that are no text; reasons become JSON."""


def read_facts(path: Path) -> pl.DataFrame:
    """Return the facts in a file with all its columns; RDF, and text without a header, hold triples alone."""
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix not in FACT_SUFFIXES:
        listed = f"{', '.join(FACT_SUFFIXES[:-1])} or {FACT_SUFFIXES[-1]}"
        raise DataError(f"{path}: expected a file written by `anyburl complete`, ending in {listed}")
    start = first_bytes(path, "facts", DataError)
    try:
        return check_facts(_read(path, suffix, packed=start.startswith(GZIP)))
    except (*UNREADABLE, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot read the facts ({' '.join(str(error).split())[:200]})") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def check_facts(facts: pl.DataFrame) -> pl.DataFrame:
    """Return facts of `Reasoner.complete`, each once, with lists as text; refuse a frame of anything else."""
    missing = [name for name in COLUMNS if name not in facts.columns]
    if missing:
        raise DataError(f"expected facts as `anyburl complete` writes them, got no column {missing[0]!r}")
    if not facts.height:
        raise DataError("no facts to publish")
    if any(facts[name].null_count() for name in COLUMNS):
        raise DataError("a fact has no subject, relation or object")
    facts = facts.select(_column(column) for column in facts)
    return facts.unique(COLUMNS, keep="first", maintain_order=True)


def _read(path: Path, suffix: str, *, packed: bool) -> pl.DataFrame:
    if suffix == PARQUET:
        return scan_parquet(path).collect()
    if suffix not in TEXTS:
        return read_triples(path, ReadOptions(literals="keep")).filter(~_is_provenance())
    text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    if suffix == ".jsonl":
        return pl.read_ndjson(BytesIO(text), infer_schema_length=None)
    if suffix == ".csv":
        return pl.read_csv(text, infer_schema=False)
    facts = pl.read_csv(text, separator="\t", quote_char=None, infer_schema=False)
    if facts.width == len(COLUMNS) and not set(COLUMNS) & set(facts.columns):  # triples, as reviews are exported
        return read_triples(path)
    return facts


def _is_provenance() -> pl.Expr:
    """Select statements about facts."""
    quoted = pl.any_horizontal(pl.col("subject", "object").str.starts_with("<<"))
    of_ours = pl.col("subject").str.starts_with(f"{OWN}statement:")
    return quoted | of_ours | pl.col("relation").str.starts_with(f"{OWN}provenance:")


def _column(column: pl.Series) -> pl.Series:
    if column.dtype == pl.List:
        texts = [
            None if reason is None else json.dumps(reason, ensure_ascii=False, default=str)
            for reason in column.to_list()
        ]
        return pl.Series(column.name, texts, dtype=pl.String)
    return column.cast(TYPES.get(column.name, pl.String))


Plan = EndpointPlan | TablePlan


def publish(
    facts: pl.DataFrame | str | os.PathLike[str], destination: str, options: PublishOptions | None = None
) -> int:
    """Send facts to a SPARQL endpoint or a table, and return how many were written.

    `plan_publishing` shows beforehand what would be sent. A table gets all facts that are not in it, or none; an
    endpoint gets them in batches, which can be sent again without duplicating facts.
    """
    return plan_publishing(facts, destination, options).write()


def plan_publishing(
    facts: pl.DataFrame | str | os.PathLike[str], destination: str, options: PublishOptions | None = None
) -> Plan:
    """Read facts and return a plan of what would be sent where; nothing is sent until its `write` is called.

    `facts` is a frame from `Reasoner.complete` or a file that `anyburl complete` wrote. `destination` is the address of
    a SPARQL endpoint for updates (sparql:http://host/path) or of a table (postgresql://host/db#t, duckdb:path#t,
    sqlite:path#t).
    """
    address = find_address(destination)
    if address is None:
        raise DataError(
            f"expected the address of a SPARQL endpoint (sparql:http://HOST/PATH) or of a table "
            f"(postgresql://HOST/DB#TABLE, duckdb:PATH#TABLE, sqlite:PATH#TABLE), got {quoted(destination)}"
        )
    checked = check_facts(facts) if isinstance(facts, pl.DataFrame) else read_facts(at_home(facts))
    kind = EndpointPlan if address.kind == ENDPOINT else TablePlan
    return kind(checked, address, options or PublishOptions())
