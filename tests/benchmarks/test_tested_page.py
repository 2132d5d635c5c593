"""The sections on mutation and coverage, from made-up figures."""

from __future__ import annotations

import json
from pathlib import Path


def test_scores_and_explained_survivors_are_told(tmp_path: Path) -> None:
    from faults.tested import mutation_section

    survivors = [{"line": 1, "operator": "o", "change": ["-a = 1", f"+a = {n}"]} for n in (2, 3)]
    module = {"module": "x.py", "mutants": 20, "tested": 10, "score": 0.8, "survivors": survivors}
    reasons = {"x": [{"changes": ["a = 3"], "why": "the same"}, {"changes": ["b"], "why": "never"}]}
    for name, content in (("mutation", {"results": {"x": module}}), ("mutation-survivors", reasons)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    section = mutation_section(tmp_path)
    assert "| `x.py` | 20 | 10 | 80.0 % | 2 | 1 |" in section
    assert "- `x.py`, 1: the same" in section
    assert "never\n" not in section.partition("Why mutants survive")[2]


def test_coverage_is_told(tmp_path: Path) -> None:
    from faults.tested import coverage_section

    found = {"lines": 2000, "lines_covered": 1990, "branches": 10, "branches_covered": 5, "percent": 99.25}
    stored = {"date": "2020-01-01", "commit": "abc", "results": found}
    (tmp_path / "coverage.json").write_text(json.dumps(stored), "utf-8")
    assert "1,990 of 2,000 lines and 5 of 10 branches" in coverage_section(tmp_path)
