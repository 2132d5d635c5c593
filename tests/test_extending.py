"""What one adds is said once: these tests add it to the source, and see it work everywhere.

A format of triples is a module and a line, an aggregation a class and a line, an export language a class and two lines,
a page of the explorer a route and a template. Options are added in `base/test_options.py`, columns in
`rules/test_new_column.py`.
"""

from __future__ import annotations

import os
import shutil
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


LANGUAGES = '    "shacl": (".ttl", ".shacl"),\n'
NEW_LANGUAGE = '    "tptp": (".p",),\n'
WRITERS = '    "shacl": ShaclWriter,\n'
NEW_WRITER = '    "tptp": type("TptpWriter", (Writer,), {"write": __import__("tptp").write}),\n'
WRITER_MODULE = """
def write(writer, clause):
    body = " & ".join(f"{atom.relation}({atom.subject},{atom.object})" for atom in clause.body)
    return f"fof({clause.scores.support}, axiom, {body} => {clause.head.relation}).\\n"
"""

EXPORTING = """
import anyburl
from anyburl.cli.app import app
from rules.samples import make_rules
from typer.testing import CliRunner

rules = make_rules([("speaks(X,dutch) <= lives(X,nl)", (10, 8))])
report = anyburl.export_rules(rules, "rules.p")
assert (report.to, report.n_rules) == ("tptp", 1)
assert open("rules.p").read() == "fof(8, axiom, lives(X,nl) => speaks).\\n"
rules.save("rules.txt")
assert CliRunner().invoke(app, ["export", "rules.txt", "others.txt", "--to", "tptp"]).exit_code == 0
assert open("others.txt").read() == open("rules.p").read()
assert "tptp" in CliRunner().invoke(app, ["export", "--help"]).output
refused = CliRunner().invoke(app, ["export", "rules.txt", "rules.p", "--table", "facts"])
assert refused.exit_code == 2 and "sql" in refused.output  # of the language that the suffix says
print("a class and two lines")
"""

ROUTES = "router = APIRouter()\n"
NEW_ROUTE = '''
@router.get("/longest")
async def longest(request: Request, site: CurrentSite) -> Response:
    """Show the entity with the longest label."""
    entities = site.explorer.reasoner.vocabulary.entities
    return await site.page(request, "longest.html", lambda: {"label": max(entities, key=len)})
'''
TEMPLATE = """{% extends "base.html" %}
{% block title %}Longest{% endblock %}
{% block main %}<h1>{{ label }}</h1>{% endblock %}
"""

SERVING = """
from pathlib import Path

from fastapi.testclient import TestClient
from rules.samples import make_rules

import anyburl
from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer

data = anyburl.Dataset.from_triples([("ed", "lives", "<nl>"), ("jo", "lives", "<nl>")])
rules = make_rules([("speaks(X,dutch) <= lives(X,<nl>)", (10, 8))])
explorer = Explorer(anyburl.Reasoner(rules, data), title="new", reviews=Path("reviews.jsonl"))
with TestClient(create_app(explorer), base_url="http://127.0.0.1:8000") as client:
    page = client.get("/longest")
    assert page.status_code == 200 and "<h1>&lt;nl&gt;</h1>" in page.text, page.text
    assert '<nav aria-label="Main">' in page.text and page.headers["content-security-policy"]
    assert client.get("/longest", headers={"host": "evil.example"}).status_code >= 400  # guarded like every page
explorer.close()
print("a route and a template")
"""


def run_program(program: str, folder: Path, source: Path = Path(anyburl.__file__).parents[1]) -> str:
    """Run a program in a folder, with a source tree and the tests; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(Path(__file__).parent)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_format_and_an_aggregation_are_a_line_each(tmp_path: Path) -> None:
    (tmp_path / "bars.py").write_text(FORMAT_MODULE)
    program = with_line_added("anyburl.data.files", FORMATS, NEW_FORMAT, "")
    program += with_line_added("anyburl.ranking.options", AGGREGATIONS, NEW_AGGREGATION, PROGRAM)
    assert run_program(program, tmp_path) == "a line each"


def test_an_export_language_is_a_class_and_two_lines(tmp_path: Path) -> None:
    (tmp_path / "tptp.py").write_text(WRITER_MODULE)
    program = with_line_added("anyburl.tools.options", LANGUAGES, NEW_LANGUAGE, "")
    program += with_line_added("anyburl.tools.export_languages", WRITERS, NEW_WRITER, EXPORTING)
    assert run_program(program, tmp_path) == "a class and two lines"


def test_a_page_of_the_explorer_is_a_route_and_a_template(tmp_path: Path) -> None:
    source = shutil.copytree(Path(anyburl.__file__).parent, tmp_path / "src" / "anyburl")
    (source / "web" / "templates" / "longest.html").write_text(TEMPLATE)
    pages = source / "web" / "pages.py"
    assert pages.read_text("utf-8").count(ROUTES) == 1
    pages.write_text(pages.read_text("utf-8").replace(ROUTES, ROUTES + NEW_ROUTE), "utf-8")
    assert run_program(SERVING, tmp_path, source.parent) == "a route and a template"
