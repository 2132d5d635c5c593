"""Labels that other tools cannot read, or that people cannot tell apart; objects that are no entities; labels that seem
to stand for two sorts of things.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anyburl.base.errors import counted
from anyburl.data.attributes import format_value
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Severity

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
        found = labels.filter(labels.str.contains(pattern))
        if len(found):
            verb = "has" if len(found) == 1 else "have"
            sentence = f"{counted(len(found), kind, plural)} {verb} {fault} in the label: hard for {READERS[fault]}"
            findings.append(Finding.of("labels", severity, sentence, len(found), _shown(found, top)))
    return findings


def _too_long(labels: pl.Series, kind: str, plural: str, top: int) -> list[Finding]:
    found = labels.filter(labels.str.len_chars() > LONGEST)
    if not len(found):
        return []
    verb = "has" if len(found) == 1 else "have"
    sentence = f"{counted(len(found), kind, plural)} {verb} a label of more than {LONGEST} characters"
    return [Finding.of("labels", Severity.WARNING, sentence, len(found), _shown(found.str.head(LONGEST), top))]


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
    found, n_labels = [], 0
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
        found.append((label, len(objects), len(both), such, other, advice))
    if not found:
        return []
    names = ["relation", "objects", "also subjects", "such as", "subjects of", "what to do"]
    table = pl.DataFrame(found, schema=names, orient="row").sort("also subjects", descending=True)
    words_of = counted(n_labels, "label seems", "labels seem")
    sentence = f"{words_of} to stand for two sorts of things: other objects of the relation have no facts of their own"
    return [Finding.of("ambiguous", Severity.WARNING, sentence, n_labels, table.head(top))]
