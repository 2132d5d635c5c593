"""A small run with labels of all kinds, served in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from web_world import write_world

import anyburl
from anyburl.reasoning.reasoner import Reasoner
from anyburl.tools.options import ServeOptions
from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer, warm_up_explorer

Serve = Callable[..., TestClient]


class CompiledTemplates(BytecodeCache):
    """Keeps compiled templates in memory."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._kept[bucket.key] = bucket.bytecode_to_string()


@pytest.fixture(scope="session", autouse=True)
def compiled_templates() -> Iterator[None]:
    """Compile templates once: a page takes a tenth of a second to compile, and nearly every test makes an app."""
    with pytest.MonkeyPatch.context() as patch:
        environment = partial(Environment, bytecode_cache=CompiledTemplates())
        patch.setattr("anyburl.web.site.Environment", environment)
        yield


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
