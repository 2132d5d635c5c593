"""Runs learned from a database or an endpoint, and facts sent back."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from anyburl.cli import loading as unlocking
from anyburl.data.dataset import load_dataset
from anyburl.data.remote import addresses as credentials
from cli.test_cli_signals import wait_for
from serving import stay_on_this_machine
from sparql_server import SparqlServer, sparql_server

EX = "http://example.org/"


@pytest.fixture(autouse=True)
def no_surprises(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_on_this_machine(monkeypatch)
    monkeypatch.setattr("anyburl.data.remote.http.FIRST_PAUSE", 0.0)
    monkeypatch.setattr(credentials, "_given", {})
    monkeypatch.setattr(credentials, "_asking", set())
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"ANYBURL_SPARQL_{name}", raising=False)


@pytest.fixture(scope="module")
def geo_rows() -> list[tuple[str, str, str]]:
    return load_dataset("geo").train.to_polars().rows()


@pytest.fixture
def database(tmp_path: Path, geo_rows: list[tuple[str, str, str]]) -> Path:
    """Return a database that holds geo's train split in the table `facts`."""
    path = tmp_path / "geo.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE facts (s TEXT, p TEXT, o TEXT)")
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", geo_rows)
        connection.commit()
    return path


@pytest.fixture
def endpoint(geo_rows: list[tuple[str, str, str]]) -> Iterator[SparqlServer]:
    """Return an endpoint that holds geo's train split."""
    with sparql_server() as server:
        server.fill([tuple(f"<{EX}{label.replace(' ', '_')}>" for label in row) for row in geo_rows])  # type: ignore[misc]
        yield server


def learn(run: Any, data: str, out: Path, *flags: object) -> None:
    run("learn", data, "--out", out, "--paths", 2000, "--quiet", *flags)


def everything_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_a_run_remembers_the_address_and_the_query(run: Any, database: Path, tmp_path: Path) -> None:
    query = "SELECT s, p, o FROM facts"
    learn(run, f"sqlite:{database}", tmp_path / "run", "--query", query)
    described = json.loads((tmp_path / "run" / "options.json").read_text())["data"]
    assert described["source"] == f"sqlite:{database}"
    assert described["reading"] == {"query": query}


def test_a_run_is_updated_when_its_table_has_changed(run: Any, run_json: Any, database: Path, tmp_path: Path) -> None:
    learn(run, f"sqlite:{database}#facts", tmp_path / "run")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM facts WHERE rowid % 50 = 0")
        connection.commit()
    again = run("learn", "--out", tmp_path / "run", "--resume", "--paths", 2000, "--timeout", 30)
    assert "0 triples added" in again.stdout


def test_a_prepared_run_answers_without_the_network(run: Any, run_json: Any, tmp_path: Path) -> None:
    with sparql_server() as server:
        rows = load_dataset("geo").train.to_polars().rows()
        server.fill([tuple(f"<{EX}{label.replace(' ', '_')}>" for label in row) for row in rows])  # type: ignore[misc]
        learn(run, server.url, tmp_path / "run")
        run("prepare", tmp_path / "run", "--quiet")
        question = "predict", tmp_path / "run", f"{EX}France", f"{EX}official_language", "?", "--top", 2
        before = run_json(*question)
    assert run_json(*question) == before


def test_an_index_is_built_from_an_endpoint(run_json: Any, endpoint: SparqlServer, tmp_path: Path) -> None:
    told = run_json("index", endpoint.url, "--out", tmp_path / "index", "--page-size", 100)
    assert told["train"] == len(load_dataset("geo").train)


