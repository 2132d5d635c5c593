"""What the tests of exports share: rules over graphs with awkward labels, and the facts that they predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from typing import NamedTuple

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from anyburl import RuleSet, Vocabulary, export_rules
from anyburl.data.terms import rdf_term
from ranked import Scored, any_rules, rule_set
from reference import scoring
from rules.strategies import labels
from strategies import RuleTuple, SmallGraph, graphs

Fact = tuple[str, str, str]

AWKWARD = [
    "a b",
    'say "it\'s"',
    "x,y) :- (z",
    "日本 ∑ é",
    "http://example.org/a'b(c)",
    "line\nbreak\ttab\r",
    "back\\slash\\u0041\\",
    "`tick`$`",
    "100%;--//#*/",
    "X",
    "me_myself_i",
    "",
]


class Exported(NamedTuple):
    """A graph with labels, and rules over it."""

    graph: SmallGraph
    tuples: list[RuleTuple]
    rules: RuleSet

    @property
    def triples(self) -> list[Fact]:
        """The facts of the graph."""
        entities, relations = self.rules.vocabulary.entities, self.rules.vocabulary.relations
        return [(entities[s], relations[r], entities[o]) for s, r, o in self.graph[2]]

    def expected(self, number: int, object_identity: bool) -> set[Fact]:
        """The facts that a rule predicts, according to the reference."""
        n_entities, n_relations, triples = self.graph
        rule = self.tuples[number]
        pairs = scoring.predicted(triples, n_entities, n_relations, rule, object_identity)
        return {self._fact(rule[1], x, y) for x, y in pairs}

    def _fact(self, head: int, x: int, y: int) -> Fact:
        n_entities, n_relations, _ = self.graph
        subject, object = (x, x) if y == n_entities else (x, y) if head < n_relations else (y, x)
        vocabulary = self.rules.vocabulary
        return (
            vocabulary.entities[subject],
            vocabulary.relations[head % n_relations],
            vocabulary.entities[object],
        )

    def text(self, number: int, to: str, **options: object) -> str:
        """One rule in a language."""
        return text_of(self.rules.slice(number, number + 1), to, **options)


def text_of(rules: RuleSet, to: str, **options: object) -> str:
    """Rules in a language."""
    out = StringIO()
    export_rules(rules, out, to=to, **options)  # type: ignore[arg-type]
    return out.getvalue()


def rdf_labels(case: Exported) -> dict[str, str]:
    """Return the labels behind terms of RDF; literals and blank nodes are no subject of these tests."""
    labels = [*case.rules.vocabulary.entities, *case.rules.vocabulary.relations]
    assume(all(rdf_term(label, is_object=True).startswith("<") for label in labels))
    return {rdf_term(label, is_object=False): label for label in labels}


def label_lists(n: int) -> SearchStrategy[list[str]]:
    """Different labels, mostly awkward ones; none is empty, since files of triples have no room for such."""
    drawn = st.one_of(st.sampled_from([label for label in AWKWARD if label]), labels)
    return st.lists(drawn, min_size=n, max_size=n, unique=True)


@st.composite
def exports(draw: DrawFn, max_rules: int = 6) -> Exported:
    """A graph and different rules over it, with awkward labels; confidences are different, too."""
    graph = draw(graphs())
    tuples = draw(st.lists(any_rules(graph), min_size=1, max_size=max_rules, unique=True))
    scored = [Scored(rule, number, 2 * len(tuples)) for number, rule in enumerate(tuples, 1)]
    vocabulary = Vocabulary.from_labels(draw(label_lists(graph[0])), draw(label_lists(graph[1])))
    return Exported(graph, tuples, rule_set(graph, scored).replace(vocabulary=vocabulary))


def check_each(
    case: Exported, to: str, execute: Callable[[Sequence[Fact], str], Iterable[Fact]], *, known: bool = True
) -> None:
    """Check that every rule on its own gives what the reference says, with and without object identity.

    Some systems do not tell predictions that are `known` from the facts of the graph.
    """
    left_out = set() if known else {*case.triples}
    for object_identity in (True, False):
        for number in range(len(case.rules)):
            text = case.text(number, to, object_identity=object_identity)
            expected = case.expected(number, object_identity) - left_out
            assert {*execute(case.triples, text)} - left_out == expected, text
