"""A theory as a self-contained HTML page, with a picture of which relations follow from which.

The page has no scripts or fonts; it is for the screen, light and dark, and for print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from anyburl.base.errors import counted
from anyburl.reasoning.drawing import Drawing, Layers, NodeKey, to_svg
from anyburl.reasoning.explanation.render import STYLE
from anyburl.tools.report.record import (
    HOW_TO_READ,
    Law,
    Line,
    Link,
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
from anyburl.tools.report.words import IDEAS, Idea, Word

MOST_RELATIONS, MOST_LINKS, MOST_COLUMNS = 12, 14, 3
ROUNDS = 8  # of sorting columns by what their relations are joined with


def draw_schema(theory: Theory) -> Drawing | None:
    """Return the relations as nodes, with an arrow to each that follows from another; None if nothing follows."""
    links = choose_links(theory.links)
    if not links:
        return None
    columns = _columns(links)
    texts = {link.idea.name: link.idea.name for link in links}
    layers = Layers()
    for relation in _sorted_relations(links, columns):
        layers.add_node((columns[relation], relation))
    for link in links:
        ends: list[NodeKey] = [(columns[link.source], link.source), (columns[link.target], link.target)]
        layers.add_arrow(ends[0], ends[1], link.idea.name, "fact" if link.facts < links[0].facts / 4 else "prediction")
    targets = [(columns[link.target], link.target) for link in links]
    return layers.draw(
        "Which relations follow from which", targets, lambda text: texts.get(text) or theory.wording.relation(text)
    )


def choose_links(links: Sequence[Link]) -> list[Link]:
    """Return the links that explain most facts, among few relations; of two that are each other's backs, one."""
    chosen: list[Link] = []
    relations: set[str] = set()
    for link in links:
        is_back = any((one.source, one.target) == (link.target, link.source) for one in chosen)
        both = relations | {link.source, link.target}
        if (is_back and link.source != link.target) or len(both) > MOST_RELATIONS:
            continue
        if max(_columns([*chosen, link]).values()) >= MOST_COLUMNS:
            continue
        chosen.append(link)
        relations = both
        if len(chosen) == MOST_LINKS:
            break
    return chosen


def _columns(links: Sequence[Link]) -> dict[str, int]:
    """Return a column for each relation, right of those that it follows from, as far as no circle is closed."""
    before: dict[str, set[str]] = {}
    for link in links:
        for relation in (link.source, link.target):
            before.setdefault(relation, set())
        if link.source != link.target and not _leads(before, link.target, link.source):
            before[link.target].add(link.source)
    columns: dict[str, int] = {}

    def column(relation: str) -> int:
        if relation not in columns:
            columns[relation] = max((column(one) + 1 for one in before[relation]), default=0)
        return columns[relation]

    return {relation: column(relation) for relation in before}


def _leads(before: dict[str, set[str]], source: str, target: str) -> bool:
    """Return whether a way leads from one relation to another."""
    waiting, seen = [target], set[str]()
    while waiting:
        relation = waiting.pop()
        if relation == source:
            return True
        if relation not in seen:
            seen.add(relation)
            waiting += before[relation]
    return False


def _sorted_relations(links: Sequence[Link], columns: dict[str, int]) -> list[str]:
    """Return the relations, those of a column in an order that lets few arrows cross: by the mean height of those that
    they are joined with.
    """
    joined: dict[str, list[str]] = {relation: [] for relation in columns}
    for link in links:
        if link.source != link.target:
            joined[link.source].append(link.target)
            joined[link.target].append(link.source)
    order = list(columns)
    for _ in range(ROUNDS):
        heights = _heights(order, columns)
        means = {one: sum(heights[other] for other in joined[one]) / len(joined[one]) for one in order if joined[one]}
        order.sort(key=lambda one: means.get(one, heights[one]))
    return order


def _heights(order: Sequence[str], columns: dict[str, int]) -> dict[str, float]:
    """Return how far down each relation stands, columns being centred."""
    heights: dict[str, float] = {}
    for column in set(columns.values()):
        stacked = [one for one in order if columns[one] == column]
        heights |= {one: position - (len(stacked) - 1) / 2 for position, one in enumerate(stacked)}
    return heights


TAGS = {"relation": "i", "entity": "b", "variable": "var"}

