"""The filters of `anyburl rules`, which other commands take as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.cli.measuring import Measuring
from anyburl.errors import DataError, InvalidOptionError

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.names import Names
    from anyburl.triples.vocabulary import Vocabulary

MEASURES = ("pca-confidence", "head-coverage", "lift")
ORDERS = ("confidence", "support", "value", "predictions", *MEASURES)
SMOOTHING = 5
MEASURED = "Measures that take the data"

Relation = Annotated[str | None, typer.Option(help="Rules that predict this relation.")]
Type = Annotated[str | None, typer.Option(metavar="B|Uc|Ud|Z", help="Rules of this type.")]
Length = Annotated[int | None, typer.Option(min=0, help="Rules with this many body atoms.")]
MinConfidence = Annotated[float | None, typer.Option(min=0, max=1, help="Lowest confidence.")]
MinSupport = Annotated[int | None, typer.Option(min=0, help="Minimum number of correct predictions.")]
Contains = Annotated[str | None, typer.Option(metavar="TERM", help="Rules with this entity or relation anywhere.")]
Sort = Annotated[
    str, typer.Option(metavar="|".join(ORDERS), help="What to sort by, highest first; value is support x confidence.")
]
Smoothing = Annotated[
    int,
    typer.Option(
        min=0,
        help="Sort by confidence as support / (predictions + SMOOTHING), so that 500 of 510 comes before "
        "2 of 2. The confidence shown is not smoothed.",
    ),
]
MinPcaConfidence = Annotated[
    float | None, typer.Option(min=0, max=1, help="Lowest PCA confidence.", rich_help_panel=MEASURED)
]
MinHeadCoverage = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Lowest head coverage; AMIE's default is 0.01.", rich_help_panel=MEASURED),
]
MinLift = Annotated[float | None, typer.Option(min=0, help="Lowest lift.", rich_help_panel=MEASURED)]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which rules, and which come first."""

    relation: str | None
    type: str | None
    length: int | None
    min_confidence: float | None
    min_support: int | None
    contains: str | None
    sort: str
    smoothing: int
    least: dict[str, float | None]
    """Lowest values of measures; PCA confidence comes last: it is counted, for as few rules as possible."""

    def __post_init__(self) -> None:
        if self.sort not in ORDERS:
            raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", self.sort)

    def matching(self, rules: RuleSet, names: Names, measuring: Measuring) -> RuleSet:
        """Return the rules that pass, with the measures that this took."""
        vocabulary = rules.vocabulary
        chosen: dict[str, Any] = {
            "type": self.type,
            "relation": self.relation and names.label_of(self.relation, vocabulary.relations, "relation"),
            "min_confidence": self.min_confidence,
            "min_support": self.min_support,
            "contains": self.contains and _term(self.contains, vocabulary, names),
            "length": self.length,
        }
        passing = rules.filter(**chosen)
        for name, value in self.least.items():
            if value is not None or self.sort == name.replace("_", "-"):
                passing = measuring.add(passing, [name]).filter(**{f"min_{name}": value})  # type: ignore[arg-type]
        return passing

    def best(self, matching: RuleSet, top: int | None) -> RuleSet:
        """Return the best of rules that pass, or all of them, best first."""
        n_rules = len(matching) if top is None else top
        return matching.top(n_rules, self.sort, smoothing=self.smoothing)  # type: ignore[arg-type]


def _term(text: str, vocabulary: Vocabulary, names: Names) -> str:
    """Return the label of an entity or of a relation that someone means."""
    if max(vocabulary.encode_relations([text])[0], vocabulary.encode_entities([text])[0]) >= 0:
        return text
    relation = names.label_of(text, vocabulary.relations, "relation")
    entity = names.label_of(text, vocabulary.entities, "entity")
    if text not in (relation, entity) and relation != entity:
        raise DataError(f"{text!r} is ambiguous: it may mean the relation {relation} or the entity {entity}")
    return entity if relation == text else relation
