"""Summaries of fault trials, from made-up trials."""

from __future__ import annotations

from typing import Any


def trial(command: str, fault: str, code: int, lost: float | None = None, problem: str = "") -> dict[str, Any]:
    told = {"moment": 20.0, "found": "whole", "leftovers": 1, "late": True, "problems": [problem] if problem else []}
    return {"command": command, "fault": fault, "code": code, "lost_seconds": lost, **told}


def test_added_trials_count_as_if_they_had_been_summed_up_together() -> None:
    from faults.summary import added, summarise

    first = [trial("learn", "SIGKILL", -9, 1.5), trial("plot", "full disk", 2)]
    second = [trial("learn", "SIGKILL", -9, 3.0), trial("plot", "SIGINT", 130, problem="not swept: x")]
    assert added(summarise(first), summarise(second)) == summarise([*first, *second])
