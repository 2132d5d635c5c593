"""What labels say about a graph: which ones tools cannot read or people cannot tell apart, which objects are no
entities, and which tables have a row for each thing and are no graph yet.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl

from anyburl.base.errors import DataError, counted
from anyburl.base.files import first_bytes
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.data.attributes import format_value
from anyburl.data.dataset import Dataset
from anyburl.data.formats.delimited import first_fields, is_csv
from anyburl.data.options import choose_columns
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Report, Severity

LONGEST = 255  # characters; file names and indexed columns of many databases end here

FAULTS = {
    "control characters or line breaks": (Severity.PROBLEM, r"[\x00-\x1f\x7f-\x9f\u2028\u2029]"),
    "spaces at the start or end": (Severity.PROBLEM, r"^\s|\s$"),
    "spaces": (Severity.WARNING, r"\S\s+\S"),
    "quotes or backslashes": (Severity.WARNING, r"[\"'`\\]"),
    "parentheses": (Severity.WARNING, r"[()]"),
    "commas": (Severity.WARNING, r","),
    "invisible characters": (Severity.WARNING, r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]"),
}
"""What labels may have, how bad that is, and how to find it."""

READERS = {
    "control characters or line breaks": "files with lines and columns",
    "spaces at the start or end": "readers that strip fields, as most do",
    "spaces": "space-separated files, and AnyBURL (Java)",
    "quotes or backslashes": "CSV, SQL, Prolog and Turtle without escapes",
    "parentheses": "rules as text (AnyBURL, PyClause, Prolog)",
    "commas": "CSV without quotes, and rules as text",
    "invisible characters": "people",
}
"""Who stumbles over it."""


def find_label_faults(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the faults of the labels of entities and relations."""
    words = facts.dataset.vocabulary
    findings = []
    for kind, plural, labels in (("entity", "entities", words.entities), ("relation", "relations", words.relations)):
        findings += _faulty(labels, kind, plural, top)
        findings += _too_long(labels, kind, plural, top)
        findings += _alike(labels, plural, top)
    return findings


def _faulty(labels: pl.Series, kind: str, plural: str, top: int) -> list[Finding]:
    findings = []
    for fault, (severity, pattern) in FAULTS.items():
        faulty = labels.filter(labels.str.contains(pattern))
        if len(faulty):
            verb = "has" if len(faulty) == 1 else "have"
            sentence = f"{counted(len(faulty), kind, plural)} {verb} {fault} in the label: hard for {READERS[fault]}"
            findings.append(Finding.of("labels", severity, sentence, len(faulty), _shown(faulty, top)))
    return findings


def _too_long(labels: pl.Series, kind: str, plural: str, top: int) -> list[Finding]:
    faulty = labels.filter(labels.str.len_chars() > LONGEST)
    if not len(faulty):
        return []
    verb = "has" if len(faulty) == 1 else "have"
    sentence = f"{counted(len(faulty), kind, plural)} {verb} a label of more than {LONGEST} characters"
    return [Finding.of("labels", Severity.WARNING, sentence, len(faulty), _shown(faulty.str.head(LONGEST), top))]


def _alike(labels: pl.Series, plural: str, top: int) -> list[Finding]:
    """Return labels that are the same but for upper and lower case, or for the way Unicode writes them."""
    findings = []
    composed = labels.str.normalize("NFKC")
    for severity, difference, key in (
        (Severity.PROBLEM, "Unicode normalization", composed),
        (Severity.WARNING, "upper and lower case", composed.str.to_lowercase()),
    ):
        apart = composed if key is not composed else labels
        groups = pl.DataFrame({"label": labels, "key": key, "apart": apart}).filter(
            pl.col("apart").n_unique().over("key") > 1
        )
        if groups.is_empty():
            continue
        sets = groups.group_by("key", maintain_order=True).agg(pl.col("label").str.join(" | "))
        sentence = f"{counted(len(sets), 'group')} of {plural} with labels that differ only by {difference}"
        findings.append(Finding.of("labels", severity, sentence, len(sets), _shown(sets["label"], top)))
    return findings


def _shown(labels: pl.Series, top: int) -> pl.DataFrame:
    """Return the first labels, with what cannot be seen written as in Python."""
    return pl.DataFrame({"label": [label if label.isprintable() else ascii(label) for label in labels.head(top)]})


LITERALS = {  # what objects look like, and what to do with the relation; the first that nearly all match counts
    "numbers": (r"^[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$", "read them as values: --attribute '{}=number'"),
    "dates": (r"^\d{4}-\d\d(?:-\d\d)?(?:[T ].*)?$", "read them as values: --attribute '{}=date'"),
    "addresses": (r"^(?:[a-z][a-z+.-]*://|mailto:|www\.)\S+$", "leave these rows out, or keep the host name only"),
    "versions": (r"^v?\d+[.:~+-]?[\w.:~+-]*$", "leave these rows out, or keep the first number only"),
    "texts": (r"\S(?:\s+\S+){3,}", "leave these rows out, or use the words as names (--names)"),
}
READ = "nothing: they are read as values (--attribute NAME=entity keeps them as entities)"
MATCHING, FEWEST_VALUES, MOST_SHARED, SAMPLE = 0.8, 10, 0.05, 2_000


