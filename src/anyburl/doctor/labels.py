"""Labels that other tools cannot read, or that people cannot tell apart."""

from __future__ import annotations

import polars as pl

from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity
from anyburl.errors import counted

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


def check_labels(facts: Facts, top: int) -> list[Finding]:
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
