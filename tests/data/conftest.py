"""Data sets by name, away from the internet and from what this machine has downloaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import FileServer, serving, stay_on_this_machine


@pytest.fixture(autouse=True)
def no_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    stay_on_this_machine(monkeypatch)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that ANYBURL_DATA names; downloads go to another empty one."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ANYBURL_DATA", str(folder))
    monkeypatch.setenv("ANYBURL_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Return a server; nobody pauses before another attempt."""
    monkeypatch.setattr("anyburl.data.remote.http.FIRST_PAUSE", 0.0)
    with serving() as started:
        yield started