def test_a_secret_is_nowhere_to_be_found(
    run: Any, endpoint: SparqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.allow("somebody", "hunter2")
    monkeypatch.setenv("ANYBURL_SPARQL_USER", "somebody")
    monkeypatch.setenv("ANYBURL_SPARQL_PASSWORD", "hunter2")
    learn(run, endpoint.url, tmp_path / "run")
    run("prepare", tmp_path / "run", "--quiet")
    kept = everything_in(tmp_path / "run")
    assert endpoint.url.encode() in kept
    assert not any(secret.encode() in kept for secret in ("hunter2", "somebody", (endpoint.login or "").split()[1]))


DOORS = [
    ["learn", "ADDRESS", "--out", "run"],
    ["index", "ADDRESS", "--out", "run"],
    ["doctor", "ADDRESS"],
    ["rules", "ADDRESS"],
    ["predict", "ADDRESS", "a", "r", "?"],
    ["evaluate", "rules.txt", "--data", "ADDRESS"],
    ["rescore", "rules.txt", "--data", "ADDRESS", "--out", "run.txt"],
    ["publish", "facts.tsv", "ADDRESS"],
    ["complete", "rules.txt", "--data", "ADDRESS", "--out", "run.tsv"],
    ["complete", "rules.txt", "--data", "geo", "--out", "ADDRESS"],
]


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_a_secret_in_an_address_is_repeated_by_no_command(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules.txt").write_text("4\t2\t0.5\tcapital(X,Y) <= located_in(Y,X)\n")
    Path("facts.tsv").write_text("subject\trelation\tobject\tscore\na\tr\tb\t0.5\n")
    for address in (
        "postgresql://me:hunter2@localhost/db#t",
        "http://me:hunter2@localhost/sparql",
        "sparql:http://127.0.0.1:9/sparql?pwd=hunter2",
        "sparql:http://127.0.0.1:9/sparql?x=hunter2",  # which may be a secret
        "sparql:http://127.0.0.1:9/b l?x=hunter2",
        "sparql:http://127.0.0.1:9/\u00e4?x=hunter2",
    ):
        arguments = [address if word == "ADDRESS" else word for word in door]
        if door[0] == "publish" and "pwd" not in address and "me:" not in address:
            arguments.append("--write")
        logged = ["--log-json", "log.jsonl"] if door[0] in ("learn", "index", "evaluate", "complete") else []
        monkeypatch.setattr("sys.argv", ["anyburl", *arguments, *logged])
        told = run(*arguments, *logged, code=2)
        assert told.stderr.startswith("error: ")
        assert told.stderr.count("\n") == 1
        assert "hunter2" not in told.stderr + told.stdout
    assert b"hunter2" not in everything_in(tmp_path)
    assert not [*tmp_path.glob("run*")]


def test_a_run_keeps_no_parameter_that_may_be_a_secret(run: Any, endpoint: SparqlServer, tmp_path: Path) -> None:
    address = f"sparql:{endpoint.url}?unit=hunter2"
    learn(run, address, tmp_path / "run", "--log-json", tmp_path / "log")
    assert f"{endpoint.url}?unit=***".encode() in everything_in(tmp_path)
    question = "predict", tmp_path / "run", f"{EX}France", f"{EX}official_language", "?"
    told = run(*question, code=2)
    assert "this address was kept without its parameters, which may be secret: pass the whole address" in told.stderr
    run(*question, "--data", address)
    run("learn", address, "--out", tmp_path / "run", "--resume", "--paths", 2000)
    assert b"hunter2" not in everything_in(tmp_path)


@pytest.mark.parametrize("token", ["hunter2\nsecond", "hunter2\u20ac"])
def test_a_token_that_no_header_can_hold_is_not_repeated(
    run: Any, endpoint: SparqlServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    endpoint.allow("me", "somehow")
    monkeypatch.setenv("ANYBURL_SPARQL_TOKEN", token)
    told = run("learn", endpoint.url, "--out", tmp_path / "run", code=2)
    assert told.stderr == "error: ANYBURL_SPARQL_TOKEN is no token: expected one line of ASCII characters\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Put someone at a terminal who answers with me and hunter2; return what they are asked."""
    asked: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return "me\n"

        def write(self, text: str) -> None:
            asked.append(text)

        def flush(self) -> None:
            pass

    terminal = Terminal()
    monkeypatch.setattr(unlocking, "sys", type("System", (), {"stdin": terminal, "stderr": terminal}))
    monkeypatch.setattr(unlocking.getpass, "getpass", lambda question: asked.append(question) or "hunter2")
    return asked


def test_someone_at_a_terminal_is_asked(run: Any, endpoint: SparqlServer, tmp_path: Path, asked: list[str]) -> None:
    endpoint.allow("me", "hunter2")
    learn(run, endpoint.url, tmp_path / "run")
    assert asked == [f"user name for 127.0.0.1:{endpoint.server_address[1]}: ", "password for me: "]
    assert b"hunter2" not in everything_in(tmp_path / "run")


def test_nobody_is_asked_when_the_credentials_of_the_environment_are_rejected(
    run: Any, endpoint: SparqlServer, tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.allow("me", "hunter2")
    monkeypatch.setenv("ANYBURL_SPARQL_TOKEN", "outdated")
    told = run("learn", endpoint.url, "--out", tmp_path / "run", code=2).stderr
    assert told == (
        f"error: {endpoint.url} rejects the credentials: set ANYBURL_SPARQL_USER and ANYBURL_SPARQL_PASSWORD, "
        "or ANYBURL_SPARQL_TOKEN\n"
    )
    assert not asked


@pytest.mark.parametrize(
    ("data", "flags", "told"),
    [
        ("sqlite:geo.db#fcts", [], "no such table: fcts"),
        ("sqlite:geo.db", [], "no table named; add #TABLE to the address (there are facts)"),
        ("sqlite:geo.db", ["--query", "SELEKT 1"], "the database rejected 'SELEKT 1'"),
        ("sqlite:geo.db", ["--query", " "], "--query must be a query"),
        ("sqlite:other.db#facts", [], "no such file"),
        ("http://127.0.0.1:9/sparql", [], "does not respond: Connection refused"),
        (
            "http://127.0.0.1:9/sparql",
            ["--timeout", "0"],
            "--timeout must be a number of seconds above 0, at most 1e+09, got",
        ),
        ("http://127.0.0.1:9/sparql", ["--page-size", "0"], "--page-size must be at least 1, got 0"),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Any,
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: str,
    flags: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("learn", data, "--out", tmp_path / "run", *flags, code=2)
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["geo.db"]


def test_facts_are_reviewed_and_then_published(run: Any, run_json: Any, endpoint: SparqlServer, tmp_path: Path) -> None:
    learn(run, endpoint.url, tmp_path / "run")
    file = tmp_path / "missing.tsv"
    n_facts = run_json("complete", tmp_path / "run", "--out", file, "--min-score", 0.5)["facts"]
    assert n_facts > 0
    before = len(endpoint.store)
    dry = run("publish", file, endpoint.url, "--graph", f"{EX}new")
    assert f"{n_facts:,} facts into the graph <{EX}new>" in dry.stdout
    assert "nothing was sent: add --write to send the facts" in dry.stdout
    assert len(endpoint.store) == before
    told = run_json("publish", file, endpoint.url, "--graph", f"{EX}new", "--write")
    assert told["facts"] == told["written"] == n_facts
    assert len(endpoint.store) == before + n_facts


def test_facts_go_into_a_table(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "missing.parquet"
    n_facts = run_json("complete", geo_run, "--out", file, "--min-score", 0.5)["facts"]
    address = f"sqlite:{tmp_path / 'out.db'}#predicted"
    assert run_json("publish", file, address)["written"] is None
    assert not (tmp_path / "out.db").exists()
    assert run_json("publish", file, address, "--write")["written"] == n_facts
    assert (
        f"0 facts written to {address}; {n_facts:,} were there before"
        in run("publish", file, address, "--write").stdout
    )


def test_complete_points_to_publish(run: Any, geo_run: Path) -> None:
    told = run("complete", geo_run, "--out", "sparql:http://127.0.0.1:9/update", code=2)
    assert "then run: anyburl publish FILE sparql:http://127.0.0.1:9/update" in told.stderr


@pytest.mark.parametrize("command", ["learn", "index"])
def test_an_interrupt_while_reading_leaves_nothing_behind(
    spawn: Any, endpoint: SparqlServer, tmp_path: Path, command: str
) -> None:
    endpoint.pause = 60.0
    with spawn(command, endpoint.url, "--out", tmp_path / "out") as process:
        wait_for(lambda: endpoint.asked, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "error: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_tells_what_is_in(
    run: Any, run_json: Any, spawn: Any, geo_run: Path, endpoint: SparqlServer, tmp_path: Path
) -> None:
    n_facts = run_json("complete", geo_run, "--out", tmp_path / "missing.tsv", "--min-score", 0.5)["facts"]

    def wait(text: str) -> None:
        if len(endpoint.asked) > 1:
            endpoint.is_over.wait(60.0)

    endpoint.before = wait
    flags = "--write", "--batch-size", 2
    with spawn("publish", tmp_path / "missing.tsv", endpoint.url, *flags) as process:
        wait_for(lambda: len(endpoint.asked) > 1, process)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"2 of {n_facts:,} facts were written; send the file again" in stderr