def check_literals(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the relations whose objects are values rather than entities: nothing else refers to them, hardly any two
    subjects share one, and they look like texts, versions, addresses, numbers or dates.
    """
    triples, entities = facts.every, facts.dataset.vocabulary.entities
    pairs = np.unique(triples[:, 1].astype(np.int64) * facts.n_entities + triples[:, 2])
    relations, objects = pairs // facts.n_entities, pairs % facts.n_entities
    n_places = np.bincount(objects, minlength=facts.n_entities)  # relations that an entity is an object of
    is_subject = np.bincount(triples[:, 0], minlength=facts.n_entities) > 0
    used = (n_places[objects] > 1) | is_subject[objects]
    rows = [
        (
            name,
            f"{values.kind}s",
            len(np.unique(values.values)),
            len(values.values),
            format_value(values.values[0], values.kind),
            READ,
        )
        for name, values in facts.dataset.attributes.items()
        if len(values.values)
    ]
    n_read = len(rows)
    for relation in range(facts.n_relations):
        own = objects[relations == relation]
        if len(own) < FEWEST_VALUES or used[relations == relation].mean() > MOST_SHARED:
            continue
        label = facts.dataset.vocabulary.relation_label(relation)
        n_facts = int((triples[:, 1] == relation).sum())
        texts = entities.gather(own[:: max(1, len(own) // SAMPLE)])
        kind = literal_kind(texts)
        if kind is not None:
            rows.append((label, kind, len(own), n_facts, texts[0][:60], LITERALS[kind][1].format(label)))
    if not rows:
        return []
    names = ["relation", "objects", "different", "facts", "such as", "what to do"]
    table = pl.DataFrame(rows, schema=names, orient="row").sort("facts", descending=True)
    words = counted(len(rows), "relation has", "relations have")
    sentence = f"{words} values as objects, which are no entities ({counted(int(table['facts'].sum()), 'fact')})"
    severity = Severity.NOTE if n_read == len(rows) else Severity.WARNING
    return [Finding.of("literals", severity, sentence, len(rows), table.head(top))]


def literal_kind(texts: pl.Series) -> str | None:
    """Return what nearly all of the texts look like; None if that is nothing but names."""
    for kind, (pattern, _) in LITERALS.items():
        if len(texts) and int(texts.str.contains(pattern).sum()) >= MATCHING * len(texts):
            return kind
    return None


FEWEST_OBJECTS, LEAST_PURE, LEAST_USED = 5, 0.6, 3


def check_ambiguous(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return relations with a fixed set of objects, such as sections, most of which stand nowhere else, while a few
    have facts of their own: there, one label may stand for two things.
    """
    triples, words = facts.every, facts.dataset.vocabulary
    n_as_subject = np.bincount(triples[:, 0], minlength=facts.n_entities)
    faulty, n_labels = [], 0
    for relation in range(facts.n_relations):
        own = triples[triples[:, 1] == relation]
        objects = np.unique(own[:, 2])
        if len(objects) < FEWEST_OBJECTS or len(own) < LEAST_USED * len(objects):
            continue
        both = objects[n_as_subject[objects] > 0]
        if not len(both) or 1 - len(both) / len(objects) < LEAST_PURE:
            continue
        n_labels += len(both)
        worst = both[np.argsort(-n_as_subject[both], kind="stable")][:3]
        others = triples[np.isin(triples[:, 0], both), 1]
        label, other = words.relation_label(relation), words.relation_label(int(np.bincount(others).argmax()))
        such = ", ".join(words.entity_label(int(entity)) for entity in worst)
        advice = f"tell them apart, as in {label}:{words.entity_label(int(worst[0]))}"
        faulty.append((label, len(objects), len(both), such, other, advice))
    if not faulty:
        return []
    names = ["relation", "objects", "also subjects", "such as", "subjects of", "what to do"]
    table = pl.DataFrame(faulty, schema=names, orient="row").sort("also subjects", descending=True)
    words_of = counted(n_labels, "label seems", "labels seem")
    sentence = f"{words_of} to stand for two sorts of things: other objects of the relation have no facts of their own"
    return [Finding.of("ambiguous", Severity.WARNING, sentence, n_labels, table.head(top))]


COLUMN_CHECKS = {"columns": "what the columns of a table are, and how to make facts of it"}
FEWEST_COLUMNS, MOST_ROWS = 4, 200_000
KEY, SHARED, LISTS = 0.99, 0.5, 0.5  # shares: of different values in a key, in a relation; of cells with several values
SEPARATORS = (", ", "; ", "|")
VALUES = {"values: numbers": "number", "values: dates": "date"}


def is_row_per_thing(path: Path) -> bool:
    """Whether a file is a CSV table that has no columns for subject, relation and object."""
    if not is_csv(path):
        return False
    names = first_fields(path, first_bytes(path, "a table", DataError))
    try:
        choose_columns(names, None, path)
    except DataError:
        return len(names) >= FEWEST_COLUMNS
    return False


def examine_columns(path: Path) -> Report:
    """Report what the columns of a table are; the sizes are those of the graph that it would give."""
    started = time.monotonic()
    try:
        table = pl.read_csv(path, infer_schema=False, n_rows=MOST_ROWS)
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot read this table ({' '.join(str(error).split())[:200]})") from error
    key = next((name for name in table.columns if _is_key(table[name])), table.columns[0])
    rows = [(name, *_describe(table[name], is_key=name == key)) for name in table.columns]
    relations = [name for name, is_what, *_ in rows if is_what == "a relation"]
    lists = {name: _separator(table[name]) for name, is_what, *_ in rows if is_what == "a list"}
    facts = table.unpivot(relations, index=key).drop_nulls() if relations else table.select(key).clear()
    examples = pl.DataFrame(rows, schema=["column", "is", "different", "such as", "what to do"], orient="row")
    words = counted(len(relations), "column is a relation", "columns are relations")
    sentence = f"{path.name} has a row for each {key}, not for each fact; {words}"
    findings = [Finding.of("columns", Severity.PROBLEM, sentence, len(rows), examples)]
    if relations or lists:
        values = {name: VALUES[is_what] for name, is_what, *_ in rows if is_what in VALUES}
        findings.append(_recipe(path, key, relations, values, lists))
    named = facts.rename({key: "subject", "variable": "relation", "value": "object"}) if relations else None
    dataset = Dataset.from_triples([("?", "?", "?")] if named is None else named, name=path.stem)
    nothing, seconds = np.zeros(len(dataset.train)), time.monotonic() - started
    return Report(path.stem, tuple(findings), nothing, None, seconds, DatasetFacts(dataset), COLUMN_CHECKS)


def _recipe(
    path: Path, key: str, relations: list[str], values: dict[str, str], lists: dict[str, str | None]
) -> Finding:
    """Return the lines of Python that turn the table into facts, and the command that learns from them."""
    kinds = "".join(f" --attribute '{name}={kind}'" for name, kind in values.items())
    lines = [
        "import polars as pl",
        f"table = pl.read_csv({str(path)!r}, infer_schema=False)",
        f"facts = table.unpivot({[*relations, *values]!r}, index={key!r})",
    ]
    for name, separator in lists.items():
        lines += [
            f"parts = table.unpivot([{name!r}], index={key!r}).with_columns(pl.col('value').str.split({separator!r}))",
            "facts = facts.vstack(parts.explode('value'))",
        ]
    lines += [
        "facts.drop_nulls().unique(maintain_order=True).write_csv('facts.csv')",
        f"then: anyburl learn facts.csv --columns '{key},variable,value'{kinds} --out runs/{path.stem}",
    ]
    examples = tuple((line,) for line in lines)
    return Finding("columns", Severity.NOTE, "this makes facts of its relations", len(lines), ("in Python",), examples)


def _is_key(values: pl.Series) -> bool:
    known = values.drop_nulls()
    return len(known) == len(values) and known.n_unique() >= KEY * len(known) and literal_kind(known) is None


def _describe(values: pl.Series, *, is_key: bool) -> tuple[str, int, str | None, str]:
    """Return what a column is, how many different values it has, one of them, and what to do with it."""
    known = values.drop_nulls()
    different = known.unique(maintain_order=True)
    first = None if known.is_empty() else str(known[0])[:60]
    if is_key:
        return "the subject", len(different), first, "the subject of all facts"
    if not len(known):
        return "empty", 0, None, "leave it out"
    separator = _separator(known)
    if separator is not None:
        return "a list", len(different), first, f"split it at {separator!r}: a fact for each part"
    kind = literal_kind(different)
    if kind is not None and len(different) > SHARED * min(len(known), 50):
        advice = LITERALS[kind][1].replace("these rows", "it").replace("'{}=", f"'{values.name}=")
        return f"values: {kind}", len(different), first, advice
    if len(different) <= SHARED * len(known):
        return "a relation", len(different), first, "a fact for each row"
    return "names", len(different), first, "hardly shared: leave it out, unless other columns name the same things"


def _separator(values: pl.Series) -> str | None:
    """Return what is between the parts of a column's cells, if many have several."""
    n_known = max(1, values.count())
    shares = {one: int(values.str.contains(one, literal=True).sum()) / n_known for one in SEPARATORS}
    return next((one for one in SEPARATORS if shares[one] >= LISTS), None)
