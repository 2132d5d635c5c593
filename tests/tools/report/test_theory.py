"""Reports: which rules are laws, what they are called, and how they are said."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import anyburl
from anyburl import Dataset, RuleError, RuleSet
from anyburl.bodies.rescore import base_rates
from anyburl.data.names import Names
from anyburl.graph.stored import graph_of
from anyburl.tools.options import ReportOptions
from anyburl.tools.report.files import theory_markdown
from anyburl.tools.report.page import theory_html
from anyburl.tools.report.record import Theory, law_lines, opening_text
from anyburl.tools.report.theory import added_values, commonness, make_theory
from anyburl.tools.report.words import Wording, chance, find_idea, is_noun, plain_text, unique_names


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [
        (54, 54, "all 54"),
        (7, 8, "7 of 8"),
        (0, 8, "none"),
        (88, 100, "9 of 10"),
        (5, 100, "1 of 10"),
        (999, 1000, "99 of 100"),
        (97, 100, "97 of 100"),
        (1, 1000, "fewer than 1 of 100"),
    ],
)
def test_chances_are_said_as_people_say_them(part: int, whole: int, said: str) -> None:
    assert chance(part, whole) == said


@pytest.mark.parametrize(
    ("rule", "idea", "sentence"),
    [
        ("borders(X,Y) <= borders(Y,X)", "symmetric", "If A borders B, then B borders A."),
        ("capital_of(X,Y) <= capital(Y,X)", "inverse", "If the capital of A is B, then B capital of A."),
        (
            "speaks(X,Y) <= official_language(X,Y)",
            "implied",
            "If the official language of A is B, then A speaks B.",
        ),
        ("in(X,Y) <= in(X,A), in(A,Y)", "chain", "If A in B and B in C, then A in C."),
        (
            "time_zone(X,Y) <= country(X,A), time_zone(A,Y)",
            "inherited",
            "A thing has the same time zone as its country.",
        ),
        (
            "time_zone(X,Y) <= state(X,A), state(B,A), time_zone(B,Y)",
            "shared",
            "Things with the same state have the same time zone.",
        ),
        (
            "nationality(X,Y) <= birthplace(X,A), country(A,Y)",
            "composition",
            "If the birthplace of A is B and the country of B is C, then the nationality of A is C.",
        ),
        ("gender(X,male) <= film(X,A)", "typical", "If A has any film, then the gender of A is male."),
        ("gender(X,male) <= film(A,X)", "typical", "If A is the film of something, then the gender of A is male."),
        (
            "genre(X,Comedy) <= genre(X,Romantic_comedy)",
            "together",
            "If the genre of A is Romantic comedy, then the genre of A is Comedy.",
        ),
        ("borders(X,me_myself_i) <= in(X,A)", "typical", "If A in something, then A borders itself."),
    ],
)
def test_rules_are_said_in_plain_words(rule: str, idea: str, sentence: str) -> None:
    parsed = anyburl.parse_rule(rule)
    assert find_idea(parsed).name == idea
    assert plain_text(Wording([], Names()).rule(parsed)) == sentence


def test_relations_have_names_of_their_own() -> None:
    named = {
        "/film/film/genre": "film genre",
        "/music/artist/genre": "artist genre",
        "/people/person/spouse_s": "spouse",
        "/a/b/won./c/d/prize": "prize (won)",
        "/a/b/held./c/d/prize": "prize (held)",
        "/a/actor/roles./c/d/film": "film (actor: roles)",
        "/a/singer/roles./c/d/film": "film (singer: roles)",
        "in_state": "in state",
    }
    assert unique_names(list(named), Names()) == named
    assert unique_names(["r", "s"], Names({"r": "likes", "s": "likes"})) == {"r": "r", "s": "s"}


@pytest.mark.parametrize(("name", "expected"), [("capital", True), ("contains", False), ("sports team", True)])
def test_nouns_are_told_from_verbs(name: str, expected: bool) -> None:
    assert is_noun(name) is expected


@pytest.fixture(scope="module")
def theory() -> Theory:
    """Of a graph with a symmetric relation, and values that are handed on but for one."""
    names = [f"p{number}" for number in range(24)]
    married = [(one, "married_to", other) for one, other in zip(names[:12], names[12:], strict=True)]
    facts = [*married, *((other, relation, one) for one, relation, other in married)]
    facts += [(name, "city", f"c{number % 4}") for number, name in enumerate(names)]
    facts += [(f"c{number}", "language", ("Dutch", "French")[number % 2]) for number in range(4)]
    facts += [(name, "language", ("Dutch", "French")[number % 2]) for number, name in enumerate(names[1:], 1)]
    facts += [("p0", "language", "<b>Frisian</b>")]
    data = Dataset.from_triples(facts, name="village")
    return make_theory(anyburl.learn(data, paths=3000, seed=1, threads=1), data)


def test_few_laws_explain_a_relation(theory: Theory) -> None:
    married = next(one for one in theory.relations if one.label == "married_to")
    (law,) = married.laws
    assert (law.idea.name, law.support, law.predictions, law.explains) == ("symmetric", 24, 24, 24)
    assert (married.explained, married.unexplained, law.chance) == (24, (), "always, 24 times")


def test_laws_are_rules_of_the_distilled_choice() -> None:
    data = anyburl.load_dataset("geo")
    rules = anyburl.learn(data, paths=5000, seed=1, threads=1)
    distilled = anyburl.Reasoner(rules, data).distil(per_relation=3, facts=2_000).rules
    assert distilled.stands_for is not None
    worth = dict(zip(distilled.texts(), distilled.stands_for.tolist(), strict=True))
    laws = make_theory(distilled, data).laws
    assert {law.text: law.stands_for for law in laws}.items() <= worth.items()
    assert len(laws) > 10
    told = {law.text: law for law in make_theory(rules, data).laws}
    assert told["borders(X,Y) <= borders(Y,X)"].stands_for > 3
    assert len(told.keys() & worth.keys()) > 10


def test_a_law_shows_its_exceptions(theory: Theory) -> None:
    spoken = next(one for one in theory.relations if one.label == "language")
    law = next(law for law in spoken.laws if law.text == "language(X,Y) <= city(X,A), language(A,Y)")
    assert (law.support, law.predictions) == (23, 24)
    (exception,) = law.exceptions
    assert exception.triple == ("p0", "language", "Dutch")
    assert exception.instead == ("<b>Frisian</b>",)
    assert exception.facts == (("p0", "city", "c0"), ("c0", "language", "Dutch"))


def test_where_things_have_several_values_what_is_not_stated_is_not_called_an_exception(theory: Theory) -> None:
    spoken = next(one for one in theory.relations if one.label == "language")
    (law,) = (law for law in spoken.laws if law.exceptions)
    several = replace(spoken, n_facts=2 * spoken.n_subjects)
    assert (spoken.has_one_value, several.has_one_value) == (True, False)
    lines = [law_lines(law, relation, theory.wording)[-1] for relation in (spoken, several)]
    one, more = ((title, plain_text(cases[0])) for title, cases in lines)
    assert one[0] == "1 exception"
    assert one[1].endswith("would follow; the graph states <b>Frisian</b> instead of Dutch")
    assert more[0] == "1 case not stated: exceptions or gaps"
    assert more[1].endswith("would follow, but is not stated; the graph has <b>Frisian</b> in place of Dutch")


def test_pages_and_markdown_tell_the_same_without_decimals(theory: Theory) -> None:
    page, text = theory_html(theory), theory_markdown(theory)
    assert "&lt;b&gt;Frisian&lt;/b&gt;" in page
    assert "<b>Frisian" not in page
    assert "\\<b\\>Frisian" in text
    shown = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]*>", " ", page, flags=re.DOTALL)
    for told in (shown, text):
        assert not re.search(r"\d\.\d", told)
        assert "24 times" in told
    assert "A thing has the same *language* as its *city*. 96 of 100" in text


def test_a_theory_is_json(theory: Theory) -> None:
    told = theory.to_json()
    assert (told["data"], told["facts"], told["rules"]) == ("village", 76, theory.n_rules)
    assert {"from": "married_to", "to": "married_to", "idea": "symmetric", "facts": 24} in told["links"]
    assert {one["relation"] for one in told["relations"]} == {"married_to", "city", "language"}


def test_the_opening_says_how_much_the_laws_explain(theory: Theory) -> None:
    sizes = [(one.explained, one.looked_at, one.n_facts) for one in theory.relations]
    assert all(looked_at == n_facts for _, looked_at, n_facts in sizes)
    explained = sum(one.explained for one in theory.relations)
    assert 0.5 < explained / 76 < 0.95
    laws = f"{len(theory.laws)} laws, chosen from {theory.n_rules} rules that were learned,"
    assert opening_text(theory).endswith(f"{laws} explain about {round(10 * explained / 76)} of 10 facts.")


def test_a_report_without_laws_says_so(theory: Theory) -> None:
    silent = replace(theory, relations=[replace(one, laws=()) for one in theory.relations])
    assert opening_text(silent).endswith("none explains enough of a relation to be a law.")


def test_without_rules_there_is_nothing_to_report() -> None:
    data = Dataset.from_triples([("a", "r", "b")])
    with pytest.raises(RuleError, match="there are no rules to report on"):
        make_theory(RuleSet.empty(data.vocabulary), data)


def test_held_out_facts_are_facts_of_the_graph() -> None:
    pairs = [(f"a{n}", "next_to", f"b{n}") for n in range(10)]
    back = [(other, relation, one) for one, relation, other in pairs]
    data = Dataset.from_triples([*pairs, *back[:5]], test=back[5:])
    rules = RuleSet.of(anyburl.learn(Dataset.from_triples([*pairs, *back]), paths=500, seed=1, threads=1))
    (section,) = make_theory(rules, data, ReportOptions(laws=1)).relations
    assert (section.n_facts, section.laws[0].support, section.explained) == (20, 20, 20)
    assert np.isclose(section.laws[0].share, 1)


def test_a_law_that_only_says_what_is_commonest_adds_nothing(tmp_path: Path) -> None:
    countries = ["US" if n % 10 < 7 else f"c{n % 10}" for n in range(100)]
    facts = [(f"p{n}", "nationality", country) for n, country in enumerate(countries)]
    facts += [(f"p{n}", "born_in", f"town{n % 10}") for n in range(100)]
    facts += [(f"town{n}", "in", countries[n]) for n in range(10)]
    table = Dataset.from_triples(facts).train
    path = tmp_path / "rules.txt"
    path.write_text(
        "1\t1\t1.0\tnationality(X,Y) <= born_in(X,A), in(A,Y)\n1\t1\t1.0\tnationality(X,US) <= born_in(X,A)\n"
    )
    rules = anyburl.rescore(RuleSet.load(path), table)
    labels = table.to_polars().rows()
    graph, facts = graph_of(table), table.triples[[relation == "nationality" for _, relation, _ in labels]]
    common = np.array([countries.count(object) / 100 for _, relation, object in labels if relation == "nationality"])
    assert commonness(graph, facts) == pytest.approx(common)
    rates, sure = base_rates(graph, rules), rules.confidence(5)
    values = added_values(rules, rates, common, np.ones((2, 100), np.bool_))
    assert sure[1] < 0.7 < sure[0]
    assert not values[1].any()
    assert values[0] == pytest.approx(0.85 * (sure[0] - common))
    is_us = common == 0.7
    assert not added_values(rules, rates, common, np.array([is_us, is_us]))[0, ~is_us].any()
