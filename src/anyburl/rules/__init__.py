"""Rules as people read them: terms, atoms, rules, and their text."""

from __future__ import annotations

from anyburl.rules.labels import escape_label, unescape_label, unwritable_labels
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Term, Variable
from anyburl.rules.syntax import format_rule, parse_rule
from anyburl.rules.types import RuleType

__all__ = [
    "SELF",
    "Atom",
    "Constant",
    "Rule",
    "RuleType",
    "Term",
    "Variable",
    "escape_label",
    "format_rule",
    "parse_rule",
    "unescape_label",
    "unwritable_labels",
]
