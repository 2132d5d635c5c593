"""Texts about rules: rules of AnyBURL and AMIE, queries, facts and reviews."""

from __future__ import annotations

import gzip
from pathlib import Path

from anyburl import RuleSet, format_rule, parse_rule
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.reasoning.queries import read_queries
from anyburl.tools.publishing import read_facts
from anyburl.tools.review import ReviewLog
from fuzz.target import Target, chosen, text, written

RULES = (
    b"10\t4\t0.4\th(X,Y) <= b(X,A), c(A,Y)\n# c\n3\t2\t0.66\th(X,e) <= b(X,A)\n3\t1\t0.3\th(X,e) <= b(X,f (g), h)\n"
    b"5\t5\t1.0\th(e,Y) <= \n7\t1\t0.14\th(X,me_myself_i) <= b(X,A), c(A,B), d(B,e)\n"
)
AMIE = (
    b"Using HeadCoverage\nRule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive "
    b"Examples\tBody size\tPCA Body size\n"
    b"?a  livesIn  ?b   => ?a  bornIn  ?b\t0.1\t0.2\t0.3\t12\t60\t40\n"
    b"?x  a b  ?y  ?y  c  e   => ?x  d  ?y\t0\t0\t0\t1.0\t2.0\t3\n"
)
NQUADS = (
    b"<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n"
    b'_:x <http://www.w3.org/2000/01/rdf-schema#label> "n"@de .\n'
    b'<http://e/a> <http://e/d> "2020-02-30"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
    b"<urn:anyburl:a%20b> <urn:p> <urn:o> .\n"
)
FACTS = (
    b"subject\trelation\tobject\tscore\tprobability\trule\trules\ned\tspeaks\tdutch\t0.5\t0.4\th(X,Y) <= b(X,Y)\t2\n",
    b""
    b'{"subject":"ed","relation":"speaks","object":"dutch","score":0.5,"probability":null,"rule":"h","rules":2,"facts":[["a","b","c"]]}\n',
)
REVIEW = b'{"id":"1","time":"t","triple":["a","r","b"],"verdict":"accepted","note":"","reader":""}\n'
VOCABULARY = Vocabulary.from_labels(["Ed", "ed", "dutch", "http://e/a", "?"], ["speaks", "http://e/p"])
NAMES = Names({"http://e/a": "Anna", "ed": "Eduard", "dutch": "anna"}, {"e": "http://e/"})


def rule(folder: Path, data: bytes) -> None:
    """The text of one rule reads back as it is written."""
    for escaped in (False, True):
        found = parse_rule(text(data), escaped=escaped)
        assert parse_rule(format_rule(found, escaped=True), escaped=True) == found


def rules(folder: Path, data: bytes) -> None:
    """A file of rules, AnyBURL's or AMIE's, reads back as it is written: every fourth one, since that takes longest."""
    found = RuleSet.load(written(folder, "rules.txt", data))
    if sum(data) % 4 != 2:
        return
    found.save(folder / "again.txt", escaped=True)
    again = RuleSet.load(folder / "again.txt", escaped=True)
    assert again.texts().to_list() == found.texts().to_list()
    assert again.support.tolist() == found.support.tolist()


def amie(folder: Path, data: bytes) -> None:
    """The same, after a header of AMIE's."""
    rules(folder, AMIE.partition(b"\n?")[0] + b"\n" + data)


def queries(folder: Path, data: bytes) -> None:
    """A file of queries."""
    found = read_queries(written(folder, "queries.txt", data), VOCABULARY, NAMES)
    assert (found.entities >= 0).all()
    assert (found.relations < 2 * VOCABULARY.n_relations).all()


def facts(folder: Path, data: bytes) -> None:
    """Facts to publish."""
    kind, rest = chosen(data, ".tsv", ".jsonl", ".nt", ".tsv.gz")
    read_facts(written(folder, f"facts{kind}", rest))


def reviews(folder: Path, data: bytes) -> None:
    """A log of reviews: lines that are none are skipped."""
    log = ReviewLog(written(folder, "reviews.jsonl", data))
    assert len(log.standing()) <= len(log.latest()) <= data.count(b"\n")
    assert log.n_skipped <= data.count(b"\n")


TARGETS = (
    Target("rule", "the text of one rule", rule, tuple(line.split(b"\t")[-1] for line in RULES.split(b"\n"))),
    Target(
        "rules", "files of rules, AnyBURL's text", rules, (RULES, AMIE, gzip.compress(RULES), b"\xef\xbb\xbf" + RULES)
    ),
    Target(
        "amie",
        "files of rules, AMIE's text",
        amie,
        (AMIE.partition(b"\n?")[2], b"?a  p  ?b   => ?b  q  ?a\t\t\t\t1\t2\n"),
    ),
    Target("queries", "queries", queries, (b"ed\tspeaks\t?\n? speaks dutch\n", b"?\te:p\te:a\nAnna speaks ?\n")),
    Target(
        "facts",
        "files of facts",
        facts,
        (b"\0" + FACTS[0], b"\1" + FACTS[1], b"\2" + NQUADS, b"\3" + gzip.compress(FACTS[0])),
    ),
    Target("reviews", "logs of reviews", reviews, (REVIEW, REVIEW * 2 + b"\n{\n")),
)
