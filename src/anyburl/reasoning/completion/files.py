"""Writes facts to files: complete parts during the search, one file at the end.

Facts as RDF, with where they come from.

Scores, rules and reasons of facts have a vocabulary of their own, below `urn:anyburl:provenance:`.

    score, probability   numbers, xsd:double
    rule                 the best rule that predicts it, as text
    rules                how many rules agree
    premise              a fact that makes the rule predict it

RDF-star states it of << the fact >>. Reification states it of an rdf:Statement, whose IRI is made from its triple.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Self

import polars as pl

from anyburl.base.errors import DataError, InvalidOptionError, OptionError
from anyburl.base.files import Lock, at_home
from anyburl.base.sealed import seal
from anyburl.base.writing import make_inner_folder, replacing
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.formats.rdf import TermWriter, rdf_format, string_term
from anyburl.data.remote.addresses import find_address
from anyburl.data.terms import OWN, RDF, XSD
from anyburl.reasoning.completion.options import PROVENANCES
from anyburl.rules.labels import float_texts

VOCABULARY = f"{OWN}provenance:"
STATEMENT = f"{OWN}statement:"

Triple = Sequence[str]


class RdfText:
    """Writes parts of facts as RDF of a format; the first part begins with the prefixes."""

    def __init__(self, kind: str, provenance: str = PROVENANCES[0], prefixes: Mapping[str, str] | None = None) -> None:
        own = {"rdf": RDF, "xsd": XSD, "anyburl": VOCABULARY} if provenance != "none" else {}
        self._terms = TermWriter(kind, {**(prefixes or {}), **own})
        self._quotes = provenance == "rdf-star" and bool(self._terms.prefixes)
        self._provenance = provenance

    def __call__(self, facts: pl.DataFrame, is_first: bool) -> str:
        head = [f"{line}\n" for line in self._terms.head()] if is_first else []
        lines = self._commented(facts) if self._provenance == "none" else self._with_provenance(facts)
        return "".join([*head, *lines])

    def _commented(self, facts: pl.DataFrame) -> list[str]:
        """Return one statement per fact; score, probability and rule are a comment."""
        number = pl.col("probability").round(6).cast(pl.String)
        comments = facts.select(
            pl.concat_str(
                pl.lit(" . # score "),
                pl.col("score").round(6).cast(pl.String),
                pl.concat_str(pl.lit(", probability "), number).fill_null(""),
                pl.lit(", "),
                pl.col("rule").str.replace_all(r"[\r\n]", " "),
                pl.lit("\n"),
            )
        ).to_series()
        return (self._terms.statements(facts) + comments).to_list()

    def _with_provenance(self, facts: pl.DataFrame) -> Iterator[str]:
        for fact in facts.iter_rows(named=True):
            triple = [fact[column] for column in COLUMNS]
            premises = fact.get("facts") or []
            yield f"{self._terms.statement(triple)} .\n"
            yield from self._described(triple, [*self._provenance_of(fact), *map(self._premise, premises)])
            if not self._quotes:
                for premise in premises:
                    yield from self._described(premise, [])

    def _provenance_of(self, fact: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield how likely a fact is, and from which rule it comes: relations and their objects."""
        for name in ("score", "probability"):
            if fact[name] is not None:
                yield self._own(name), f'"{fact[name]!r}"^^{self._iri(f"{XSD}double")}'
        yield self._own("rule"), string_term(fact["rule"])
        yield self._own("rules"), f'"{fact["rules"]}"^^{self._iri(f"{XSD}integer")}'

    def _premise(self, triple: Triple) -> tuple[str, str]:
        return self._own("premise"), self._node(triple)

    def _described(self, triple: Triple, properties: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield the `properties` of a statement and, unless it is quoted, which statement it is."""
        node, parts = self._node(triple), list(properties)
        if not self._quotes:
            parts = [*self._identified(triple), *parts]
        if self._terms.prefixes:
            described = " ;\n    ".join(f"{relation} {object}" for relation, object in parts)
            yield f"{node} {described} .\n"
        else:
            yield from (f"{node} {relation} {object} .\n" for relation, object in parts)

    def _identified(self, triple: Triple) -> Iterator[tuple[str, str]]:
        if self._provenance == "rdf-star":
            yield self._iri(f"{RDF}reifies"), f"<<( {self._terms.statement(triple)} )>>"
            return
        yield self._iri(f"{RDF}type"), self._iri(f"{RDF}Statement")
        for name, column, label in zip(("subject", "predicate", "object"), COLUMNS, triple, strict=True):
            yield self._iri(f"{RDF}{name}"), self._terms.term(label, column)

    def _node(self, triple: Triple) -> str:
        """Return what stands for a statement: itself, quoted, or an IRI that is always the same."""
        if self._quotes:
            return f"<< {self._terms.statement(triple)} >>"
        digest = sha256("\0".join(triple).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"<{STATEMENT}{digest}>"

    def _own(self, name: str) -> str:
        return self._iri(f"{VOCABULARY}{name}")

    def _iri(self, iri: str) -> str:
        return self._terms.shortened(f"<{iri}>")


STANDARD_OUTPUT = "-"
PARQUET = ".parquet"
PART = re.compile(r"(\d{6,})\.parquet|\.\d{6,}\.parquet\.part[0-9a-f]{12}")
"""The name of a part, finished or not."""
ToText = Callable[[pl.DataFrame, bool], str]
"""Called with a part, and whether it is the first."""


def to_tab_separated(facts: pl.DataFrame, is_first: bool) -> str:
    """Return one line per fact, with a header before the first part; lists of facts are JSON."""
    names = [name for name in facts.columns if facts[name].dtype == pl.String]
    lines = facts.with_columns(pl.col(name).str.replace_all(r"[\t\r\n]", " ") for name in names)
    return _delimited(lines, separator="\t", include_header=is_first, quote_style="never")


def to_comma_separated(facts: pl.DataFrame, is_first: bool) -> str:
    """Return the same as CSV, with quotes where they are needed."""
    return _delimited(facts, separator=",", include_header=is_first)


def _delimited(facts: pl.DataFrame, **how: Any) -> str:
    numbers = {name: float_texts(facts[name].to_numpy()) for name in facts.columns if facts[name].dtype == pl.Float64}
    lines = facts.with_columns(**{name: pl.Series(text) for name, text in numbers.items()})
    lines = lines.with_columns(
        pl.when(facts[name].is_null()).then(None).otherwise(pl.col(name)).alias(name) for name in numbers
    )
    lists = {
        name: [None if value is None else json.dumps(value, ensure_ascii=False) for value in facts[name].to_list()]
        for name in facts.columns
        if isinstance(facts[name].dtype, pl.List)
    }
    lines = lines.with_columns(pl.Series(name, texts, dtype=pl.String) for name, texts in lists.items())
    out = BytesIO()
    lines.write_csv(out, **how)
    return out.getvalue().decode()


def to_json_lines(facts: pl.DataFrame, is_first: bool) -> str:
    """Return one JSON object per fact."""
    out = BytesIO()
    facts.write_ndjson(out)
    return out.getvalue().decode()


TEXTS: dict[str, ToText] = {".tsv": to_tab_separated, ".csv": to_comma_separated, ".jsonl": to_json_lines}
RDF_SUFFIXES = (".nt", ".ttl", ".nq", ".trig")
TABLES = (PARQUET, *TEXTS)
FACT_SUFFIXES = (*TABLES, *RDF_SUFFIXES)


class FactFile:
    """A file of facts; its suffix, one of `suffixes`, is its format, and text may be compressed (.gz). RDF says where
    facts come from in comments, or as `provenance` says, and shortens IRIs by `prefixes` where the format can.

    Facts come in parts, which are kept in a folder beside the file, NAME.parts: a process that is killed leaves whole
    parts there, as Parquet. `close` puts them into the file, which takes the place of an older one in a single step.
    """

    def __init__(
        self,
        path: Path,
        provenance: str = PROVENANCES[0],
        prefixes: Mapping[str, str] | None = None,
        suffixes: Sequence[str] = FACT_SUFFIXES,
    ) -> None:
        self.path, self.n_parts = path, 0
        self._suffixes = suffixes
        self._provenance = provenance
        self.prefixes: Mapping[str, str] = prefixes or {}
        self._suffix = Path(path.name.lower().removesuffix(".gz")).suffix
        self._packed = path.name.lower().endswith(".gz")
        self._check()
        self._folder = path.with_name(f"{path.name}.parts")
        self._lock: Lock | None = None

    def _check(self) -> None:
        if self._suffix not in self._suffixes or (self._packed and self._suffix == PARQUET):
            endings = ", ".join(self._suffixes)
            raise OptionError(
                f"expected a file name that ends in {endings}, or {STANDARD_OUTPUT}, got {str(self.path)!r}"
            )
        if self.path.is_dir():
            raise DataError(f"{self.path} is a folder: expected a file")
        if not self.path.parent.is_dir():
            raise DataError(f"{self.path}: the folder {self.path.parent} does not exist")

    def __enter__(self) -> Self:
        try:
            self._lock = self._claim()
            self._remove_parts()  # of a process that was killed
            if self._folder.is_symlink() or not self._folder.is_dir():
                make_inner_folder(self._folder)
                self._lock = self._claim()
        except OSError as refusal:
            raise DataError(f"{self._folder}: cannot create the folder ({refusal.strerror or refusal})") from refusal
        return self

    def _claim(self) -> Lock | None:
        """Lock the folder of parts, if it is there; two processes would mix their parts."""
        if self._folder.is_symlink() or not self._folder.is_dir():
            return None
        lock = Lock(self._folder)
        try:
            lock.take()
        except BlockingIOError:
            raise DataError(f"{self.path} is being written by another process: wait, or choose another file") from None
        except OSError:  # a system without locks of folders: nobody is kept out
            pass
        return lock

    def add(self, facts: pl.DataFrame) -> None:
        """Keep one more part."""
        with replacing(self._folder / f"{self.n_parts:06}{PARQUET}") as unfinished:
            facts.write_parquet(unfinished, compression="zstd")
        self.n_parts += 1

    def __exit__(self, *error: object) -> None:
        """Put the parts together, also those of work that was interrupted."""
        if self.n_parts:
            with replacing(self.path) as unfinished:
                self._join(unfinished)
        self._remove_parts()
        self._lock = None

    def _remove_parts(self) -> None:
        """Remove the parts and, unless it holds something else, their folder."""
        with suppress(OSError):
            for file in self._folder.iterdir() if not self._folder.is_symlink() else ():
                if PART.fullmatch(file.name):
                    file.unlink()
            self._folder.rmdir()

    def _join(self, unfinished: Path) -> None:
        parts = [self._folder / f"{number:06}{PARQUET}" for number in range(self.n_parts)]
        if self._suffix == PARQUET:
            pl.scan_parquet(parts).sink_parquet(unfinished, compression="zstd")
            seal(unfinished)
            return
        with gzip.open(unfinished, "wb") if self._packed else unfinished.open("wb") as file:
            _write_texts((pl.read_parquet(part) for part in parts), self._to_text(), file)

    def _to_text(self) -> ToText:
        known = TEXTS.get(self._suffix)
        return known or RdfText(rdf_format(self.path), self._provenance, self.prefixes)


class FactStream:
    """Standard output: tab-separated lines, at once."""

    def __init__(self) -> None:
        self.n_parts = 0
        self.prefixes: Mapping[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def add(self, facts: pl.DataFrame) -> None:
        """Write one more part."""
        sys.stdout.write(to_tab_separated(facts, self.n_parts == 0))
        sys.stdout.flush()
        self.n_parts += 1

    def __exit__(self, *error: object) -> None:
        """Nothing is left to be done."""


def open_facts(out: str, provenance: str = PROVENANCES[0]) -> FactFile | FactStream:
    """Return where facts go to: a file, or standard output."""
    if (address := find_address(out)) is not None:
        raise OptionError(
            f"write the facts to a file and check them first, then run: anyburl publish FILE {address.text}"
        )
    if provenance not in PROVENANCES:
        raise InvalidOptionError("provenance", f"one of {', '.join(PROVENANCES)}", provenance)
    if provenance != PROVENANCES[0] and not out.lower().removesuffix(".gz").endswith(RDF_SUFFIXES):
        raise OptionError(f"--provenance needs an RDF file ({', '.join(RDF_SUFFIXES)}), got {out!r}")
    return FactStream() if out == STANDARD_OUTPUT else FactFile(at_home(out), provenance)


def _write_texts(frames: Iterator[pl.DataFrame], to_text: ToText, file: IO[bytes] | gzip.GzipFile) -> None:
    for number, frame in enumerate(frames):
        file.write(to_text(frame, number == 0).encode())
