"""A new column of rules is one field of `RuleColumns`: this test adds one to the source, and nothing anywhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyburl
from edited import with_line_added

LAST_FIELD = (
    '    lift: Annotated[NDArray[np.float64] | None, Column(Holds.MEASURE, heading="lift", most=np.inf)] = None\n'
)
NEW_FIELD = '    novelty: Annotated[NDArray[np.float32] | None, Column(Holds.MEASURE, heading="novelty")] = None\n'

ROUND_TRIPS = """
import pickle

import numpy as np
import pytest

import anyburl
from anyburl import Dataset, LearnOptions, RuleError, RuleSet, RunDirectory, Vocabulary
from anyburl.cli.tables import rule_rows, rules_table
from anyburl.learning.actor import pack_rules, unpack_rules
from anyburl.rules.types import PathProfile
from anyburl.rules.run_folder import read_part, write_part
from rules.samples import make_rules

texts = ["speaks(X,Y) <= lives(X,A), lang(A,Y)", "speaks(X,dutch) <= lives(X,nl)", "speaks(ed,Y) <= lang(A,Y)"]
plain = make_rules([(text, (10, 8 - row)) for row, text in enumerate(texts)])
rules = plain.replace(novelty=[0.25, 0.75, 0.5])

def check(found, *expected):
    assert found.novelty.dtype == np.float32
    assert found.novelty.tolist() == list(expected)
    assert found.measures == ("novelty",)

check(rules, 0.25, 0.75, 0.5)
assert not rules.novelty.flags.writeable
with pytest.raises(RuleError, match="another length for 'novelty'"):
    rules.replace(novelty=[0.5])

# choosing
check(rules[1:], 0.75, 0.5)
check(rules.filter(type="B"), 0.25)
check(rules.filter(min_novelty=0.5), 0.75, 0.5)
check(rules.top(2, by="novelty"), 0.75, 0.5)
with pytest.raises(RuleError, match="the rules have no novelty"):
    plain.top(1, by="novelty")

# joining
check(RuleSet.concat([rules[1:], rules[:1]]), 0.75, 0.5, 0.25)
check(rules.merge(rules[:2]), 0.25, 0.75, 0.5)
assert RuleSet.concat([rules, plain]).novelty is None
check(rules.with_vocabulary(Vocabulary.from_labels(["dutch", "nl"], ["lang", "lives", "speaks"])), 0.25, 0.75)
assert anyburl.rescore(rules, Dataset.from_triples([("ed", "lives", "nl")])).novelty is None

# other processes
check(pickle.loads(pickle.dumps(rules)), 0.25, 0.75, 0.5)
check(unpack_rules(pack_rules(PathProfile(cyclic=True, rule_length=1), rules), rules.vocabulary), 0.25, 0.75, 0.5)

# frames and files
check(RuleSet.from_polars(rules.to_polars()), 0.25, 0.75, 0.5)
rules.save("rules.parquet")
check(RuleSet.load("rules.parquet"), 0.25, 0.75, 0.5)

# a run folder: parts of a run that was killed, then all rules of one that ended
data = Dataset.from_triples([("ed", "lives", "nl"), ("nl", "lang", "dutch"), ("ed", "speaks", "dutch")])
run = RunDirectory.create("run", data, LearnOptions())
matched = rules.with_vocabulary(data.vocabulary)
write_part(run.path, matched[:2])
write_part(run.path, matched[2:])
check(RuleSet.load("run"), 0.25, 0.75, 0.5)
write_part(run.path, matched[:1].replace(margin=[0.5], lift=[3.0]))
both = read_part(sorted((run.path / "parts").iterdir())[-1], data.vocabulary)
assert (both.margin.tolist(), both.lift.tolist(), both.novelty.tolist()) == ([0.5], [3.0], [0.25])

# tables
assert [row["novelty"] for row in rule_rows(rules)] == [0.25, 0.75, 0.5]
assert "novelty" in [column.header for column in rules_table(rules).columns]
print("all round trips")
"""


def test_a_new_column_needs_an_edit_in_the_table_only(tmp_path: Path) -> None:
    source, tests = Path(anyburl.__file__).parents[1], Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", with_line_added("anyburl.rules.columns", LAST_FIELD, NEW_FIELD, ROUND_TRIPS)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(tests)])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "all round trips"), done.stderr
