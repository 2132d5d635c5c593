"""Reads values of attributes: from files of values, and from relations of triples whose objects are values.

Readers collect texts, in frames with the columns `VALUE_ROWS`; once all triples are known, `read_attributes` turns them
into numbers. Texts that a user named as values, or put into a file of values, have an `origin` and must be values;
others (literals of RDF, properties of nodes) are left out where they are none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from anyburl.base.errors import DataError, quoted
from anyburl.base.files import first_bytes
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet
from anyburl.data.attributes import Attribute, AttributeKind, Attributes, parse_values
from anyburl.data.files import SPLITS
from anyburl.data.formats.delimited import BLOCK, MARK, LineParser, first_fields, is_csv, read_blocks, read_delimited
from anyburl.data.formats.rdf import DATATYPES, VALUE_ROWS
from anyburl.data.options import ENTITY, KNOWN, Gathered, ReadOptions
from anyburl.data.table import TripleTable, tables_of
from anyburl.data.vocabulary import Vocabulary, similar_labels

LEAST_DISTINCT = 10  # values of a relation that is recognised
UNNAMED_ENTITIES = "values of entities without triples"
NO_VALUES = "values that are no number, date or boolean"

_TYPED = r'^"(.*)"(?:\^\^<(.*)>|@[A-Za-z-]+)?$'
_NAMES = {
    "entity": KNOWN["subject"] | {"entity", "id", "node"},
    "attribute": KNOWN["relation"] | {"attribute", "property"},
    "value": KNOWN["object"] | {"value"},
}
_RECOGNISED = {  # stricter than what may be named: codes such as 00001740 and 2001-05 are no values
    AttributeKind.NUMBER: r"^[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$",
    AttributeKind.DATE: r"^-?\d{4,}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$",
}


def take_named_values(
    batches: Iterable[pl.DataFrame], options: ReadOptions, gathered: Gathered, origin: object
) -> Iterator[pl.DataFrame]:
    """Yield triples without those of relations that the options name as attributes; these go to `gathered`."""
    names = [name for name, kind in options.attribute_kinds.items() if kind != ENTITY]
    for batch in batches:
        if not names:
            yield batch
            continue
        is_value = batch["relation"].is_in(names)
        if is_value.any():
            gathered.values.append((gathered.split, value_rows(batch.filter(is_value), origin)))
        yield batch.filter(~is_value)


def value_rows(triples: pl.DataFrame, origin: object) -> pl.DataFrame:
    """Return three columns of texts as rows of values, whatever the columns are called."""
    entity, attribute, text = triples.columns[:3]
    return triples.select(
        pl.col(entity).alias("entity"),
        pl.col(attribute).alias("attribute"),
        pl.col(text).alias("text"),
        pl.lit(None, pl.String).alias("kind"),
        pl.lit(os.fspath(origin) if isinstance(origin, Path) else str(origin)).alias("origin"),
    )


def read_values(path: Path) -> pl.DataFrame:
    """Return the texts in a file of values.

    It has lines of an entity, an attribute and a value, with or without a header; or a header and a row per entity: the
    entity first, or in a column called id or entity, then its values, which may be missing.
    """
    start = first_bytes(path, "values of attributes", DataError)
    try:
        if path.name.lower().endswith(".parquet"):
            return rows_of_table(scan_parquet(path).collect().select(pl.all().cast(pl.String)), path)
        fields = first_fields(path, start)
        if names := _usual(fields):
            chosen = ReadOptions(columns=tuple(names))
            return _joined(read_delimited(path, start, chosen, BLOCK, Gathered()), path)
        if len(fields) == 3 and (_looks_like_value(fields[2]) or not _is_row(first_fields(path, start, 1))):
            if is_csv(path):
                return _joined(
                    read_delimited(path, start, ReadOptions(columns=("1", "2", "3")), BLOCK, Gathered()), path
                )
            parser = LineParser(path, ("entity", "attribute", "value"))
            return _joined((parser.parse(block) for block in read_blocks(path, start, BLOCK)), path)
        text = b"".join(read_blocks(path, start, BLOCK)).removeprefix(MARK)
        separator, quote = (",", '"') if is_csv(path) else ("\t", None)
        return _wide(pl.read_csv(text, separator=separator, quote_char=quote, infer_schema=False), path)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: the values cannot be read ({reason})") from error


def _joined(frames: Iterable[pl.DataFrame], path: Path) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=VALUE_ROWS), *(value_rows(frame, path) for frame in frames)])


def rows_of_table(table: pl.DataFrame, origin: object) -> pl.DataFrame:
    """Return the values of a table with a row per value, or per entity."""
    names = _usual(table.columns)
    return value_rows(table.select(names).drop_nulls(), origin) if names else _wide(table, origin)


def _wide(frame: pl.DataFrame, origin: object) -> pl.DataFrame:
    """Return the values of a table with a row per entity; empty cells have none."""
    if frame.width < 2:
        raise DataError(
            f"{origin}:1: expected lines of an entity, an attribute and a value, or a table with a header, a column of "
            f"entities and columns of values, got {', '.join(frame.columns) or 'nothing'}"
        )
    entity = next((name for name in frame.columns if name.strip().lower() in _NAMES["entity"]), frame.columns[0])
    long = frame.unpivot(index=entity, variable_name="\0attribute", value_name="\0text").drop_nulls()
    return value_rows(long.filter(pl.col("\0text").str.strip_chars() != ""), origin)


def _usual(names: Sequence[str]) -> list[str]:
    """Return the columns with entities, attributes and values by their usual names; nothing if it is another table."""
    lower = [name.strip().lower() for name in names]
    positions = [[row for row, name in enumerate(lower) if name in usual] for usual in _NAMES.values()]
    if len(names) != 3 or any(len(position) != 1 for position in positions):
        return []
    return [names[position[0]] for position in positions]


def _is_row(fields: Sequence[str]) -> bool:
    """Whether the line after the first is a row of values of an entity: its second field is one, or is empty."""
    return len(fields) > 1 and (not fields[1].strip() or _looks_like_value(fields[1]))


def _looks_like_value(text: str) -> bool:
    lexical = pl.Series([text]).str.replace(_TYPED, "$1")
    return any(parse_values(lexical, kind)[0] is not None for kind in AttributeKind)


def read_attributes(gathered: Gathered, vocabulary: Vocabulary, options: ReadOptions) -> dict[str, Attributes]:
    """Return the values of each split; what is left out is counted."""
    named = {name: AttributeKind(kind) for name, kind in options.attribute_kinds.items() if kind != ENTITY}
    frames = [frame.with_columns(pl.lit(split).alias("split")) for split, frame in gathered.values]
    rows = _unquoted(pl.concat(frames)) if frames else pl.DataFrame(schema={**VALUE_ROWS, "split": pl.String})
    _check_named(named, rows, vocabulary)
    by_split: dict[str, list[Attribute]] = {split: [] for split in SPLITS}
    for (name,), group in rows.group_by("attribute"):
        kind = named.get(str(name)) or _kind(group)
        if kind is None:
            gathered.left_out[NO_VALUES] += group.height - group["origin"].null_count()
            continue
        group = group.with_columns(value=parse_values(group["text"], kind))
        wrong = group.filter(pl.col("value").is_null())
        if wrong.height:
            refused = wrong.filter(pl.col("origin").is_not_null() | pl.lit(name in named))
            if refused.height and not options.skip_bad:
                _refuse(refused, kind)
            gathered.left_out[NO_VALUES] += wrong.height
            group = group.drop_nulls("value")
        entities = vocabulary.encode_entities(group["entity"])
        gathered.left_out[UNNAMED_ENTITIES] += int((entities < 0).sum())
        for split in SPLITS:
            kept = (entities >= 0) & (group["split"] == split).to_numpy()
            by_split[split].append(Attribute.of(str(name), kind, entities[kept], group["value"].to_numpy()[kept]))
    return {split: Attributes.of(own) for split, own in by_split.items()}


def _unquoted(rows: pl.DataFrame) -> pl.DataFrame:
    """Return texts that are literals of RDF without their quotes, and the kinds that their datatypes tell."""
    if not rows["text"].str.starts_with('"').any():
        return rows
    datatype = pl.col("text").str.extract(_TYPED, 2).replace_strict(DATATYPES, default=None, return_dtype=pl.String)
    return rows.with_columns(
        pl.coalesce("kind", datatype).alias("kind"), pl.col("text").str.replace(_TYPED, "$1").alias("text")
    )


def _check_named(named: Mapping[str, AttributeKind], rows: pl.DataFrame, vocabulary: Vocabulary) -> None:
    known = rows["attribute"].unique().sort()
    for name in named:
        if name not in known:
            near = similar_labels(pl.concat([known, vocabulary.relations.cast(pl.String)]), name)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise DataError(f"the data has no attribute or relation {quoted(name)}, which --attribute names{hint}")


def _kind(group: pl.DataFrame) -> AttributeKind | None:
    """Return the kind that most texts have, by datatype or by look; None if less than half have one."""
    stated = group["kind"].drop_nulls()
    if len(stated) * 2 >= group.height:
        return AttributeKind(stated.mode().sort()[0])
    shares = {kind: parse_values(group["text"], kind).is_not_null().sum() for kind in AttributeKind}
    best = max(shares, key=lambda kind: shares[kind])  # 1999 and 1 are numbers unless they are named otherwise
    if shares[best] * 2 < group.height:
        return None
    if shares[best] < group.height and group["origin"].is_null().all():
        return None  # a property of nodes that is text for some
    return best


def _refuse(wrong: pl.DataFrame, kind: AttributeKind) -> NoReturn:
    entity, attribute, text, origin = wrong.select("entity", "attribute", "text", "origin").row(0)
    line = _line_of(origin or "", [entity, attribute, text]) or _line_of(origin or "", [entity, text])
    where = f"{origin}:{line}" if line else f"{origin or 'the data'}: {quoted(entity)}"
    more = ", without a unit" if kind is AttributeKind.NUMBER else ""
    raise DataError(f"{where}: expected {kind.example}{more}, for {attribute}, got {quoted(text)}")


def _line_of(origin: str, parts: Sequence[str]) -> int | None:
    """Return the number of the first line of a text file that contains some texts."""
    path = Path(origin)
    if not path.is_file() or path.name.lower().endswith(".parquet"):
        return None
    needles, number = [part.encode() for part in parts], 0
    for block in read_blocks(path, first_bytes(path, "values", DataError), BLOCK):
        for line in block.splitlines():
            number += 1
            if all(needle in line for needle in needles):
                return number
    return None


def recognise_values(tables: list[TripleTable], options: ReadOptions, gathered: Gathered) -> list[TripleTable]:
    """Return tables without the relations whose objects are all numbers, or all dates; their triples go to `gathered`.

    Such a relation has ten distinct objects or more, none of which is a subject or an object of any other relation. If
    a subject is a number, numbers are ids and none are recognised.
    """
    vocabulary = tables[0].vocabulary
    looks = [vocabulary.entities.str.contains(pattern).to_numpy() for pattern in _RECOGNISED.values()]
    looks = [is_value for is_value in looks if is_value.sum() >= LEAST_DISTINCT]
    if not looks:  # as in most data: then no triple is looked at
        return tables
    relations: list[int] = []
    kept = {row for row, label in enumerate(vocabulary.relations) if options.attribute.get(label) == ENTITY}
    triples = np.concatenate([table.triples for table in tables])
    for is_value in looks:
        if not is_value[triples[:, 0]].any():
            relations += _relations_of(triples, is_value, vocabulary.n_relations, kept)
    if not relations or np.isin(triples[:, 1], relations).all():
        return tables
    frames = []
    for split, table in zip(SPLITS, tables, strict=True):
        is_value = np.isin(table.triples[:, 1], relations)
        rows = value_rows(vocabulary.decode_triples(table.triples[is_value]), "")
        gathered.values.append((split, rows.with_columns(pl.lit(None, pl.String).alias("origin"))))
        frames.append([vocabulary.decode_triples(table.triples[~is_value])])
    return [
        TripleTable(made.vocabulary, made.triples, table.n_duplicates)
        for made, table in zip(tables_of(frames), tables, strict=True)
    ]


def _relations_of(triples: np.ndarray, is_value: np.ndarray, n_relations: int, kept: set[int]) -> list[int]:
    """Return the relations that have values as objects only, which no other relations have."""
    counts = np.bincount(triples[:, 1], minlength=n_relations)
    of_values = triples[is_value[triples[:, 2]], 1:]
    chosen = {row for row in np.flatnonzero(np.bincount(of_values[:, 0], minlength=n_relations) == counts).tolist()}
    chosen = {row for row in chosen - kept if counts[row]}
    chosen = {row for row in chosen if len(np.unique(of_values[of_values[:, 0] == row, 1])) >= LEAST_DISTINCT}
    while chosen:
        is_chosen = np.isin(of_values[:, 0], [*chosen])
        shared = np.isin(of_values[:, 1], of_values[~is_chosen, 1]) & is_chosen
        if not shared.any():
            break
        chosen -= {*of_values[shared, 0].tolist()}
    return sorted(chosen)
