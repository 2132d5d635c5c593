"""Datalog, read back as Soufflé's scanner does and evaluated; by Soufflé itself where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from exported import Exported, Fact, check_each, exports
from hypothesis import assume, given, settings

TERM = r'[A-Z_]|"(?:[^"\\]|\\.)*"'
ARGUMENTS = rf"\(({TERM}), ({TERM}), ({TERM})\)"
ESCAPES = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
"""Some of those that Soufflé knows; any other is an error."""

Binding = dict[str, str]


def plain_text(term: str) -> str:
    return re.sub(r"\\(.)", lambda found: ESCAPES[found[1]], term[1:-1], flags=re.DOTALL)


def matched(pattern: Sequence[str], fact: Fact, bound: Binding) -> Binding | None:
    """Return what variables stand for if an atom matches a fact."""
    bound = dict(bound)
    for term, label in zip(pattern, fact, strict=True):
        if term.startswith('"') and plain_text(term) != label:
            return None
        if not term.startswith('"') and term != "_" and bound.setdefault(term, label) != label:
            return None
    return bound


def value(term: str, bound: Binding) -> str:
    return plain_text(term) if term.startswith('"') else bound[term]


def evaluated(triples: Sequence[Fact], program: str) -> Iterator[Fact]:
    """Evaluate a program of one clause, in the most obvious way."""
    *_, clause = program.split("\n\n")
    head, *goals = clause.removesuffix("\n").split("\n")[1:]
    bindings: list[Binding] = [{}]
    for goal in goals:
        if atom := re.fullmatch(rf"  triple{ARGUMENTS}[,.]", goal):
            tried = (matched(atom.groups(), fact, bound) for bound in bindings for fact in triples)
            bindings = [bound for bound in tried if bound is not None]
        else:
            unequal = re.fullmatch(rf"  ({TERM}) != ({TERM})[,.]", goal)
            assert unequal is not None, goal
            bindings = [bound for bound in bindings if value(unequal[1], bound) != value(unequal[2], bound)]
    predicted = re.fullmatch(rf"predicted{ARGUMENTS} :-", head)
    assert predicted is not None, head
    for bound in bindings:
        yield value(predicted[1], bound), value(predicted[2], bound), value(predicted[3], bound)


@given(exports())
def test_a_clause_says_what_the_reference_says(case: Exported) -> None:
    check_each(case, "datalog", evaluated)


def in_souffle(triples: Sequence[Fact], program: str) -> list[Fact]:
    with tempfile.TemporaryDirectory() as folder:
        rules, facts = Path(folder) / "rules.dl", Path(folder) / "triple.facts"
        rules.write_text(program, "utf-8")
        facts.write_text("".join("\t".join(triple) + "\n" for triple in triples), "utf-8")
        subprocess.run(["souffle", "-w", "-F", folder, "-D", folder, str(rules)], check=True)
        lines = (Path(folder) / "predicted.csv").read_text("utf-8").split("\n")[:-1]
    return [(subject, relation, object) for subject, relation, object in (line.split("\t") for line in lines)]


@pytest.mark.skipif(shutil.which("souffle") is None, reason="Soufflé is not installed")
@settings(max_examples=20)
@given(case=exports(max_rules=2))
def test_souffle_says_what_the_reference_says(case: Exported) -> None:
    """Files of facts have no room for line breaks and tabs."""
    assume(not re.search(r"[\t\r\n]", "".join([*case.rules.vocabulary.entities, *case.rules.vocabulary.relations])))
    check_each(case, "datalog", in_souffle)
