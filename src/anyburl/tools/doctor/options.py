"""What to check, and for how long. Imports no compiler, so the command line can take its choices from here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from anyburl.base import checking
from anyburl.base.checking import Options, option
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
    "conflicts": "possible errors: facts that strong rules contradict, with the reasons for both sides",
    "suspects": "facts to check by hand, the most suspicious first",
    "values": "numbers and dates that contradict the order, the range or the unit of others",
    "degrees": "how many facts entities have: hubs and isolated facts",
    "literals": "relations whose objects are texts, versions, addresses or numbers rather than entities",
    "ambiguous": "labels that seem to stand for two sorts of things",
    "labels": "labels that other tools cannot read or tell apart",
}
"""The checks, in the order of the report."""
TIME_CHECKS = {
    "times": "how times are counted, and how many facts a moment has",
    "future": "facts of train and valid that are not before those of valid and test",
    "gaps": "stretches of time without any fact",
    "ending": "relations whose facts end, or end early",
    **{name: CHECKS[name] for name in ("unseen", "reflexive", "degrees", "labels")},
}
"""The checks of facts with times."""
RULES = "Rules to judge facts by"


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Options of an examination, checked on creation. Without given rules, rules are learned from train."""

    top: int = option(10, checking.whole, 1, help="Number of examples per finding.", metavar="N")
    per_relation: int = option(
        3, checking.whole, 1, help="Number of examples per relation of possible errors and suspects.", metavar="N"
    )
    relation: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="Look for possible errors and suspects in this relation only.",
        metavar="RELATION",
    )
    types: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="The relation that states the types of entities. Defaults to rdf:type; without types, entities are judged "
        "by their relations.",
        metavar="RELATION",
    )
    seconds: float = option(
        5.0,
        checking.real,
        0,
        checking.MOST_SECONDS,
        help="How long to learn rules from train, without --rules.",
        panel=RULES,
    )
    threads: int | None = checking.threads_option()
    seed: int = option(0, checking.whole, 0, help="Seed of all random numbers.", metavar="N")


class DoctorKeywords(TypedDict, total=False):
    """The fields of `DoctorOptions` as keywords."""

    top: int
    per_relation: int
    relation: str | None
    types: str | None
    seconds: float
    threads: int | None
    seed: int


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of checks; others are refused."""
    chosen = tuple(names)
    known = {**CHECKS, **TIME_CHECKS}
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InvalidOptionError("fail_on", f"some of {', '.join(known)}", ",".join(unknown or chosen))
    return chosen