LOOKS = """
.anyburl.theory { max-width: 940px; font-size: 15.5px; }
.anyburl.theory.in-page { max-width: none; margin: 0; padding: 0; background: none; }
.theory h1 { font-size: 28px; }
.theory .lead { font-size: 17px; margin: 6px 0 18px; }
.theory p, .theory li, .theory td { color: var(--ink); }
.theory .dim, .theory p.dim, .theory td.dim { color: var(--dim); }
.theory h2 { font-size: 20px; margin: 0 0 4px; }
.theory h2 a { color: inherit; text-decoration: none; }
.theory h3 { font-size: 13px; font-weight: 600; margin: 18px 0 4px; letter-spacing: .02em; color: var(--dim); }
.theory h3 span { font-weight: 400; }
.theory h4 { font-size: 15px; margin: 14px 0 4px; }
.theory i { font-style: normal; color: var(--claim); }
.theory var { font-style: italic; font-weight: 600; }
.theory b { font-weight: 600; }
.theory ul { margin: 4px 0 0; padding-left: 20px; }
.anyburl.theory li { font-size: 15px; margin: 3px 0; }
.anyburl.theory li i { color: var(--claim); }
.theory .small { font-size: 13.5px; }
.theory .small, .theory .small i { color: var(--dim); }
.theory .law { border-left: 3px solid var(--edge); padding: 2px 0 2px 12px; margin: 8px 0 12px; break-inside: avoid; }
.theory .law > p { margin: 2px 0; }
.theory .small b { font-weight: 500; color: var(--ink); }
.theory .chance { white-space: nowrap; font-weight: 600; color: var(--good); }
.theory .chance.some { color: var(--claim); }
.theory .chance.few { color: var(--lack); }
.anyburl.theory svg.bar { display: inline-block; max-width: none; border-radius: 4px; margin: 0 6px 0 0;
  vertical-align: 1px; }
.theory .bar rect { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.theory .bar .track { fill: var(--edge); }
.theory .bar .fill { fill: var(--good); }
.theory table { border-collapse: collapse; width: 100%; font-size: 14px; margin-top: 8px; }
.theory th { text-align: left; font-weight: 500; color: var(--dim); border-bottom: 1px solid var(--edge); }
.theory th, .theory td { padding: 4px 12px 4px 0; vertical-align: top; overflow-wrap: anywhere; }
.theory td:first-child { min-width: 7em; }
.theory td.number { text-align: right; white-space: nowrap; }
.theory td.share { white-space: nowrap; }
.theory td a { color: inherit; }
.theory figure { margin: 8px 0; overflow-x: auto; }
.theory figure svg { max-width: 100%; height: auto; }
.theory svg .edge.prediction path { stroke-dasharray: none; }
@media (max-width: 640px) {
  .theory section { overflow-x: auto; }
  .theory td.share, .theory .chance { white-space: normal; }
  .theory th, .theory td { padding-right: 6px; }
}
@media print {
  @page { margin: 16mm; }
  .anyburl.theory { --paper: #ffffff; --ink: #1d2430; --dim: #667085; --line: #98a2b3; --card: #ffffff; --edge: #dfe3ea;
    --node: #eef2f8; --good: #1b7f4b; --claim: #b4540a; --lack: #c22f3d; color-scheme: light; max-width: none;
    padding: 0; font-size: 10.5pt; background: #ffffff; }
  html:has(> body > .anyburl.theory) { background: #ffffff; }
  .theory section { border: 0; padding: 0; }
  .theory h2, .theory h3, .theory h4 { break-after: avoid; }
  .theory tr, .theory figure { break-inside: avoid; }
}
"""


THEORY_STYLE = STYLE + LOOKS

Address = Callable[[str], str]
"""Returns the address of all rules of a relation."""


