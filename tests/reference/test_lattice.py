"""The generalisation lattice of Figure 2, built in full: `generalise` must give what is left of it."""

from __future__ import annotations

from hypothesis import given, settings

from kernels import examples
from reference.paths import Path, all_acyclic_paths, all_cyclic_paths, generalise
from reference.scoring import Rule
from reference.test_paths import (
    AMSTERDAM,
    BORN,
    DUTCH,
    ED,
    LISA,
    MARRIED,
    RULE_10,
    RULE_11,
    SPEAKS,
    E,
    R,
)
from strategies import SmallGraph, graphs

Term = int | str
Atom = tuple[int, Term, Term]
LatticeRule = tuple[Atom, tuple[Atom, ...]]
"""Head, body; a term is a constant (int) or a variable (str); the directed relations are kept."""


def bottom_rule(path: Path) -> LatticeRule:
    y, x, *_ = path.entities
    walk = path.entities[1:]
    return (path.head, x, y), tuple(zip(path.body, walk, walk[1:], strict=False))


def lattice(path: Path) -> set[LatticeRule]:
    """All rules above the bottom rule: constants to variables, atoms dropped, a variable in the head."""
    # Every constant always becomes the same variable, so equal rules are equal tuples.
    names = {entity: f"V{i}" for i, entity in enumerate(path.entities[:-1] if path.cyclic else path.entities)}
    found = set()
    todo = [bottom_rule(path)]
    while todo:
        rule = todo.pop()
        if rule in found:
            continue
        found.add(rule)
        head, body = rule
        for constant, name in names.items():
            swap: dict[Term, Term] = {constant: name}
            head2 = (head[0], swap.get(head[1], head[1]), swap.get(head[2], head[2]))
            body2 = tuple((d, swap.get(a, a), swap.get(b, b)) for d, a, b in body)
            todo.append((head2, body2))
        todo += [(head, body[:i] + body[i + 1 :]) for i in range(len(body))]
    return {rule for rule in found if variables(rule[:1])}


def variables(atoms: tuple[Atom, ...]) -> set[str]:
    return {term for atom in atoms for term in atom[1:] if isinstance(term, str)}


def bound_variables(rule: LatticeRule) -> set[str]:
    """Variables that are linked to the head's, directly or through other variables."""
    head, body = rule
    bound = variables((head,))
    for _ in body:
        bound |= {name for atom in body if variables((atom,)) & bound for name in variables((atom,))}
    return bound


def mark(rule: LatticeRule, n: int) -> str:
    """The symbols of Figure 2, in words."""
    head, body = rule
    if not variables((head,)) <= variables(body):
        return "ambiguous prediction"
    if len(body) < n:
        return "shorter bottom rule"
    for atom in body:
        constants = len([term for term in atom[1:] if isinstance(term, int)])
        if constants == 2 or (constants == 1 and not variables((atom,)) <= bound_variables(rule)):
            return "useless atom"
    return ""


def in_language(rule: LatticeRule) -> bool:
    """Section 2.1: in the body of a path rule, only the last term may be a constant."""
    body = rule[1]
    atoms = body if isinstance(body[0][1], str) else tuple((d, b, a) for d, a, b in reversed(body))
    return all(isinstance(a, str) for _, a, _ in atoms) and all(isinstance(b, str) for _, _, b in atoms[:-1])


def as_lattice_rules(path: Path, rules: set[Rule]) -> set[LatticeRule]:
    """Rules of this path, with the variables of its lattice."""
    entities = path.entities[:-1] if path.cyclic else path.entities
    names: dict[int, Term] = {entity: f"V{i}" for i, entity in enumerate(entities)}
    (head, x, y), body = bottom_rule(path)
    written = set()
    for rule in rules:
        keep = {rule.head_constant, rule.body_constant}
        terms = {entity: entity if entity in keep else name for entity, name in names.items()}
        atoms = tuple((d, terms[int(a)], terms[int(b)]) for d, a, b in body)
        written.add(((head, terms[int(x)], terms[int(y)]), atoms))
    return written


def test_the_lattice_of_figure_2() -> None:
    x, a, b = "V1", "V2", "V3"
    y = "V0"
    marks = {rule: mark(rule, 2) for rule in lattice(RULE_10)}

    def marked(head: tuple[Term, Term], *body: Atom) -> str:
        return marks[(SPEAKS, *head), body]

    married, born = MARRIED, BORN
    assert marked((x, DUTCH), (married, x, LISA), (born, LISA, AMSTERDAM)) == "useless atom"
    assert marked((ED, y), (married, ED, LISA), (born, LISA, AMSTERDAM)) == "ambiguous prediction"
    assert marked((x, y), (married, x, LISA), (born, LISA, AMSTERDAM)) == "ambiguous prediction"
    assert marked((x, DUTCH), (married, x, LISA), (born, LISA, b)) == "useless atom"
    assert marked((x, DUTCH), (married, x, LISA)) == "shorter bottom rule"
    assert marked((x, DUTCH), (born, LISA, AMSTERDAM)) == "ambiguous prediction"
    assert {rule for rule, symbol in marks.items() if not symbol} == {
        ((SPEAKS, x, DUTCH), ((married, x, a), (born, a, AMSTERDAM))),
        ((SPEAKS, x, DUTCH), ((married, x, a), (born, a, b))),
    }


def test_the_two_unmarked_rules_of_figure_2_are_what_the_path_generalises_to() -> None:
    unmarked = {rule for rule in lattice(RULE_10) if not mark(rule, 2)}
    assert as_lattice_rules(RULE_10, generalise(RULE_10, E, R)) == unmarked


def test_a_cyclic_path_leaves_three_rules_of_the_language() -> None:
    """The marks also leave speaks(X,Y) <- lives(X,nl), lang(nl,Y), which is no path rule (section 2.1)."""
    unmarked = {rule for rule in lattice(RULE_11) if not mark(rule, 2)}
    assert len(unmarked) == 4
    kept = {rule for rule in unmarked if in_language(rule)}
    assert len(kept) == 3
    assert as_lattice_rules(RULE_11, generalise(RULE_11, E, R)) == kept


@given(graphs(max_entities=5, max_relations=2, max_triples=8))
@settings(max_examples=examples(30), deadline=None)
def test_every_straight_path_generalises_to_what_is_left_of_its_lattice(graph: SmallGraph) -> None:
    n_entities, n_relations, triples = graph
    for n in (1, 2, 3):
        acyclic = all_acyclic_paths(triples, n_entities, n_relations, n)
        cyclic = all_cyclic_paths(triples, n_entities, n_relations, n)
        for path in sorted(acyclic | cyclic)[:20]:
            if n_entities in path.entities:
                continue  # `self` is not generalised to a variable, section 4.4
            kept = {rule for rule in lattice(path) if not mark(rule, n) and in_language(rule)}
            assert as_lattice_rules(path, generalise(path, n_entities, n_relations)) == kept
