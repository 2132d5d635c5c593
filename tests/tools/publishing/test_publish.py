"""Facts go to endpoints and tables: all of them, once, and not before someone says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl.base.errors import DataError, OptionError
from anyburl.data.dataset import load_dataset
from anyburl.data.options import ReadOptions
from anyburl.reasoning.completion.files import FactFile
from anyburl.tools import publishing as table
from anyburl.tools.options import PublishOptions
from anyburl.tools.publishing import plan_publishing, publish, read_facts
from anyburl.tools.review import write_facts
from postgresql import PostgresServer, postgres_server
from serving import stay_on_this_machine
from sparql_server import SparqlServer, sparql_server

EX = "http://example.org/"
COLUMNS = ["subject", "relation", "object", "score", "probability", "rule", "rules"]


@pytest.fixture(autouse=True)
def no_surprises(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_on_this_machine(monkeypatch)
    monkeypatch.setattr("anyburl.data.remote.http.FIRST_PAUSE", 0.0)
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"ANYBURL_SPARQL_{name}", raising=False)


@pytest.fixture
def endpoint() -> Iterator[SparqlServer]:
    with sparql_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'anyburl[sql]'")
    with postgres_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database without the table `predicted`."""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        server.psql("SET client_min_messages = warning; DROP TABLE IF EXISTS predicted;")
        return server.local
    pytest.importorskip("duckdb")
    return f"{request.param}:{tmp_path / 'graph.db'}"


def facts(n: int, *, reasons: bool = False) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "subject": [f"{EX}s{i}" for i in range(n)],
            "relation": [f"{EX}knows"] * n,
            "object": [f'{EX}it\'s "{i}"' for i in range(n)],
            "score": [0.5 + i / (2 * n) for i in range(n)],
            "probability": [None if i % 2 else 0.25 for i in range(n)],
            "rule": ["knows(X,Y) <= likes(X,Y)"] * n,
            "rules": pl.Series([1] * n, dtype=pl.Int32),
        }
    )
    told = pl.Series([[[f"{EX}s{i}", f"{EX}likes", "x"]] for i in range(n)], dtype=pl.List(pl.List(pl.String)))
    return frame.with_columns(facts=told) if reasons else frame


def written(path: Path, frame: pl.DataFrame) -> Path:
    with FactFile(path) as file:
        file.add(frame)
    return path


def triples(address: str, **options: object) -> list[tuple[str, ...]]:
    return sorted(load_dataset(address, ReadOptions(**options)).train.to_polars().rows())  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".parquet", ".tsv", ".jsonl", ".tsv.gz", ".jsonl.gz"])
@pytest.mark.parametrize("reasons", [False, True])
def test_every_format_gives_the_same_facts(tmp_path: Path, suffix: str, reasons: bool) -> None:
    expected = read_facts(written(tmp_path / "facts.parquet", facts(3, reasons=reasons)))
    found = read_facts(written(tmp_path / f"other{suffix}", facts(3, reasons=reasons)))
    assert found.columns == [*COLUMNS, "facts"][: 8 if reasons else 7]
    assert found.equals(expected)


