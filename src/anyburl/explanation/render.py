"""An explanation as a tree for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from rich.tree import Tree

from anyburl.explanation import words
from anyburl.explanation.record import ExplanationRecord, NearMiss, OpenFact, Reason
from anyburl.triples.names import Names

LONGEST_LINE = 100


def to_tree(explanation: ExplanationRecord, names: Mapping[str, str] | None = None) -> Tree:
    """Return the triple with what is known of it, below it the rules, and below each rule its facts."""
    chosen = names if isinstance(names, Names) else Names(names)
    title = _fact(explanation.triple, chosen, "bold")
    for line in (words.known_text(explanation), words.score_text(explanation, chosen)):
        title.append(f"\n{line}", "dim")
    tree = Tree(title, guide_style="dim")
    for reason in explanation.reasons:
        _add_reason(tree, reason, explanation.aggregation, chosen)
    if rest := words.rest_text(explanation):
        tree.add(Text(rest, "dim"))
    if explanation.near_miss:
        _add_near_miss(tree, explanation.near_miss, chosen)
    return tree


def _add_reason(tree: Tree, reason: Reason, aggregation: str, names: Names) -> None:
    label = _rule_line(reason, names, "green", words.contribution_text(reason, aggregation))
    branch = tree.add(label)
    for grounding in reason.groundings:
        branch.add(_facts(grounding, names))
    if not reason.rule.body:
        branch.add(Text("needs no facts: the rule has no body", "dim"))


def _add_near_miss(tree: Tree, near_miss: NearMiss, names: Names) -> None:
    label = Text("the strongest rule that lacks one fact only\n", "yellow")
    branch = tree.add(label.append_text(_rule_line(near_miss, names, "yellow", "")))
    for fact in near_miss.facts:
        branch.add(Text("holds    ", "green").append_text(_fact(fact, names)))
    branch.add(Text("missing  ", "bold red").append_text(_fact(near_miss.missing, names)))


def _rule_line(reason: Reason | NearMiss, names: Names, style: str, remark: str) -> Text:
    """Return two lines: confidence and rule; type, counts and what it contributes."""
    line = Text(f"{reason.confidence:.3f}", f"bold {style}")
    line.append(f"  {words.rule_text(reason.rule, names)}")
    details = [str(reason.rule.type), words.counts_text(reason), *([remark] if remark else [])]
    line.append(f"\n       {', '.join(details)}", "dim")
    return line


def _facts(facts: Sequence[OpenFact], names: Names) -> Text:
    """Return facts side by side, or below each other where that would be too long."""
    texts = [_fact(fact, names) for fact in facts]
    return Text(", " if sum(map(len, texts)) <= LONGEST_LINE else ",\n").join(texts)


def _fact(fact: OpenFact, names: Names, style: str = "") -> Text:
    subject, relation, object = (words.ANYTHING if label is None else names.get(label) for label in fact)
    text = Text(subject, style)
    text.append(" ─", "dim").append(relation, "cyan").append("→ ", "dim")
    return text.append(object)
