"""A small run with labels of all kinds, served in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from web_world import write_world

import anyburl
from anyburl.reasoning.reasoner import Reasoner
from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer, warm_up_explorer
from anyburl.web.options import ServeOptions

Serve = Callable[..., TestClient]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run on people, cities, countries and languages."""
    folder = tmp_path_factory.mktemp("web")
    write_world(folder / "world")
    anyburl.learn(folder / "world", out=folder / "run", paths=3_000, seed=1, threads=1)
    return folder / "run"


@pytest.fixture(scope="session")
def reasoner(run_folder: Path) -> Reasoner:
    """Return a reasoner; nobody waits for kernels after that."""
    warm_up_explorer(25)
    return Reasoner.open(run_folder)


@pytest.fixture
def explorer(reasoner: Reasoner, run_folder: Path, tmp_path: Path) -> Explorer:
    """Return an explorer whose reviews are its own."""
    return Explorer(reasoner, title="world", run=run_folder, reviews=tmp_path / "reviews.jsonl")


@pytest.fixture
def serve(explorer: Explorer) -> Iterator[Serve]:
    """Return what serves the run with some options; the host's name is what the browser says it is."""
    started: list[TestClient] = []

    def start(*, name: str = "127.0.0.1:8000", **options: object) -> TestClient:
        app = create_app(explorer, ServeOptions(**options))  # type: ignore[arg-type]
        client = TestClient(app, base_url=f"http://{name}", follow_redirects=False, raise_server_exceptions=False)
        started.append(client)
        return client.__enter__()

    yield start
    for client in started:
        client.__exit__(None, None, None)


@pytest.fixture
def client(serve: Serve) -> TestClient:
    """Return a reader on this machine."""
    return serve()
