"""A theory as Markdown, and in files: a page, Markdown or JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from anyburl.base.errors import DataError
from anyburl.base.writing import replace_text
from anyburl.tools.report.page import theory_html
from anyburl.tools.report.record import (
    HOW_TO_READ,
    Law,
    Line,
    RelationTheory,
    Theory,
    explains_text,
    front_parts,
    glance_law,
    law_lines,
    opening_text,
    remark_on,
    size_text,
    values_words,
)
from anyburl.tools.report.words import Word

SIGNS = {"relation": "*", "entity": "**", "variable": "**"}
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def theory_markdown(theory: Theory) -> str:
    """Return the whole report."""
    parts = [f"# What {_escaped(theory.name)} knows", _escaped(opening_text(theory)), "## In short"]
    for title, lines in front_parts(theory):
        parts += [f"### {title}", "\n".join(map(_item, lines))]
    parts += [HOW_TO_READ, "## All relations at a glance", _glance(theory)]
    parts += [_section(relation, theory) for relation in theory.relations[: theory.n_sections]]
    return "\n\n".join(parts) + "\n"


def _item(line: Line) -> str:
    held = f" ({line.law.chance})" if line.law else ""
    return f"- {_marked(line.words)}{held}" + (f"\n  {_marked(line.remark)}" if line.remark else "")


def _glance(theory: Theory) -> str:
    rows = ["| relation | facts | explained by laws | its main law |", "| --- | ---: | --- | --- |"]
    for relation in theory.relations:
        law = glance_law(relation)
        main_law = f"{_marked(law.words)} ({law.chance})" if law else "no law found"
        name = _escaped(theory.wording.relation(relation.label))
        rows.append(f"| {name} | {relation.n_facts:,} | {relation.explained_chance} | {main_law} |")
    return "\n".join(rows)


def _section(relation: RelationTheory, theory: Theory) -> str:
    wording = theory.wording
    facts = "; ".join(_marked(wording.fact(fact)) for fact in relation.facts)
    parts = [
        f"## {_escaped(wording.relation(relation.label))}",
        f"{size_text(relation)} {_marked(values_words(relation, wording))}".strip(),
        f"For example: {facts}.",
        remark_on(relation),
    ]
    for idea, laws in relation.ideas:
        parts += [f"### {idea.title}", *(_law(law, relation, theory) for law in laws)]
    if relation.unexplained:
        left = "; ".join(_marked(wording.fact(fact)) for fact in relation.unexplained)
        parts.append(f"Not explained, for example: {left}.")
    return "\n\n".join(parts)


def _law(law: Law, relation: RelationTheory, theory: Theory) -> str:
    lines = [f"{_marked(law.words)} {law.chance}; {explains_text(law, relation)}."]
    for title, cases in law_lines(law, relation, theory.wording):
        lines.append(f"  - {title}: {'; '.join(map(_marked, cases))}.")
    return "- " + "\n".join(lines)


def _marked(words: Iterable[Word]) -> str:
    return "".join(f"{sign}{_escaped(text)}{sign}" for text, sign in ((p.text, SIGNS.get(p.role, "")) for p in words))


def _escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\1", text.replace("\n", " "))


def _theory_json(theory: Theory) -> str:
    return json.dumps(theory.to_json(), ensure_ascii=False, indent=2) + "\n"


FORMATS = {".html": theory_html, ".md": theory_markdown, ".json": _theory_json}


def write_theory(theory: Theory, path: str | os.PathLike[str]) -> None:
    """Write a theory as a page (.html), as Markdown (.md) or as JSON (.json)."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise DataError(f"expected a file that ends in {', '.join(FORMATS)}, got {os.fspath(path)!r}")
    replace_text(Path(path), FORMATS[suffix](theory))
