"""Rule sets as columns, and their files."""

from __future__ import annotations

from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.files.rule_file import ReadReport
from anyburl.ruleset.ruleset import RuleSet

__all__ = ["ReadReport", "RuleColumns", "RuleSet"]
