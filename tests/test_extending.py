"""A new format of triples is a module and a line, a new aggregation a class and a line: this test adds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyburl
from edited import with_line_added

FORMAT_MODULE = """
import polars as pl

def read(path, start, size, options, gathered):
    lines = path.read_text("utf-8").splitlines()
    yield pl.DataFrame([line.split("|") for line in lines], schema=["subject", "relation", "object"], orient="row")
"""
FORMATS = "    Format((PARQUET,), read_parquet),\n"
NEW_FORMAT = '    Format((".bars",), __import__("bars").read),\n'

AGGREGATIONS = (
    "AGGREGATIONS: tuple[type[Aggregation], ...] = (Maximum, NoisyOr, NoisyOrTop, Tuned, Hybrid)\n"  # and the new one
)
NEW_AGGREGATION = '''
@dataclass(frozen=True)
class TopTwo(Aggregation):
    """Noisy-or of the two best rules."""

    pattern = r"top-two"
    written = example = "top-two"
    help = "the two best rules add up"

    n_counted: int | None = 2

AGGREGATIONS += (TopTwo,)
'''

PROGRAM = """
import os

import pytest

import anyburl
from anyburl.cli.app import app
from rules.samples import make_rules
from typer.testing import CliRunner

# the format: a file, a folder with splits, and what says which files there are
facts = ["ed|lives|nl", "ed|born|nl", "ed|works|nl", "jo|speaks|dutch"]
for folder, split in (("data", "train"), ("data", "test"), (".", "alone")):
    os.makedirs(folder, exist_ok=True)
    open(f"{folder}/{split}.bars", "w").write("\\n".join(facts if split != "test" else ["ed|speaks|dutch"]))
data = anyburl.load_dataset("data")
assert sorted("|".join(fact) for fact in data.train.to_polars().rows()) == sorted(facts)
assert len(anyburl.load_dataset("alone.bars").train) == len(facts)

# the aggregation: scores, ranks, reasons, the command line
texts = [f"speaks(X,dutch) <= {relation}(X,nl)" for relation in ("lives", "born", "works")]
rules = make_rules([(text, (10, support)) for text, support in zip(texts, (8, 6, 4))])
reasoner = anyburl.Reasoner(rules, data, aggregation="top-two", smoothing=0)
(answer,) = reasoner.predict("ed", "speaks", None)
assert answer.score == pytest.approx(1 - 0.2 * 0.4)
assert reasoner.evaluate().mrr == 1.0
contributions = [reason.contribution for reason in reasoner.explain(("ed", "speaks", "dutch")).reasons]
assert [share > 0 for share in contributions] == [True, True, False]
rules.save("rules.txt")
command = ["evaluate", "rules.txt", "--data", "data", "--aggregation"]
assert CliRunner().invoke(app, [*command, "top-two", "--json"]).exit_code == 0
refused = CliRunner().invoke(app, [*command, "top-three"])
assert refused.exit_code == 2 and "top-two" in refused.output
print("a line each")
"""


def test_a_format_and_an_aggregation_are_a_line_each(tmp_path: Path) -> None:
    source, tests = Path(anyburl.__file__).parents[1], Path(__file__).parent
    (tmp_path / "bars.py").write_text(FORMAT_MODULE)
    program = with_line_added("anyburl.data.files", FORMATS, NEW_FORMAT, "")
    program += with_line_added("anyburl.ranking.options", AGGREGATIONS, NEW_AGGREGATION, PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(tests)])},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "a line each"), done.stderr
