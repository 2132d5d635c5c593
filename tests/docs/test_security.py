"""Every promise of SECURITY.md names tests that exist."""

from __future__ import annotations

import re

from docs.pages import ROOT

ROW = re.compile(r"^\| (?!promise|---)(.+) \| (.+) \|$", re.MULTILINE)


def test_every_promise_is_shown_by_tests_that_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8").partition("## What anyburl promises")[2].partition("\n## ")[0]
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    promises = {promise: re.findall(r"`(test_\w+)`", tests) for promise, tests in ROW.findall(text)}
    assert len(promises) > 25
    assert {promise for promise, tests in promises.items() if not tests} == set()
    assert {name for tests in promises.values() for name in tests} - defined == set()
