"""An explanation as a tree for the terminal.

The wording of explanations, shared by the terminal and HTML pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from rich.tree import Tree

from anyburl.data.names import Names
from anyburl.reasoning.explanation.record import ExplanationRecord, NearMiss, OpenFact, Reason
from anyburl.rules.rule import Rule

ANYTHING = "?"


def rule_text(rule: Rule, names: Names) -> str:
    """Return a rule with the names of its relations and constants."""
    return rule.text(names.get, names.get)


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
    """Return what is said of the fact that a rule lacks."""
    return "would fire if" if near_miss.rule.parts[near_miss.place].is_value else "missing"


def rest_text(explanation: ExplanationRecord) -> str:
    """Return how many reasons are not shown."""
    n = explanation.n_reasons - len(explanation.reasons)
    return f"and {n:,} more {'rule' if n == 1 else 'rules'}" if n else ""


LONGEST_LINE = 100


def to_tree(explanation: ExplanationRecord, names: Mapping[str, str] | None = None) -> Tree:
    """Return the triple with what is known of it, below it the rules, and below each rule its facts."""
    chosen = names if isinstance(names, Names) else Names(names)
    title = _fact(explanation.triple, chosen, "bold")
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
        branch.add(_facts(grounding, names))
    if not reason.rule.length:
        branch.add(Text("needs no facts: the rule has no body", "dim"))


def _add_near_miss(tree: Tree, near_miss: NearMiss, names: Names) -> None:
    label = Text("the strongest rule that lacks one fact only\n", "yellow")
    branch = tree.add(label.append_text(_rule_line(near_miss, names, "yellow", "")))
    for fact in near_miss.facts:
        branch.add(Text("holds    ", "green").append_text(_fact(fact, names)))
    branch.add(Text(f"{missing_words(near_miss)}  ", "bold red").append_text(_fact(near_miss.missing, names)))


def _rule_line(reason: Reason | NearMiss, names: Names, style: str, remark: str) -> Text:
    """Return two lines: confidence and rule; type, counts and what it contributes."""
    line = Text(f"{reason.confidence:.3f}", f"bold {style}")
    line.append(f"  {rule_text(reason.rule, names)}")
    details = [str(reason.rule.type), counts_text(reason), *([remark] if remark else [])]
    line.append(f"\n       {', '.join(details)}", "dim")
    return line


def _facts(facts: Sequence[OpenFact], names: Names) -> Text:
    """Return facts side by side, or below each other where that would be too long."""
    texts = [_fact(fact, names) for fact in facts]
    return Text(", " if sum(map(len, texts)) <= LONGEST_LINE else ",\n").join(texts)


def _fact(fact: OpenFact, names: Names, style: str = "") -> Text:
    subject, relation, object = (ANYTHING if label is None else names.get(label) for label in fact)
    text = Text(subject, style)
    text.append(" ─", "dim").append(relation, "cyan").append("→ ", "dim")
    return text.append(object)
