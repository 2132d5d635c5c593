"""Hypothesis strategies: labels of any text, and rules over them."""

from __future__ import annotations

import math
from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from anyburl.data.attributes import AttributeKind, format_value
from anyburl.rules.parts import COMPARED
from anyburl.rules.rule import (
    SELF,
    Atom,
    Condition,
    Constant,
    Rule,
    Term,
    Variable,
    entity_fault,
    escape_label,
    relation_fault,
)

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


finite = st.floats(allow_nan=False, allow_infinity=False)
days = st.integers(-1_000_000, 1_000_000) | st.integers(-(10**9), 10**9).map(lambda moment: moment / 86_400_000)


@st.composite
def conditions(draw: DrawFn, attributes: SearchStrategy[str] = labels, variable: str = "X") -> Condition:
    """A condition on a number, a date (also before 1970, with a time of day) or a boolean."""
    kind = draw(st.sampled_from(AttributeKind))
    values = {AttributeKind.NUMBER: finite, AttributeKind.DATE: days, AttributeKind.BOOLEAN: st.just(1)}[kind]
    cuts = sorted({float(draw(values)) + 0.0 for _ in range(draw(st.integers(1, 2)))})
    bounds = tuple(cuts) if len(cuts) == 2 and format_value(cuts[0], kind) != format_value(cuts[1], kind) else None
    low, high = bounds or draw(st.sampled_from([(cuts[0], math.inf), (-math.inf, cuts[0])]))
    return Condition(draw(attributes), Variable(variable), low, high, kind)


@st.composite
def conditional_rules(draw: DrawFn, entities: SearchStrategy[str], relations: SearchStrategy[str]) -> Rule:
    """A rule with a condition on the head's variable, or on one a step away."""
    constant = draw(st.one_of(entities.map(Constant), st.just(SELF)))
    start = draw(st.sampled_from("XY"))
    head = (Variable("X"), constant) if start == "X" else (constant, Variable("Y"))
    terms = draw(st.permutations([Variable(start), Variable("A")])) if draw(st.booleans()) else None
    body = () if terms is None else (Atom(draw(relations), *terms),)
    return Rule(Atom(draw(relations), *head), body, draw(conditions(relations, "A" if body else start)))


@st.composite
def comparing_rules(draw: DrawFn, relations: SearchStrategy[str]) -> Rule:
    """A binary rule with a comparison of its two ends."""
    terms = [Variable("X"), *map(Variable, "ABC"[: draw(st.integers(0, 2))]), Variable("Y")]
    ends = [step if draw(st.booleans()) else step[::-1] for step in pairwise(terms)]
    low, high = COMPARED[draw(st.sampled_from("<=>"))]
    kind = draw(st.sampled_from(AttributeKind))
    condition = Condition(draw(relations), terms[0], low, high, kind, than=terms[-1])
    return Rule(
        Atom(draw(relations), terms[0], terms[-1]), tuple(Atom(draw(relations), *step) for step in ends), condition
    )


@st.composite
def rules(draw: DrawFn, entities: SearchStrategy[str] = labels, relations: SearchStrategy[str] = labels) -> Rule:
    """A rule of any type with up to four body atoms, or with a condition or a comparison."""
    form = draw(st.integers(0, 6))
    if form < 2:
        return draw(comparing_rules(relations) if form else conditional_rules(entities, relations))
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
