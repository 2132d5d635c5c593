"""An explanation for people, in the same words on a terminal (a tree) and as a page of HTML without scripts or fonts.

A page shows the proof of a prediction as a graph, from the subject on the left to the object on the right. What joins
the two stands between them, other facts about the subject to its left, those about the object to its right. Where
groundings or rules share an entity, they share its node, unless arrows to it would become too long to follow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from rich.text import Text
from rich.tree import Tree

from anyburl.base.writing import replace_text
from anyburl.data.names import Names
from anyburl.reasoning.drawing import Drawing, Ink, Layers, NodeKey, Show, to_svg
from anyburl.reasoning.explanation.record import ExplanationRecord, Fact, NearMiss, OpenFact, Reason
from anyburl.rules.rule import Rule, Y

ANYTHING = "?"


def no_rule_text(*, by_embedding: bool) -> str:
    """Return what stands in the place of the best rule of an answer that no rule predicts."""
    return f"by {'the embedding' if by_embedding else 'its relations and nearness'}, no rule"


def known_text(explanation: ExplanationRecord) -> str:
    """Return which splits hold the triple."""
    if not explanation.known:
        return "new: in none of train, valid and test"
    return f"known already: in {' and '.join(explanation.known)}"


def score_text(explanation: ExplanationRecord, names: Names) -> str:
    """Return score, aggregation and ranks."""
    if not explanation.n_reasons:
        ranks = [] if explanation.blocked else _rank_parts(explanation, names)
        return "; ".join(["no rule predicts it", *ranks, *_embedding_parts(explanation)])
    subject, _, object = (names.get(label) for label in explanation.triple)
    score = explanation.score or explanation.score_subject
    rules = "1 rule" if explanation.n_reasons == 1 else f"{explanation.n_reasons:,} rules"
    text = f"score {score:.3f} by {explanation.aggregation} of {rules}"
    if explanation.blocked:
        return f"{text}; not ranked: {subject} and {object} are connected already (blocked)"
    return "; ".join([text, *_rank_parts(explanation, names), *_embedding_parts(explanation)])


def _rank_parts(explanation: ExplanationRecord, names: Names) -> list[str]:
    """Return the ranks of both questions, as far as there are any."""
    subject, relation, object = (names.get(label) for label in explanation.triple)
    ranks = [
        (explanation.rank, f"({subject}, {relation}, ?)"),
        (explanation.rank_subject, f"(?, {relation}, {object})"),
    ]
    return [f"rank {rank:g} of {query}" for rank, query in ranks if rank is not None]


def _embedding_parts(explanation: ExplanationRecord) -> list[str]:
    """Return what the embedding says, if there is one."""
    if explanation.rank_embedding is None or explanation.share_embedding is None:
        return []
    share = explanation.share_embedding
    change = f"{abs(share):.1%} {'lower' if share > 0 else 'higher'}"
    return [f"rank {explanation.rank_embedding:,} of all entities by the embedding, without which it would be {change}"]


def counts_text(reason: Reason | NearMiss) -> str:
    """Return how often the rule was right."""
    about = "" if getattr(reason, "exact", True) else "about "
    return f"right {reason.support:,} of {about}{reason.predictions:,} times"


def contribution_text(reason: Reason, aggregation: str) -> str:
    """Return in words what the rule does to the score."""
    if aggregation in ("tuned", "hybrid"):
        change = f"{abs(reason.contribution):.1%} {'lower' if reason.contribution > 0 else 'higher'}"
        return f"without it the score would be {change if reason.contribution else 'the same'}"
    if reason.breaks_ties:
        return "breaks ties"
    if reason.contribution == 1:
        return "decides the score"
    if 0 < reason.contribution < 0.005:
        return "under 1% of the score"
    return f"{reason.contribution:.0%} of the score" if reason.contribution else "not counted"


def missing_words(near_miss: NearMiss) -> str:
    """Return the words before the fact that a rule lacks."""
    return "would fire if" if near_miss.rule.parts[near_miss.position].is_value else "missing"


def rest_text(explanation: ExplanationRecord) -> str:
    """Return how many reasons are not shown."""
    n = explanation.n_reasons - len(explanation.reasons)
    return f"and {n:,} more {'rule' if n == 1 else 'rules'}" if n else ""


LONGEST_LINE = 100


def to_tree(explanation: ExplanationRecord, names: Mapping[str, str] | None = None) -> Tree:
    """Return the triple with what is known of it, below it the rules, and below each rule its facts."""
    chosen = names if isinstance(names, Names) else Names(names)
    title = _fact_text(explanation.triple, chosen, "bold")
    for line in (known_text(explanation), score_text(explanation, chosen)):
        title.append(f"\n{line}", "dim")
    tree = Tree(title, guide_style="dim")
    for reason in explanation.reasons:
        _add_reason(tree, reason, explanation.aggregation, chosen)
    if rest := rest_text(explanation):
        tree.add(Text(rest, "dim"))
    if explanation.near_miss:
        _add_near_miss(tree, explanation.near_miss, chosen)
    return tree


def _add_reason(tree: Tree, reason: Reason, aggregation: str, names: Names) -> None:
    label = _rule_line(reason, names, "green", contribution_text(reason, aggregation))
    branch = tree.add(label)
    for grounding in reason.groundings:
        branch.add(_facts_text(grounding, names))
    if not reason.rule.length:
        branch.add(Text("needs no facts: the rule has no body", "dim"))


def _add_near_miss(tree: Tree, near_miss: NearMiss, names: Names) -> None:
    label = Text("the strongest rule that lacks one fact only\n", "yellow")
    branch = tree.add(label.append_text(_rule_line(near_miss, names, "yellow", "")))
    for fact in near_miss.facts:
        branch.add(Text("holds    ", "green").append_text(_fact_text(fact, names)))
    branch.add(Text(f"{missing_words(near_miss)}  ", "bold red").append_text(_fact_text(near_miss.missing, names)))


def _rule_line(reason: Reason | NearMiss, names: Names, style: str, remark: str) -> Text:
    """Return two lines: confidence and rule; type, counts and what it contributes."""
    line = Text(f"{reason.confidence:.3f}", f"bold {style}")
    line.append(f"  {reason.rule.named(names)}")
    details = [str(reason.rule.type), counts_text(reason), *([remark] if remark else [])]
    line.append(f"\n       {', '.join(details)}", "dim")
    return line


def _facts_text(facts: Sequence[OpenFact], names: Names) -> Text:
    """Return facts side by side, or below each other where that would be too long."""
    texts = [_fact_text(fact, names) for fact in facts]
    return Text(", " if sum(map(len, texts)) <= LONGEST_LINE else ",\n").join(texts)


def _fact_text(fact: OpenFact, names: Names, style: str = "") -> Text:
    subject, relation, object = (ANYTHING if label is None else names.get(label) for label in fact)
    text = Text(subject, style)
    text.append(" ─", "dim").append(relation, "cyan").append("→ ", "dim")
    return text.append(object)


Step = tuple[OpenFact, Ink]
FARTHEST = 2  # columns between two nodes of one fact


def proof_graph(reasons: Sequence[Reason], triple: Fact, show: Show = str) -> Drawing:
    """Return the facts behind one or several reasons, and what they predict; `show` turns labels into text."""
    paths: list[tuple[str, list[Step]]] = [
        (_start(reason.rule, triple), [(fact, "fact") for fact in grounding])
        for reason in reasons
        for grounding in reason.groundings
    ]
    return _Proof(triple, show).draw(paths)


def near_miss_graph(near_miss: NearMiss, triple: Fact, show: Show = str) -> Drawing:
    """Return the facts that hold, the one that is missing, and what they would predict."""
    path: list[Step] = [(fact, "fact") for fact in near_miss.facts]
    path.insert(near_miss.position, (near_miss.missing, "missing"))
    return _Proof(triple, show).draw([(_start(near_miss.rule, triple), path)])


def _start(rule: Rule, triple: Fact) -> str:
    return triple[2] if rule.variable == Y else triple[0]


def _entities(start: str, path: Sequence[Step]) -> list[str | None]:
    """Return what a path leads through, a reflexive fact being no step."""
    passed: list[str | None] = [start]
    for (subject, _, object), _ink in path:
        if subject != object:
            passed.append(object if subject == passed[-1] else subject)
    return passed


class _Proof:
    """Gives the entities of each path their columns."""

    def __init__(self, triple: Fact, show: Show) -> None:
        self.triple, self.show = triple, show
        self.is_loop = triple[0] == triple[2]
        self.layers = Layers()

    def draw(self, paths: Sequence[tuple[str, Sequence[Step]]]) -> Drawing:
        """Return the drawing of paths, each given by where it starts and its facts."""
        subject, relation, object = self.triple
        joining = [len(_entities(*path)) - 1 for path in paths if self._joins(*path)]
        self.last = 0 if self.is_loop else max([1, *joining])
        here, there = (0, subject), (self.last, object)
        self.drawn = {subject: here, object: there}
        self.layers.add_arrow(here, there, relation, "prediction")
        for start, path in sorted(
            paths, key=lambda path: not self._joins(*path)
        ):  # what is between the ends is near both
            self._add(start, path)
        title = f"{' '.join(map(self.show, self.triple))}: the facts behind it"
        return self.layers.draw(title, (here, there), self.show)

    def _joins(self, start: str, path: Sequence[Step]) -> bool:
        """Whether a path leads from one end of the triple to the other."""
        other = self.triple[0] if start == self.triple[2] else self.triple[2]
        return not self.is_loop and _entities(start, path)[-1] == other

    def _add(self, start: str, path: Sequence[Step]) -> None:
        passed, joins = _entities(start, path), self._joins(start, path)
        keys = self._shared(self._node_keys(start, passed, joins))
        depth = 0
        for (subject, relation, object), ink in path:
            here = keys[depth]
            if subject == object:
                self.layers.add_arrow(here, here, relation, ink)
                continue
            depth += 1
            there = keys[depth]
            self.layers.add_arrow(*((here, there) if subject == here[1] else (there, here)), relation, ink)

    def _node_keys(self, start: str, passed: Sequence[str | None], joins: bool) -> list[NodeKey]:
        """Return the nodes of the entities of a path."""
        from_object = start == self.triple[2] and not self.is_loop
        begin, outward = (self.last, 1) if from_object or self.is_loop else (0, -1)
        step = -outward if joins else outward
        keys: list[NodeKey] = [(begin + step * depth, entity) for depth, entity in enumerate(passed)]
        if joins:
            keys[-1] = (self.last - begin, passed[-1])
        return keys

    def _shared(self, keys: Sequence[NodeKey]) -> list[NodeKey]:
        """Return the same nodes, but for entities that are drawn already and that arrows can reach, neither within a
        column nor across more than `FARTHEST` columns: of those, the nodes that are there.
        """
        shared = list(keys[:1])
        following = [column for column, _ in keys[2:]]
        for depth, (column, entity) in enumerate(keys[1:]):
            known = None if entity is None else self.drawn.setdefault(entity, (column, entity))
            distance = 0 if known is None else abs(known[0] - shared[-1][0])
            is_free = known is not None and known[0] not in following[depth : depth + 1]
            shared.append(known if known is not None and is_free and 0 < distance <= FARTHEST else (column, entity))
        return shared


STYLE = """
.anyburl { color-scheme: light dark; --paper: #ffffff; --ink: #1d2430; --dim: #667085; --line: #98a2b3;
  --card: #f8f9fb; --edge: #dfe3ea; --node: #eef2f8; --good: #1b7f4b; --claim: #b4540a; --lack: #c22f3d;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  color: var(--ink); background: var(--paper); max-width: 1080px; margin: 0 auto; padding: 24px; }
@media (prefers-color-scheme: dark) { .anyburl { --paper: #14171d; --ink: #e6e9ef; --dim: #9aa4b5; --line: #6b7688;
  --card: #1b2029; --edge: #2e3644; --node: #263042; --good: #55c58a; --claim: #f0a35a; --lack: #ff7b86; }
  html:has(> body > .anyburl) { background: #14171d; } }
.anyburl h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
.anyburl h1 i { font-style: normal; font-weight: 400; color: var(--claim); }
.anyburl p { margin: 2px 0; color: var(--dim); overflow-wrap: anywhere; }
.anyburl section { background: var(--card); border: 1px solid var(--edge); border-radius: 12px;
  padding: 14px 18px; margin: 18px 0; }
.anyburl h2 { font-size: 15px; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
.anyburl h2 b { color: var(--good); margin-right: 10px; }
.anyburl .near h2 b { color: var(--lack); }
.anyburl code { font: 13.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-weight: 500; }
.anyburl figure { margin: 10px 0; overflow-x: auto; }
.anyburl svg { display: block; margin: 0 auto; max-width: max(100%, 700px); height: auto; }
.anyburl ol, .anyburl ul { margin: 6px 0 0; padding-left: 22px; font-size: 13.5px; overflow-wrap: anywhere; }
.anyburl li i { font-style: normal; color: var(--dim); }
.anyburl svg text { font-size: 13px; fill: var(--ink); text-anchor: middle; }
.anyburl svg .paper { fill: var(--card); stroke: none; }
.anyburl svg .node rect { fill: var(--node); stroke: var(--line); stroke-width: 1.2; }
.anyburl svg .node.end rect { stroke: var(--claim); stroke-width: 2; }
.anyburl svg .node.end text { font-weight: 600; }
.anyburl svg path { fill: none; stroke: var(--line); stroke-width: 1.6; }
.anyburl svg polygon { fill: var(--line); }
.anyburl svg .fact > text, .anyburl svg .missing > text, .anyburl svg .prediction > text { font-size: 11.5px; }
.anyburl svg .prediction path { stroke: var(--claim); stroke-width: 2.2; stroke-dasharray: 7 5; }
.anyburl svg .prediction polygon, .anyburl svg .prediction > text { fill: var(--claim); }
.anyburl svg .missing path { stroke: var(--lack); stroke-width: 2; stroke-dasharray: 2 5; stroke-linecap: round; }
.anyburl svg .missing polygon, .anyburl svg .missing > text, .anyburl .lack { fill: var(--lack); color: var(--lack); }
"""


def to_html(explanation: ExplanationRecord, names: Mapping[str, str] | None = None) -> str:
    """Return a whole page."""
    chosen = _names(names)
    title = " ".join(chosen.get(label) for label in explanation.triple)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>body {{ margin: 0; }}</style></head>\n"
        f"<body>{to_fragment(explanation, chosen)}</body></html>\n"
    )


def write_html(
    explanation: ExplanationRecord, path: str | os.PathLike[str], names: Mapping[str, str] | None = None
) -> None:
    """Write the page to a file."""
    replace_text(Path(path), to_html(explanation, names))


def to_fragment(explanation: ExplanationRecord, names: Mapping[str, str] | None = None) -> str:
    """Return the explanation as one element, with its style: for pages and notebooks."""
    chosen = _names(names)
    parts = [_reason(reason, explanation, chosen) for reason in explanation.reasons]
    if explanation.near_miss:
        parts.append(_near_miss(explanation.near_miss, explanation, chosen))
    rest = rest_text(explanation)
    return (
        f'<div class="anyburl"><style>{STYLE}</style>'
        f"<h1>{_fact(explanation.triple, chosen)}</h1>"
        f"<p>{escape(known_text(explanation))}</p><p>{escape(score_text(explanation, chosen))}</p>\n"
        f"{''.join(parts)}{f'<p>{rest}</p>' if rest else ''}</div>"
    )


def _names(names: Mapping[str, str] | None) -> Names:
    return names if isinstance(names, Names) else Names(names)


def _reason(reason: Reason, explanation: ExplanationRecord, names: Names) -> str:
    details = f"{reason.type}, {counts_text(reason)}, {contribution_text(reason, explanation.aggregation)}"
    facts = "".join(f"<li>{_facts(grounding, names)}</li>" for grounding in reason.groundings)
    drawn = to_svg(proof_graph([reason], explanation.triple, names.get))
    listed = f"<ol>{facts}</ol>" if facts else "<p>needs no facts: the rule has no body</p>" * (not reason.rule.length)
    return (
        f"<section><h2><b>{reason.confidence:.3f}</b><code>{escape(reason.rule.named(names))}</code></h2>"
        f"<p>{escape(details)}</p><figure>{drawn}</figure>{listed}</section>\n"
    )


def _near_miss(near_miss: NearMiss, explanation: ExplanationRecord, names: Names) -> str:
    details = f"{near_miss.rule.type}, {counts_text(near_miss)}"
    facts = "".join(f"<li>{_fact(fact, names)}</li>" for fact in near_miss.facts)
    drawn = to_svg(near_miss_graph(near_miss, explanation.triple, names.get))
    return (
        '<section class="near"><p>the strongest rule that lacks one fact only</p>'
        f"<h2><b>{near_miss.confidence:.3f}</b><code>{escape(near_miss.rule.named(names))}</code></h2>"
        f"<p>{escape(details)}</p><figure>{drawn}</figure>"
        f'<ul>{facts}<li class="lack">{missing_words(near_miss)}: '
        f"{_fact(near_miss.missing, names)}</li></ul></section>\n"
    )


def _facts(facts: Sequence[OpenFact], names: Names) -> str:
    return ", ".join(_fact(fact, names) for fact in facts)


def _fact(fact: OpenFact, names: Names) -> str:
    subject, relation, object = (escape(ANYTHING if label is None else names.get(label)) for label in fact)
    return f"{subject} <i>{relation}</i> {object}"
