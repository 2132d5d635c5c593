"""Findings as a self-contained HTML page, without scripts or fonts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from anyburl.doctor.findings import Finding
from anyburl.doctor.options import CHECKS
from anyburl.doctor.render import cell_text, in_order, sizes_text
from anyburl.explanation.page import STYLE
from anyburl.triples.names import Names

TABLES = """
.anyburl .scroll { overflow-x: auto; }
.anyburl table { border-collapse: collapse; font-size: 13.5px; margin-top: 10px; }
.anyburl th, .anyburl td { text-align: left; vertical-align: top; padding: 3px 14px 3px 0; overflow-wrap: anywhere; }
.anyburl th { color: var(--dim); font-weight: 500; border-bottom: 1px solid var(--edge); }
.anyburl td.number { text-align: right; overflow-wrap: normal; }
.anyburl .problem h2 b { color: var(--lack); }
.anyburl .warning h2 b { color: var(--claim); }
.anyburl .note h2 b { color: var(--dim); }
"""


def to_html(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names) -> str:
    """Return a whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>body {{ margin: 0; }}</style></head>\n"
        f"<body>{to_fragment(name, sizes, findings, names)}</body></html>\n"
    )


def to_fragment(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names) -> str:
    """Return the findings as one element, with its style: for pages and notebooks."""
    rest, told = in_order(findings), "".join(_finding(finding, names) for finding in findings)
    quiet = f"<p>nothing found by: {escape(', '.join(rest))}</p>" if rest else ""
    return (
        f'<div class="anyburl"><style>{STYLE}{TABLES}</style><h1>{escape(name)}</h1>'
        f"<p>{escape(sizes_text(sizes))}</p>\n{told}{quiet}</div>"
    )


def _finding(finding: Finding, names: Names) -> str:
    return (
        f'<section class="{finding.severity}"><h2><b>{finding.check}</b>{escape(finding.sentence)}</h2>'
        f"<p>{finding.severity}: {escape(CHECKS[finding.check])}</p>"
        f"{_table(finding, names) if finding.examples else ''}</section>\n"
    )


def _table(finding: Finding, names: Names) -> str:
    headings = "".join(f"<th>{escape(column)}</th>" for column in finding.columns)
    rows = "".join(f"<tr>{''.join(_cell(cell, names) for cell in row)}</tr>" for row in finding.examples)
    return f'<div class="scroll"><table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: str | int | float | None, names: Names) -> str:
    kind = ' class="number"' if isinstance(cell, int | float) else ""
    return f"<td{kind}>{escape(cell_text(cell, names))}</td>"