@pytest.mark.parametrize("suffix", [".nt", ".ttl", ".nt.gz"])
def test_rdf_gives_the_triples(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("pyoxigraph")
    frame = facts(3).with_columns(object=pl.col("subject"))
    found = read_facts(written(tmp_path / f"facts{suffix}", frame))
    assert found.columns == COLUMNS[:3]
    assert found.equals(frame[COLUMNS[:3]])


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz"])
def test_accepted_facts_go_from_reviews_into_a_table(tmp_path: Path, suffix: str) -> None:
    accepted = [("vlc", "section", "video"), ("mpv", "section", "mpv")]
    write_facts(accepted, tmp_path / f"accepted{suffix}")
    assert publish(tmp_path / f"accepted{suffix}", f"sqlite:{tmp_path}/new.db#facts") == 2
    assert triples(f"sqlite:{tmp_path}/new.db#facts") == sorted(accepted)


def test_statements_about_facts_are_no_facts(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    fact = f"<{EX}a> <{EX}knows> <{EX}b> .\n"
    about = f'<urn:anyburl:statement:1> <urn:anyburl:provenance:score> "0.9" .\n{fact}'
    (tmp_path / "facts.nt").write_text(about)
    assert read_facts(tmp_path / "facts.nt").rows() == [(f"{EX}a", f"{EX}knows", f"{EX}b")]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("facts.tsv", "a\tb\nc\td\n", "got no column 'subject'"),
        ("facts.parquet", "no Parquet", "cannot read the facts"),
        ("facts.jsonl", "{", "cannot read the facts"),
        ("facts.tsv.gz", "\x1f\x8bno gzip", "facts"),
        ("facts.tsv", "subject\trelation\tobject\n", "no facts to publish"),
        ("facts.csv", "a,b\nc,d\n", "got no column 'subject'"),
        ("facts.xml", "", "ending in .parquet, .tsv, .csv, .jsonl, .nt"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: str, told: str) -> None:
    (tmp_path / name).write_text(content, "latin-1")
    with pytest.raises(DataError, match=told):
        read_facts(tmp_path / name)


def test_a_plan_sends_nothing(tmp_path: Path, endpoint: SparqlServer) -> None:
    plan = plan_publishing(written(tmp_path / "facts.tsv", facts(7)), endpoint.url, PublishOptions(batch_size=3))
    assert plan.summary[0] == f"7 facts into the default graph of {endpoint.url}"
    assert plan.summary[1].startswith("in 3 updates, ")
    assert len(plan.summary) == 7
    assert endpoint.asked == []


def test_facts_arrive_in_batches_in_the_graph_wanted(tmp_path: Path, endpoint: SparqlServer) -> None:
    path = written(tmp_path / "facts.parquet", facts(7))
    told: list[int] = []
    plan = plan_publishing(path, endpoint.url, PublishOptions(graph=f"{EX}new", batch_size=3))
    assert plan.write(told.append) == 7
    assert told == [3, 3, 1]
    assert len(endpoint.asked) == 3
    found = triples(endpoint.url, graphs=(f"{EX}new",))
    assert [fact[0] for fact in found] == [f"{EX}s{i}" for i in range(7)]


def test_what_may_pass_is_sent_again_and_is_there_once(tmp_path: Path, endpoint: SparqlServer) -> None:
    plan = plan_publishing(written(tmp_path / "facts.tsv", facts(4)), endpoint.url)
    endpoint.refusals = [503, 429]
    assert plan.write(lambda n: None) == 4
    assert plan.write(lambda n: None) == 4
    assert len(triples(endpoint.url)) == 4


def test_a_failure_says_how_far_it_came_and_may_be_repeated(tmp_path: Path, endpoint: SparqlServer) -> None:
    plan = plan_publishing(written(tmp_path / "facts.tsv", facts(7)), endpoint.url, PublishOptions(batch_size=3))
    endpoint.before = lambda text: endpoint.refusals.extend([500] * 4)
    with pytest.raises(DataError, match=r"responded with 500 .*; 1 of 3 updates went through \(3 facts\)"):
        plan.write(lambda n: None)
    endpoint.before = lambda text: None
    assert plan.write(lambda n: None) == 7
    assert len(triples(endpoint.url)) == 7


def test_facts_with_blank_nodes_are_left_out(tmp_path: Path, endpoint: SparqlServer) -> None:
    frame = facts(3).with_columns(subject=pl.Series(["_:b0", "a label", f"{EX}s"]))
    plan = plan_publishing(written(tmp_path / "facts.tsv", frame), endpoint.url)
    assert (plan.n_facts, plan.n_left_out) == (2, 1)
    assert "1 facts with a blank node" in plan.summary[-1]
    plan.write(lambda n: None)
    assert len(triples(endpoint.url)) == 2


def test_an_endpoint_that_asks_is_told_who_writes(
    tmp_path: Path, endpoint: SparqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.allow("me", "hunter2")
    plan = plan_publishing(written(tmp_path / "facts.tsv", facts(3)), endpoint.url)
    with pytest.raises(DataError, match="asks for credentials"):
        plan.write(lambda n: None)
    monkeypatch.setenv("ANYBURL_SPARQL_USER", "me")
    monkeypatch.setenv("ANYBURL_SPARQL_PASSWORD", "hunter2")
    assert plan.write(lambda n: None) == 3


@pytest.mark.parametrize("reasons", [False, True])
def test_a_table_is_made_and_filled(tmp_path: Path, database: str, reasons: bool) -> None:
    path = written(tmp_path / "facts.parquet", facts(5, reasons=reasons))
    address = f"{database}#predicted"
    plan = plan_publishing(path, address)
    assert "(a new table)" in plan.summary[0]
    if "graph.db" in database:
        assert not (tmp_path / "graph.db").exists()
    assert plan.write(lambda n: None) == 5
    found = triples(address, columns=("subject", "relation", "object"))
    assert found == sorted(facts(5)[COLUMNS[:3]].rows())
    scored = triples(database, query="SELECT subject, rule, rules FROM predicted WHERE probability = 0.25")
    assert len(scored) == 3


def test_facts_that_are_there_are_not_doubled(tmp_path: Path, database: str) -> None:
    address = f"{database}#predicted"
    plan_publishing(written(tmp_path / "a.parquet", facts(3)), address).write(lambda n: None)
    plan = plan_publishing(written(tmp_path / "b.tsv", facts(5)), address)
    assert "(those that are not there yet)" in plan.summary[0]
    assert plan.write(lambda n: None) == 2
    assert plan.write(lambda n: None) == 0
    assert len(triples(address, columns=("subject", "relation", "object"))) == 5


def test_a_table_with_other_columns_is_left_alone(tmp_path: Path, database: str) -> None:
    address = f"{database}#predicted"
    plan_publishing(written(tmp_path / "a.parquet", facts(3)), address).write(lambda n: None)
    with pytest.raises(DataError, match="has the columns subject, relation, object"):
        plan_publishing(written(tmp_path / "b.parquet", facts(3, reasons=True)), address)


def test_a_failure_leaves_no_table_and_no_file(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "facts.parquet", facts(3))
    plan = plan_publishing(path, f"{database}#predicted")

    def interrupted(*given: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("anyburl.tools.publishing._load", interrupted)
        with pytest.raises(KeyboardInterrupt):
            plan.write()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["facts.parquet"]
    assert "(a new table)" in plan_publishing(path, f"{database}#predicted").summary[0]
    assert plan.write() == 3


def test_a_connection_that_breaks_half_way_leaves_nothing(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.psql("SET client_min_messages = warning; DROP TABLE IF EXISTS predicted;")
    plan = plan_publishing(written(tmp_path / "facts.parquet", facts(3)), f"{postgres.local}#predicted")
    load = table._load

    def broken(*given: Any) -> str:
        loaded = load(*given)
        postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'anyburl'")
        return loaded

    monkeypatch.setattr(table, "_load", broken)
    with pytest.raises(DataError, match=r"terminating connection|server closed"):
        plan.write()
    assert postgres.psql("SELECT count(*) FROM pg_tables WHERE tablename = 'predicted'").strip() == "0"


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "facts.parquet", facts(3))
    with pytest.raises(DataError, match="expected the address"):
        plan_publishing(path, "graph.db")
    with pytest.raises(DataError, match="no table named"):
        plan_publishing(path, f"sqlite:{tmp_path / 'graph.db'}")
    with pytest.raises(OptionError, match="--graph is for SPARQL"):
        plan_publishing(path, f"sqlite:{tmp_path / 'graph.db'}#t", PublishOptions(graph=f"{EX}g"))
    with pytest.raises(OptionError, match="graph must be an IRI"):
        PublishOptions(graph="no iri")
    with pytest.raises(OptionError, match="batch_size must be at least 1"):
        PublishOptions(batch_size=0)


# Several processes.

PUBLISH = """
import sys, time
from pathlib import Path
from anyburl.base.errors import DataError
from anyburl.tools import publishing as table
from anyburl.tools.publishing import plan_publishing

facts, address, hook, ready, other = sys.argv[1:]
connected, load = table.connected, table._load

def meet(*given, **options):
    Path(ready).touch()
    while not Path(other).exists():
        time.sleep(0.01)
    return connected(*given, **options)

def slow(*given):
    loaded = load(*given)
    time.sleep(0.5)
    return loaded

def stuck(*given):
    loaded = load(*given)
    print("written, not committed", flush=True)
    sys.stdin.read()
    return loaded

if hook == "meet":
    table.connected, table._load = meet, slow
elif hook == "stuck":
    table._load = stuck
try:
    print(plan_publishing(facts, address).write())
except DataError as error:
    print(error)
    sys.exit(2)
"""


def publisher(path: Path, address: str, hook: str, *names: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PUBLISH, str(path), address, hook, *map(str, names or ("", ""))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ})


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_two_that_make_one_file_at_once_lose_nothing(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("duckdb")
    address = f"{kind}:{tmp_path / 'new.db'}#predicted"
    files = [written(tmp_path / f"{name}.parquet", facts(5)[name : name + 2]) for name in (0, 2)]
    ready = [tmp_path / "ready0", tmp_path / "ready1"]
    both = [publisher(file, address, "meet", ready[place], ready[1 - place]) for place, file in enumerate(files)]
    told = [process.communicate(timeout=300)[0] for process in both]
    codes = [process.returncode for process in both]
    assert set(codes) <= {0, 2}, told
    expected = {
        row for file, code in zip(files, codes, strict=True) if not code for row in read_facts(file)[COLUMNS[:3]].rows()
    }
    assert expected
    assert set(triples(address, columns=("subject", "relation", "object"))) == expected
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_kill_in_the_middle_loses_nothing(tmp_path: Path, kind: str, is_new: bool) -> None:
    pytest.importorskip("duckdb")
    address = f"{kind}:{tmp_path / 'new.db'}#predicted"
    if not is_new:
        assert plan_publishing(written(tmp_path / "before.parquet", facts(3)), address).write() == 3
    more = written(tmp_path / "more.parquet", facts(9))
    process = publisher(more, address, "stuck")
    assert process.stdout is not None
    assert process.stdout.readline() == "written, not committed\n"
    process.kill()
    process.communicate()
    assert (tmp_path / "new.db").exists() != is_new
    if not is_new:
        assert len(triples(address, columns=("subject", "relation", "object"))) == 3
    assert plan_publishing(more, address).write() == (9 if is_new else 6)
    assert len(triples(address, columns=("subject", "relation", "object"))) == 9
