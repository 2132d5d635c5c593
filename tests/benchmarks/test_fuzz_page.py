"""The section on fuzzing, from made-up figures."""

from __future__ import annotations

import json
from pathlib import Path


def test_counts_and_findings_are_told(tmp_path: Path) -> None:
    from fuzz.page import fuzz_section

    run = {"executions": 1500, "processor_seconds": 1260.0, "edges": 30, "findings": ["KeyError: 'x'"]}
    short = {"executions": 20, "seconds": 30.0, "edges": 3, "findings": []}
    stored = {"command": "fuzz", "date": "2020-01-01 00:00", "results": {"lines": run, "rdf": short}}
    (tmp_path / "fuzz.json").write_text(json.dumps(stored), "utf-8")
    section = fuzz_section(tmp_path, {"lines": "triples in lines", "never": "something new"})
    assert "| triples in lines (`lines`) | 1,500 | 21.0 | 30 | 1 |" in section
    assert "| rdf (`rdf`) | 20 | 0.0 (short) | 3 | 0 |" in section  # the clock alone says little
    assert "| something new (`never`) | 0 | 0.0 (short) | 0 | 0 |" in section
    assert "1,520 executions in all" in section


def test_a_log_of_the_fuzzer_is_counted() -> None:
    from fuzz.run import counts

    log = "#2 INITED cov: 5 ft: 6 corp: 1/1b\n#99 NEW    cov: 7 ft: 9 corp: 3/9b exec/s: 1\n"
    log += "stat::number_of_executed_units: 120\n"
    expected = {"executions": 120, "edges": 7, "features": 9, "corpus": 3, "found": None}
    assert counts(log) == expected
    raised = f"{log} === Uncaught Python exception: ===\nKeyError: 'x'\n"
    assert counts(raised)["found"] == "KeyError: 'x'"
