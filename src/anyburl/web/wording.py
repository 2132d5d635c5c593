"""Labels and rules in readable words, always with the labels behind them."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.data.names import Names
from anyburl.rules.rule import Atom, Constant, Rule, Term
from anyburl.rules.types import KINDS

TYPES = {str(kind): f"{kind.form.title}: {kind.form.meaning}" for kind in KINDS}


@dataclass(frozen=True)
class AtomTerm:
    """One term of an atom: what is shown, and the label behind it (None for a variable)."""

    text: str
    label: str | None


@dataclass(frozen=True)
class AtomWords:
    """One atom: subject, relation, object."""

    subject: AtomTerm
    relation: str
    relation_label: str
    object: AtomTerm


@dataclass(frozen=True)
class RuleWords:
    """A rule: its head holds if all of its body does."""

    head: AtomWords
    body: tuple[AtomWords, ...]


def entity_name(label: str, names: Names) -> str:
    """Return what an entity is called."""
    return str(names.get(label))


def relation_name(label: str, names: Names) -> str:
    """Return what a relation is called; without a name, the last word of a path such as /location/location/contains."""
    if label in names:
        return names[label]
    steps = [_last_word(step) for step in label.split("./")] if label.startswith("/") else [_last_word(label)]
    return ", ".join(dict.fromkeys(steps)).replace("_", " ").strip() or label


def _last_word(path: str) -> str:
    """Return what stands after the last slash or number sign, if that says anything."""
    for sign in ("#", "/"):
        before, _, after = path.rstrip(sign).rpartition(sign)
        if before and after:
            return after
    return path


def rule_words(rule: Rule, names: Names) -> RuleWords:
    """Return a rule in words."""
    head, *body = (_atom(atom, names) for atom in (rule.head, *rule.body))
    return RuleWords(head, tuple(body))


def _atom(atom: Atom, names: Names) -> AtomWords:
    """Return an atom in words; `self` is written as the other argument, which it stands for."""
    subject, object = atom.subject, atom.object
    return AtomWords(
        _term(object if _is_self(subject) else subject, names),
        relation_name(atom.relation, names),
        atom.relation,
        _term(subject if _is_self(object) else object, names),
    )


def _is_self(term: Term) -> bool:
    return isinstance(term, Constant) and term.is_self


def _term(term: Term, names: Names) -> AtomTerm:
    if isinstance(term, Constant):
        return AtomTerm(entity_name(term.label, names), term.label)
    return AtomTerm(str(term), None)
