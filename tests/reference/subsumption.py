"""When a rule is more general than another under object identity, tried out on every substitution."""

from __future__ import annotations

from itertools import permutations

from anyburl.rules.rule import SELF, Atom, Constant, Rule, Term, Variable

PlainAtom = tuple[str, Term, Term]


def plain(atom: Atom) -> PlainAtom:
    """b(X,self) as the b(X,X) that it is."""
    subject, object_ = atom.subject, atom.object
    if object_ == SELF:
        object_ = subject
    if subject == SELF:
        subject = object_
    return atom.relation, subject, object_


def terms(rule: Rule) -> list[Term]:
    atoms = [plain(atom) for atom in (rule.head, *rule.body)]
    return sorted({term for _, *pair in atoms for term in pair}, key=str)


def is_more_general(general: Rule, special: Rule) -> bool:
    """Whether different terms for the variables of `general`, none of its constants, give (a part of) `special`."""
    if general == special:
        return False
    variables = [term for term in terms(general) if isinstance(term, Variable)]
    constants = {term for term in terms(general) if isinstance(term, Constant)}
    targets = [term for term in terms(special) if term not in constants]
    head, body = plain(special.head), {plain(atom) for atom in special.body}
    for chosen in permutations(targets, len(variables)):
        put = dict(zip(variables, chosen, strict=True))

        def replaced(atom: Atom, put: dict[Variable, Term] = put) -> PlainAtom:
            relation, *pair = plain(atom)
            subject, object_ = (put.get(term, term) if isinstance(term, Variable) else term for term in pair)
            return relation, subject, object_

        if replaced(general.head) == head and {replaced(atom) for atom in general.body} <= body:
            return True
    return False
