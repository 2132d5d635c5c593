"""Sets of rules as columns, and their files."""

from __future__ import annotations

from anyburl.ruleset.files import read_rules, write_rules
from anyburl.ruleset.frame import SELF_MARKER
from anyburl.ruleset.report import ReadReport
from anyburl.ruleset.ruleset import RuleSet
from anyburl.ruleset.selection import TYPE_CODES

__all__ = ["SELF_MARKER", "TYPE_CODES", "ReadReport", "RuleSet", "read_rules", "write_rules"]
