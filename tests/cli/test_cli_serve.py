"""`anyburl serve`: how it starts and ends; what it serves is told in tests/web."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest


def test_a_port_in_use_is_refused_in_one_sentence(run: Any, geo_run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", geo_run, "--port", port, code=2)
    assert result.stderr == f"error: port {port} is in use: choose another with --port\n"


def test_others_are_let_in_with_a_token_only(run: Any, geo_run: Path) -> None:
    assert "lets others in: set a --token" in run("serve", geo_run, "--host", "0.0.0.0", code=2).stderr
    assert "at least 8 characters" in run("serve", geo_run, "--token", "short", code=2).stderr


def test_what_is_not_there_is_refused(run: Any, tmp_path: Path) -> None:
    assert "no run folder" in run("serve", tmp_path / "nothing", code=2).stderr
    (tmp_path / "rules.txt").write_text("1\t1\t1.0\tp(X,Y) <= q(X,Y)\n")
    assert "--data is missing" in run("serve", tmp_path / "rules.txt", code=2).stderr


def test_a_missing_extra_is_named(run: Any, geo_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.cli.serve.find_spec", lambda name: None)
    assert "pip install 'anyburl[web]'" in run("serve", geo_run, code=2).stderr


def test_an_embedding_is_not_for_pages(run: Any, geo_run: Path) -> None:
    assert "by rules alone" in run("serve", geo_run, "--aggregation", "hybrid", code=2).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_interrupted(spawn: Any, geo_run: Path, tmp_path: Path, number: signal.Signals) -> None:
    process = spawn("serve", geo_run, "--port", 0, "--json", "--reviews", tmp_path / "reviews.jsonl")
    told = ""
    while not told.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        told += line
    with urllib.request.urlopen(json.loads(told)["address"], timeout=30) as answered:
        assert b"rules know about" in answered.read()
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert errors.endswith("stopped\n")
    assert "error" not in errors
