"""A forked process is told that it cannot work, instead of waiting for threads that it does not have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import anyburl

if sys.argv[1] == "used":
    anyburl.load_dataset("geo")
child = os.fork()
if not child:
    try:
        print(len(anyburl.load_dataset("geo").train), flush=True)
    except anyburl.AnyburlError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.parametrize(
    ("before", "expected"),
    [("used", "this process was forked from one that had used anyburl"), ("fresh", "8935")],
)
def test_a_fork_of_a_process_that_has_worked_is_refused(before: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, before], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith(expected), done.stderr
