"""The contents of an explanation, and its JSON; `explanation.py` defines how it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anyburl.rules.rule import Constant, Rule
from anyburl.rules.rule import OpenFact as OpenFact
from anyburl.rules.types import RuleType

Fact = tuple[str, str, str]
Grounding = tuple[Fact, ...]


@dataclass(frozen=True, repr=False)
class Reason:
    """A rule that predicts the triple, and some of the facts that make it fire.

    `confidence` is smoothed and weighted by rule type. `contribution` is the rule's share of the score. For noisy-or,
    it is the share of -log(1 - confidence). For max, the best rule has all of it, and the others decide between
    candidates with equally good rules (`breaks_ties`). For tuned, it is the share of the score that would be lost
    without the rule, negative if the rule speaks against the triple; if the triple ranks too low for the model, the
    fixed aggregation applies. Each grounding has one fact per body atom, in the order of the body; a fact with `self`
    is shown as the reflexive triple it stands for. `row` is the rule's row in the reasoner's rules.
    """

    rule: Rule
    confidence: float
    predictions: int
    support: int
    exact: bool
    contribution: float
    breaks_ties: bool
    groundings: tuple[Grounding, ...]
    row: int

    @property
    def type(self) -> RuleType:
        return self.rule.type

    def __str__(self) -> str:
        facts = ", ".join(" ".join(fact) for fact in self.groundings[0]) if self.groundings else ""
        return f"{self.confidence:.3f} {self.rule}" + (f" since {facts}" if facts else "")

    def __repr__(self) -> str:
        return f"Reason({str(self.rule)!r}, confidence={self.confidence:.3f}, groundings={len(self.groundings)})"

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `json.dumps`."""
        return {
            "rule": str(self.rule),
            "type": str(self.type),
            "confidence": self.confidence,
            "predictions": self.predictions,
            "support": self.support,
            "exact": self.exact,
            "contribution": self.contribution,
            "breaks_ties": self.breaks_ties,
            "groundings": [[list(fact) for fact in grounding] for grounding in self.groundings],
        }


@dataclass(frozen=True)
class NearMiss:
    """The strongest rule that lacks one fact only.

    `facts` hold, in the order of the body without the atom at `position` (from 0), which is missing. In the missing
    fact, None stands for any entity: the rule does not say which.
    """

    rule: Rule
    confidence: float
    predictions: int
    support: int
    facts: tuple[Fact, ...]
    missing: OpenFact
    position: int
    row: int

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "rule": str(self.rule),
            "type": str(self.rule.type),
            "confidence": self.confidence,
            "predictions": self.predictions,
            "support": self.support,
            "facts": [list(fact) for fact in self.facts],
            "missing": list(self.missing),
        }


@dataclass(frozen=True, repr=False)
class ExplanationRecord:
    """Why rules predict a triple, or that none does.

    `known` names the splits that state it. `rank` is the filtered rank of its object among the candidates of (s, r, ?),
    with ties counted half, and `rank_subject` that of its subject among the candidates of (?, r, o). They are None if
    no rule predicts it, or if it is `blocked` because its entities are already connected. `score` and `score_subject`
    are the scores it was ranked by; they differ only if rules without a body count. `n_reasons` counts all rules that
    fire, and `reasons` holds the best. With aggregation="hybrid", `rank_embedding` is the rank among all entities by
    the embedding alone, and `share_embedding` is the share of the score that would be lost if the embedding rated the
    triple like the median candidate.
    """

    triple: Fact
    known: tuple[str, ...]
    rank: float | None
    rank_subject: float | None
    score: float
    score_subject: float
    aggregation: str
    blocked: bool
    n_reasons: int
    reasons: tuple[Reason, ...]
    near_miss: NearMiss | None
    rank_embedding: int | None = None
    share_embedding: float | None = None

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def labels(self) -> Iterator[str]:
        """Yield the labels of all facts and rules, possibly with repetitions."""
        facts: list[OpenFact] = [
            self.triple,
            *(fact for reason in self.reasons for way in reason.groundings for fact in way),
        ]
        rules = [reason.rule for reason in self.reasons]
        if self.near_miss:
            facts += [*self.near_miss.facts, self.near_miss.missing]
            rules.append(self.near_miss.rule)
        yield from (label for fact in facts for label in fact if label is not None)
        for rule in rules:
            for part in (rule.head, *rule.parts):
                yield part.relation
                yield from (term.label for term in part.terms if isinstance(term, Constant))

    def to_json(self, names: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return plain values for `json.dumps`; with `names`, also the names of all labels that have one."""
        named = {} if not names else {"names": {label: names[label] for label in self.labels() if label in names}}
        return {
            **named,
            "triple": list(self.triple),
            "known": list(self.known),
            "rank": self.rank,
            "rank_subject": self.rank_subject,
            "score": self.score,
            "score_subject": self.score_subject,
            "aggregation": self.aggregation,
            "blocked": self.blocked,
            "n_reasons": self.n_reasons,
            "reasons": [reason.to_json() for reason in self.reasons],
            "near_miss": self.near_miss.to_json() if self.near_miss else None,
            **({} if self.rank_embedding is None else {"embedding": self._embedding_json()}),
        }

    def _embedding_json(self) -> dict[str, Any]:
        return {"rank": self.rank_embedding, "share": self.share_embedding}
