"""The explorer on a run of geo, in a process of its own, and Chromium to look at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import anyburl

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def sync_api() -> Any:
    """Return what drives a browser; tests are skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    return pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def chromium(sync_api: Any) -> Iterator[Any]:
    """Return a browser. As long as it is there, other tests in this process cannot start event loops."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """Serve a run; return where."""
    command = [sys.executable, "-m", "anyburl", "serve", str(run), "--port", "0", "--json", "--quiet"]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        told = ""
        while not told.rstrip().endswith("}"):
            line = server.stdout.readline()
            assert line, "the server ended"
            told += line
        yield json.loads(told)["address"].rstrip("/")
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="session")
def address(sync_api: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a run of geo; return where."""
    run = tmp_path_factory.mktemp("browser") / "geo"
    anyburl.learn("geo", out=run, paths=20_000, seed=1)
    with serving(run) as there:
        yield there


@pytest.fixture(scope="session")
def large_address(
    sync_api: Any, shared_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Serve a short run on a fifth of FB15k-237, with its long names and its hubs; return where."""
    facts = anyburl.load_dataset(shared_data("FB15k-237")).train.to_polars().gather_every(5)
    folder = tmp_path_factory.mktemp("browser")
    facts.write_csv(folder / "train.txt", separator="\t", include_header=False)
    anyburl.learn(folder / "train.txt", out=folder / "run", paths=5_000, max_acyclic=0, seed=1)
    with serving(folder / "run") as there:
        yield there


@pytest.fixture
def open_page(chromium: Any, address: str) -> Iterator[Open]:
    """Return what opens a page of the explorer; nothing may be written to the console."""
    contexts, said = [], []

    def start(path: str = "/", **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1300, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(address + path)
        return page

    yield start
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="session")
def axe() -> str:
    """Return the script that checks accessibility."""
    return (Path(__file__).parent / "axe.min.js").read_text("utf-8")
