"""A forked process is told that it cannot work, instead of waiting for threads that it does not have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


LEARNING = """
import os, sys
import anyburl
from pathlib import Path

def fork(span):
    if span.number == 1 and parent == os.getpid():
        child = os.fork()
        if child:
            print("child ended with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

parent, data = os.getpid(), anyburl.load_dataset("geo")
options = {"paths": 3000, "threads": 1, "seed": 1, "max_grounded": 0}
if sys.argv[2] == "changed":
    anyburl.learn(anyburl.Dataset.from_triples(data.train.to_polars()[:-50], name="geo"), out=sys.argv[1], **options)
    from anyburl.learning.recorder import run_learner
    from anyburl.learning.recorder import resume
    learner, recorder = resume(anyburl.RunDirectory.open(sys.argv[1]), data, **options)
else:
    learner = None
try:
    if learner is None:
        anyburl.learn(data, out=sys.argv[1], on_span=fork, **options)
    else:
        run_learner(learner, recorder, fork)
        recorder.finish(learner)
except anyburl.AnyburlError as error:
    print(error, flush=True)
    sys.exit(3)
print(len(anyburl.RuleSet.load(sys.argv[1])), sorted(os.listdir(Path(sys.argv[1]).parent)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.parametrize("data", ["new", "changed"])
def test_a_fork_in_the_middle_of_a_run_does_the_run_no_harm(tmp_path: Path, data: str) -> None:
    program = [sys.executable, "-c", LEARNING, str(tmp_path / "run"), data]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    told, ended, found = done.stdout.splitlines()
    assert told.startswith("this process was forked from one that had used anyburl"), done.stderr
    assert ended == "child ended with 3"
    assert found.endswith("['run']")
    assert int(found.split()[0]) > 100
    assert done.returncode == 0
