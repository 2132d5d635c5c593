"""Hypothesis strategies: labels of any text, and rules over them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from anyburl.rules.rule import SELF, Atom, Constant, Rule, Term, Variable, entity_fault, escape_label, relation_fault

awkward = st.text("XYAa(), <=%25\t\n\r#", min_size=1, max_size=8)
unicode = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
labels: SearchStrategy[str] = st.one_of(
    st.sampled_from(["a", "X", "me_myself_i", "Paris (Texas)", "Paris, Texas", "), b(X,", "100%", "%41"]),
    awkward,
    st.lists(st.sampled_from(["(", ")", ",", " ", "X", "Y", "a", "<="]), min_size=1, max_size=7).map("".join),
    unicode,
).filter(str.strip)  # blanks are no label

like_terms = st.sampled_from(["_:{}", "urn:anyburl:{}", "http://example.org/{}", "<{}>"]).flatmap(
    lambda form: labels.map(form.format)
)
rdf_labels: SearchStrategy[str] = st.one_of(labels, like_terms)
"""Labels that look like terms of RDF, and others; literals are not among them: some say the same in another way."""

# Escaping instead of filtering: most of the awkward labels would be thrown away.
writable_entities = labels.map(lambda label: escape_label(label) if entity_fault(label) else label)
writable_relations = labels.map(lambda label: escape_label(label, is_entity=False) if relation_fault(label) else label)


@st.composite
def rules(draw: DrawFn, entities: SearchStrategy[str] = labels, relations: SearchStrategy[str] = labels) -> Rule:
    """A rule of any type with up to four body atoms."""
    constants = st.one_of(entities.map(Constant), st.just(SELF))
    length = draw(st.integers(0, 4))
    is_binary = length > 0 and draw(st.booleans())
    start, end = (Variable("X"), Variable("Y")) if is_binary or draw(st.booleans()) else map(Variable, "YX")
    far: Term = end if is_binary else draw(constants)
    head = (start, far) if start.name == "X" else (far, start)
    terms: list[Term] = [start, *(Variable(name) for name in "ABCD"[:length])]
    if is_binary:
        terms[-1] = end
    elif length and draw(st.booleans()):
        terms[-1] = draw(constants)
    ends = [step if draw(st.booleans()) else step[::-1] for step in pairwise(terms)]
    return Rule(Atom(draw(relations), *head), tuple(Atom(draw(relations), *step) for step in ends))
