"""What to check, and for how long. Imports no compiler, so the command line can take its choices from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from anyburl.base import checking
from anyburl.base.errors import InvalidOptionError

CHECKS = {
    "leakage": "valid and test facts that can be read off train",
    "unseen": "entities and relations of valid and test that train lacks",
    "inverse": "relations that state the same in the other direction",
    "symmetric": "relations that hold in both directions",
    "duplicate": "relations that state the same, or nearly so",
    "reflexive": "facts that relate an entity to itself",
    "functional": "relations with one answer to nearly every question, and the facts that break this",
    "types": "facts whose subject or object does not fit the relation",
    "suspects": "facts to check by hand, the most suspicious first",
    "degrees": "how many facts entities have: hubs and isolated facts",
    "labels": "labels that other tools cannot read or tell apart",
}
"""The checks, in the order of the report."""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Options of an examination, checked on creation.

    Without given rules, rules are learned from train for `seconds` with `seed`; 0 means no rules. `types` is the
    relation that states the types of entities, by default rdf:type; without such a relation, entities are judged by
    their relations. Each finding has up to `top` examples.
    """

    seconds: float = 5.0
    types: str | None = None
    top: int = 10
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        checking.real("seconds", self.seconds, 0, checking.MOST_SECONDS)
        checking.whole("top", self.top, 1)
        checking.whole("seed", self.seed, 0)
        checking.threads(self.threads)
        if self.types is not None and not isinstance(self.types, str):
            raise InvalidOptionError("types", "the label of a relation", self.types)


class DoctorKeywords(TypedDict, total=False):
    """The fields of `DoctorOptions` as keywords."""

    seconds: float
    types: str | None
    top: int
    seed: int
    threads: int | None


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of checks; others are refused."""
    chosen = tuple(names)
    unknown = [name for name in chosen if name not in CHECKS]
    if unknown or not chosen:
        raise InvalidOptionError("fail_on", f"some of {', '.join(CHECKS)}", ",".join(unknown or chosen))
    return chosen
