"""Prolog, executed by SWI-Prolog."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from exported import Exported, Fact, exports, text_of
from hypothesis import given, settings

PROGRAM = """
:- initialization(main, main).
:- dynamic fact/3.
main :-
    current_prolog_flag(argv, Arguments), append(_, [Rules, Facts], Arguments),
    consult(Rules), consult(Facts),
    forall(fact(S, R, O), (maplist(atom_codes, [A, B, C], [S, R, O]), assertz(triple(A, B, C)))),
    forall(answer(N, A, B, C), (maplist(atom_codes, [A, B, C], Codes), format("[~w,~w]~n", [N, Codes]))).
answer(N, A, B, C) :- nth_clause(predicted(_, _, _), N, Clause), clause(predicted(A, B, C), Body, Clause), call(Body).
"""
"""Facts and answers are lists of character codes, so that no quoting but that of the rules matters."""

pytestmark = pytest.mark.skipif(
    shutil.which("swipl") is None, reason="SWI-Prolog is not installed: apt-get install swi-prolog-nox"
)


def in_prolog(triples: Sequence[Fact], rules: str, n_rules: int) -> list[set[Fact]]:
    """Return what each clause of a program predicts."""
    facts = "".join(f"fact({', '.join(str([*map(ord, label)]) for label in triple)}).\n" for triple in triples)
    with tempfile.TemporaryDirectory() as folder:
        files = {"program.pl": PROGRAM, "rules.pl": rules, "facts.pl": facts}
        paths = [Path(folder) / name for name in files]
        for path, text in zip(paths, files.values(), strict=True):
            path.write_text(text, "utf-8", newline="\n")
        program, *arguments = map(str, paths)
        command = ["swipl", program, "--", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, ""), rules
    found: list[set[Fact]] = [set() for _ in range(n_rules)]
    for number, codes in map(json.loads, done.stdout.splitlines()):
        subject, relation, object = ("".join(map(chr, label)) for label in codes)
        found[number - 1].add((subject, relation, object))
    return found


@settings(max_examples=15)
@given(case=exports(max_rules=20))
def test_clauses_predict_what_the_reference_says(case: Exported) -> None:
    for object_identity in (True, False):
        text = text_of(case.rules, "prolog", object_identity=object_identity)
        expected = [case.expected(number, object_identity) for number in range(len(case.rules))]
        assert in_prolog(case.triples, text, len(case.rules)) == expected