def theory_html(theory: Theory) -> str:
    """Return a whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>What {escape(theory.name)} knows</title><style>body {{ margin: 0; }}</style></head>\n"
        f"<body>{theory_fragment(theory)}</body></html>\n"
    )


def theory_fragment(theory: Theory) -> str:
    """Return the theory as one element, with its style: for pages and notebooks."""
    return f'<div class="anyburl theory"><style>{THEORY_STYLE}</style>{theory_parts(theory)}</div>'


def theory_parts(theory: Theory, address: Address | None = None) -> str:
    """Return the contents of the element; with `address`, relations link to all their rules."""
    sections = "".join(_section(relation, theory, address) for relation in theory.relations[: theory.n_sections])
    return (
        f"<h1>What {escape(theory.name)} knows</h1>"
        f'<p class="lead">{escape(opening_text(theory))}</p>\n'
        f"{_front(theory)}{_picture(theory)}{_glance(theory, address)}{sections}"
    )


def _front(theory: Theory) -> str:
    parts = [f"<h4>{escape(title)}</h4><ul>{''.join(map(_item, items))}</ul>" for title, items in front_parts(theory)]
    return (
        f'<section class="front"><h2>In short</h2>{"".join(parts)}<p class="dim">{escape(HOW_TO_READ)}</p></section>\n'
    )


def _item(line: Line) -> str:
    held = f" {_chance(line.law)}" if line.law else ""
    remark = f'<p class="small">{marked(line.remark)}</p>' if line.remark else ""
    return f"<li>{marked(line.words)}{held}{remark}</li>"


def _picture(theory: Theory) -> str:
    drawing = draw_schema(theory)
    if drawing is None:
        return ""
    drawn = {link.idea for link in choose_links(theory.links)}
    ideas = "; ".join(f"<b>{escape(idea.name)}</b>: {escape(idea.meaning)}" for idea in IDEAS if idea in drawn)
    return (
        '<section><h2>Which relations follow from which</h2><p class="dim">An arrow leads from a relation to '
        "one that follows from it; the word beside it says how. The arrows that explain most facts are drawn, the "
        "strongest in colour.</p>"
        f'<figure>{to_svg(drawing)}</figure><p class="small">{ideas}.</p></section>\n'
    )


def _glance(theory: Theory, address: Address | None) -> str:
    rows = "".join(
        _glance_row(theory, position, relation, address) for position, relation in enumerate(theory.relations)
    )
    return (
        "<section><h2>All relations at a glance</h2><table><thead><tr><th>relation</th><th>facts</th>"
        f"<th>explained by laws</th><th>its main law</th></tr></thead><tbody>{rows}</tbody></table></section>\n"
    )


def _glance_row(theory: Theory, position: int, relation: RelationTheory, address: Address | None) -> str:
    name = escape(theory.wording.relation(relation.label))
    target = f"#{anchor(position)}" if position < theory.n_sections else address and address(relation.label)
    shown = f'<a href="{escape(target)}">{name}</a>' if target else name
    law = glance_law(relation)
    main_law = f"{marked(law.words)} {_chance(law)}" if law else '<span class="dim">no law found</span>'
    return (
        f'<tr><td title="{escape(relation.label)}">{shown}</td><td class="number">{relation.n_facts:,}</td>'
        f'<td class="share">{_bar(relation)}{escape(relation.explained_chance)}</td><td>{main_law}</td></tr>'
    )


def anchor(position: int) -> str:
    """Return the name of a section within the page."""
    return f"relation-{position + 1}"


def _section(relation: RelationTheory, theory: Theory, address: Address | None) -> str:
    position, name = theory.relations.index(relation), escape(theory.wording.relation(relation.label))
    values = values_words(relation, theory.wording)
    groups = "".join(_group(idea, laws, relation, theory) for idea, laws in relation.ideas)
    return (
        f'<section id="{anchor(position)}"><h2 title="{escape(relation.label)}">{name}</h2>'
        f"<p>{escape(size_text(relation))} {marked(values)}</p>"
        f'<p class="dim">For example: {"; ".join(marked(theory.wording.fact(fact)) for fact in relation.facts)}.</p>'
        f"<p>{_bar(relation)}{escape(remark_on(relation))}</p>{groups}{_unexplained(relation, theory)}"
        f"{_all_rules(relation, address)}</section>\n"
    )


def _all_rules(relation: RelationTheory, address: Address | None) -> str:
    if address is None:
        return ""
    target, n_rules = escape(address(relation.label)), counted(relation.n_rules, "rule")
    return f'<p class="dim"><a href="{target}">{n_rules}</a> in all.</p>'


def _group(idea: Idea, laws: Iterable[Law], relation: RelationTheory, theory: Theory) -> str:
    shown = "".join(_law(law, relation, theory) for law in laws)
    return f"<h3>{escape(idea.title)} <span>· {escape(idea.meaning)}</span></h3>{shown}"


def _law(law: Law, relation: RelationTheory, theory: Theory) -> str:
    cases = "".join(
        f'<p class="small"><b>{escape(title)}:</b> {"; ".join(map(marked, sentences))}.</p>'
        for title, sentences in law_lines(law, relation, theory.wording)
    )
    return (
        f'<div class="law"><p title="{escape(law.text)}">{marked(law.words)}</p>'
        f'<p class="small">{_chance(law)} · {escape(explains_text(law, relation))}</p>{cases}</div>'
    )


def _chance(law: Law) -> str:
    kind = "" if law.share >= 0.75 else " some" if law.share >= 0.4 else " few"
    return f'<span class="chance{kind}">{escape(law.chance)}</span>'


def _bar(relation: RelationTheory) -> str:
    share = round(100 * relation.explained / max(1, relation.looked_at))
    return (
        '<svg class="bar" width="90" height="8" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="track" width="100" height="8"/><rect class="fill" width="{share}" height="8"/></svg>'
    )


def _unexplained(relation: RelationTheory, theory: Theory) -> str:
    if not relation.unexplained:
        return ""
    facts = "; ".join(marked(theory.wording.fact(fact)) for fact in relation.unexplained)
    return f'<p class="dim">Not explained, for example: {facts}.</p>'


def marked(words: Iterable[Word]) -> str:
    """Return words as HTML, with relations, entities and variables marked."""
    return "".join(_marked(word) for word in words)


def _marked(word: Word) -> str:
    tag, text = TAGS.get(word.role), escape(word.text)
    return f"<{tag}>{text}</{tag}>" if tag else text
