"""Drawings of time: the facts behind an answer on a time line, a rule's confidence by age; and a page that shows them.

The SVG has classes and colours of the page (`--ink`, `--dim`, `--line`, `--claim`), so that it fits where it stands.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from anyburl.base.writing import replace_text
from anyburl.data.clock import Clock
from anyburl.reasoning.drawing import shorten, text_width
from anyburl.reasoning.explanation.render import STYLE
from anyburl.temporal.explanation import DatedFact, TemporalExplanation
from anyburl.temporal.kernel_bodies import RECENCY
from anyburl.temporal.rules import TemporalRule

WIDTH, MARGIN, ROW, RADIUS = 640, 16, 42, 5
LONGEST = 70  # characters of a fact above its line
MOST_LANES = 14
CURVE_WIDTH, CURVE_HEIGHT = 440, 220
STYLES = """
svg.times { max-width: max(100%, 440px); height: auto; }
.times text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--ink); }
.times text.dim { fill: var(--dim); font-size: 12px; }
.times text.moment { fill: var(--claim); font-weight: 600; }
.times line { stroke: var(--line); }
.times .moment line, .times line.moment { stroke: var(--claim); stroke-width: 2; }
.times circle { fill: var(--ink); }
.times circle.moment { fill: var(--claim); }
.times path { fill: none; stroke: var(--claim); stroke-width: 2; }
"""


def draw_timeline(facts: Sequence[DatedFact], clock: Clock, fact: DatedFact | None = None) -> str:
    """Return dated facts as SVG: a line for each, with a dot for each time; the last one is the `fact` they speak for.

    Of many facts, the latest are drawn.
    """
    lanes: dict[tuple[str, str, str], set[int]] = {}
    for subject, relation, object, time in facts:
        lanes.setdefault((subject, relation, object), set()).add(clock.step(time))
    ordered = sorted(lanes.items(), key=lambda lane: -max(lane[1]))[:MOST_LANES]
    last = max(max(steps) for _, steps in ordered) if fact is None else clock.step(fact[3])
    first = min([last - 1, *(min(steps) for _, steps in ordered)])
    texts = [shorten(" ".join(triple), LONGEST) for triple, _ in ordered]
    claimed = "" if fact is None else shorten(" ".join(fact[:3]), LONGEST)
    width = max(WIDTH, *(MARGIN + text_width(text) + MARGIN for text in (*texts, claimed)))
    left, right = (MARGIN + text_width(clock.label(first)) / 2, width - MARGIN - text_width(clock.label(last)) / 2)

    def x(step: int) -> float:
        return left + (right - left) * (step - first) / (last - first)

    rows = [
        _lane(clock, triple, text, steps, MARGIN + ROW * (i + 0.75), (left, right), x)
        for i, ((triple, steps), text) in enumerate(zip(ordered, texts, strict=True))
    ]
    bottom = MARGIN + ROW * (len(ordered) + (fact is not None))
    if fact is not None:
        rows.append(
            f'<line class="moment" x1="{right:.1f}" y1="{MARGIN}" x2="{right:.1f}" y2="{bottom:.0f}"/>'
            f'<circle class="moment" cx="{right:.1f}" cy="{bottom - ROW / 4:.0f}" r="{RADIUS + 1}"/>'
            f'<text class="moment" x="{MARGIN}" y="{bottom - ROW / 4:.0f}">{escape(claimed)}</text>'
        )
    axis = f'<line x1="{left:.0f}" y1="{bottom:.0f}" x2="{right:.1f}" y2="{bottom:.0f}"/>' + "".join(
        f'<text class="{name if fact else "dim"}" x="{x(step):.1f}" y="{bottom + 18:.0f}" text-anchor="middle">'
        f"{escape(clock.label(step))}</text>"
        for step, name in _ticks(first, last, clock, x)
    )
    title = "facts in the order of time" if fact is None else f"{' '.join(fact[:3])}, {fact[3]}: the facts before it"
    return _svg(width, bottom + 28, title, "".join(rows) + axis)


def _lane(
    clock: Clock,
    triple: tuple[str, str, str],
    text: str,
    steps: set[int],
    middle: float,
    ends: tuple[float, float],
    x: Callable[[int], float],
) -> str:
    """Return the line of a fact at the height `middle`, with a dot for each time that it happened."""
    left, right = ends
    dots = "".join(
        f'<circle cx="{x(step):.1f}" cy="{middle:.0f}" r="{RADIUS}"><title>{escape(clock.label(step))}</title></circle>'
        for step in sorted(steps)
    )
    label = (
        f'<text x="{MARGIN}" y="{middle - ROW / 4 - 2:.0f}">'
        f"<title>{escape(' '.join(triple))}</title>{escape(text)}</text>"
    )
    return f'{label}<line x1="{left:.0f}" y1="{middle:.0f}" x2="{right:.1f}" y2="{middle:.0f}"/>{dots}'


def _ticks(first: int, moment: int, clock: Clock, x: Callable[[int], float]) -> list[tuple[int, str]]:
    """Return the steps that the axis names: the moment, the first, and some between, without overlap."""
    ticks = [(moment, "moment"), (first, "dim")]
    ticks += [(first + round((moment - first) * share / 4), "dim") for share in (2, 1, 3)]
    shown: list[tuple[int, str]] = []
    for step, name in ticks:
        half = text_width(clock.label(step)) / 2
        if all(abs(x(step) - x(other)) > half + text_width(clock.label(other)) / 2 + 8 for other, _ in shown):
            shown.append((step, name))
    return shown


def draw_curve(rule: TemporalRule) -> str:
    """Return the confidence of a rule by how long ago its body held, as SVG; the axis of ages is logarithmic."""
    ages = [age for age, _ in zip(RECENCY, rule.curve, strict=False)]
    values = list(rule.curve[: len(ages)])
    while len(values) > 2 and values[-1] == 0 and values[-2] == 0:
        values.pop()
    ages = ages[: len(values)]
    most = max([*values, 1e-9])
    left, bottom, right = MARGIN + 44.0, CURVE_HEIGHT - 44.0, CURVE_WIDTH - MARGIN
    span = math.log(ages[-1]) or 1.0

    def at(age: int, value: float) -> tuple[float, float]:
        return left + (right - left - 30) * math.log(age) / span, bottom - (bottom - MARGIN) * value / most

    points = [at(age, value) for age, value in zip(ages, values, strict=True)]
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}" + "".join(
        f"H{after[0]:.1f}V{after[1]:.1f}" for _, after in pairwise(points)
    )
    dots = "".join(
        f'<circle class="moment" cx="{px:.1f}" cy="{py:.1f}" r="3">'
        f"<title>{value:.3f} after {escape(rule.clock.duration(age))}</title></circle>"
        for (px, py), age, value in zip(points, ages, values, strict=True)
    )
    grid = "".join(
        f'<line x1="{left:.0f}" y1="{at(1, value)[1]:.1f}" x2="{right:.0f}" y2="{at(1, value)[1]:.1f}"/>'
        f'<text class="dim" x="{left - 8:.0f}" y="{at(1, value)[1] + 4:.1f}" text-anchor="end">{value:.2f}</text>'
        for value in (0.0, most / 2, most)
    )
    labels, taken = "", -math.inf
    for age, (px, _) in zip(ages, points, strict=True):
        if px - taken > 44:
            labels += f'<text class="dim" x="{px:.1f}" y="{bottom + 18:.0f}" text-anchor="middle">{age:,}</text>'
            taken = px
    unit = "steps" if rule.clock.unit == "step" else f"{rule.clock.unit}s"
    name = f'<text class="dim" x="{right:.0f}" y="{bottom + 36:.0f}" text-anchor="end">{unit} after the body</text>'
    return _svg(
        CURVE_WIDTH, CURVE_HEIGHT, f"confidence by age: {rule.figures}", f'{grid}<path d="{path}"/>{dots}{labels}{name}'
    )


def _svg(width: float, height: float, title: str, content: str) -> str:
    return (
        f'<svg class="times" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{escape(title)}">{content}</svg>'
    )


def write_explanation_page(explanation: TemporalExplanation, clock: Clock, path: str | os.PathLike[str]) -> None:
    """Write an explanation as a self-contained HTML page, with its facts on a time line."""
    subject, relation, object, moment = explanation.fact
    rank = "no rule speaks for it" if explanation.rank is None else f"rank {explanation.rank}"
    facts = [fact for reason in explanation.reasons for fact in reason.facts]
    drawn = f'<div class="scroll">{draw_timeline(facts, clock, explanation.fact)}</div>' if facts else ""
    reasons = "".join(
        f"<section><h2>{escape(reason.rule.rule)}</h2><p>{escape(reason.rule.figures)}</p><ul>"
        + "".join(f"<li>{escape(' '.join(fact[:3]))}, {escape(fact[3])}</li>" for fact in reason.facts)
        + f"</ul>{draw_curve(reason.rule) if reason.rule.curve else ''}</section>"
        for reason in explanation.reasons
    )
    missing = "".join(f"<p>missing: {escape(text)}</p>" for text in explanation.missing)
    title = escape(f"{subject} {relation} {object}, {moment}")
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>body {{ margin: 0; }}{STYLES}</style></head>\n"
        f'<body><div class="anyburl"><style>{STYLE}.scroll {{ overflow-x: auto; }}</style><h1>{title}</h1>'
        f"<p>{escape(rank)}{' (stated)' if explanation.known else ''}</p>{drawn}{reasons}{missing}</div>"
        "</body></html>\n"
    )
    replace_text(Path(path), page)
