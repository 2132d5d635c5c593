"""Readable names in questions: one that is unique is understood, one that is not gets the list of what it may mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl import DataError, Dataset, Reasoner, UnknownLabelError
from anyburl.data.names import Names, read_names
from rules.samples import make_rules

TRAIN = [("Q1", "P1", "Q2"), ("Q3", "P1", "Q2"), ("Q2", "P2", "Q4"), ("Q2", "P2", "Q5"), ("Q1", "P3", "Q4")]
NAMES = {
    "Q1": "Ed",
    "Q2": "Holland",
    "Q3": "Lisa",
    "Q4": "Dutch",
    "Q5": "dutch",
    "P1": "lives in",
    "P2": "language",
    "P3": "speaks",
    "Q9": "Lisa",
}


def reasoner(names: Names) -> Reasoner:
    rules = make_rules([("P3(X,Y) <= P1(X,A), P2(A,Y)", (10, 8))])
    return Reasoner(rules, Dataset.from_triples(TRAIN), names=names, threads=1)


def test_a_name_that_is_unique_is_understood() -> None:
    """Q9 is called Lisa as well, but is not among the data."""
    named = reasoner(Names(NAMES))
    expected = named.predict("Q3", "P3", None)
    assert len(expected) == 2
    assert named.predict("Lisa", "speaks", None) == expected
    assert named.predict("lisa", "SPEAKS", None) == expected
    assert (
        named.predict([("Lisa", "P3", None), ("Q3", "speaks", None)]).rows()
        == named.predict([("Q3", "P3", None)] * 2).rows()
    )
    assert named.explain(("Lisa", "speaks", "Q4")).to_json() == named.explain(("Q3", "P3", "Q4")).to_json()


def test_a_name_in_upper_or_lower_case_decides_if_it_is_written_exactly_so() -> None:
    named = reasoner(Names(NAMES))
    assert named.explain(("Ed", "speaks", "Dutch")).triple == ("Q1", "P3", "Q4")
    assert named.explain(("Ed", "speaks", "dutch")).triple == ("Q1", "P3", "Q5")


def test_a_name_that_is_ambiguous_gets_the_list() -> None:
    named = reasoner(Names({**NAMES, "Q4": "tongue", "Q5": "tongue"}))
    sentence = "the entity 'tongue' is ambiguous; it could be Q4, Q5"
    with pytest.raises(DataError, match=sentence):
        named.predict(None, "language", "tongue")
    with pytest.raises(DataError, match=sentence):
        named.explain(("Holland", "language", "tongue"))
    with pytest.raises(DataError, match=f"query 2: {sentence}"):
        named.predict([("Ed", "speaks", None), (None, "language", "tongue")])


def test_a_name_that_only_one_entity_has_in_that_place_is_understood() -> None:
    """Of two tongues, only Q4 is spoken; Q1 and Q5 are both called Ed, and only Q1 lives anywhere."""
    named = reasoner(Names({**NAMES, "Q4": "tongue", "Q5": "tongue"}))
    assert named.predict(None, "speaks", "tongue") == named.predict(None, "P3", "Q4")
    assert named.predict([(None, "speaks", "tongue")]).rows() == named.predict([(None, "P3", "Q4")]).rows()
    assert named.explain(("Ed", "speaks", "tongue")).triple == ("Q1", "P3", "Q4")
    named = reasoner(Names({**NAMES, "Q5": "Ed"}))
    assert named.explain(("Ed", "speaks", "Dutch")).triple == ("Q1", "P3", "Q4")
    with pytest.raises(DataError, match="the entity 'Ed' is ambiguous"):
        named.predict("Ed", "language", None)


def test_a_label_is_itself_whatever_others_are_called() -> None:
    named = reasoner(Names({"Q1": "Q3"}))
    assert named.explain(("Q3", "P3", "Q4")).triple[0] == "Q3"


def test_a_name_that_nothing_has_is_an_unknown_label() -> None:
    with pytest.raises(UnknownLabelError, match="unknown entity 'Bart'"):
        reasoner(Names(NAMES)).predict("Bart", "speaks", None)


def test_names_come_from_the_labels_of_an_rdf_file(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    (tmp_path / "names.nt").write_text(
        f'<http://x/ed> {label} "Eduard"@de .\n<http://x/ed> {label} "Ed"@en .\n'
        f'<http://x/speaks> {label} "speaks" .\n<http://x/ed> <http://x/speaks> <http://x/dutch> .\n'
    )
    names = read_names(tmp_path / "names.nt")
    assert dict(names) == {"http://x/ed": "Ed", "http://x/speaks": "speaks"}
    data = Dataset.from_triples([("http://x/ed", "http://x/speaks", "http://x/dutch")])
    rules = make_rules([])
    assert Reasoner(rules, data, names=names).explain(("ed", "speaks", "http://x/dutch")).known == ("train",)
