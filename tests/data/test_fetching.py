"""One file over HTTP."""

from __future__ import annotations

import socket
import time
from email.message import Message
from email.utils import formatdate
from pathlib import Path
from urllib.error import HTTPError, URLError

import pytest

from anyburl.base.errors import DataError
from anyburl.data.remote import http
from anyburl.data.remote.http import fetch
from serving import FileServer

CONTENT = bytes(range(256)) * 100
HALF = len(CONTENT) // 2


@pytest.fixture
def partial(tmp_path: Path, server: FileServer) -> Path:
    server.files["file"] = CONTENT
    return tmp_path / "file.part"


def fetched(server: FileServer, partial: Path) -> bytes:
    fetch(server.url("file"), partial, lambda n, total: None)
    return partial.read_bytes()


def refusal(server: FileServer, partial: Path) -> str:
    with pytest.raises(DataError) as caught:
        fetched(server, partial)
    return str(caught.value).removeprefix(server.url("file"))


def test_a_file_arrives_and_how_much_of_it_is_told(server: FileServer, partial: Path) -> None:
    told: list[tuple[int, int | None]] = []
    fetch(server.url("file"), partial, lambda n, total: told.append((n, total)))
    assert partial.read_bytes() == CONTENT
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_a_connection_that_breaks_is_resumed(server: FileServer, partial: Path) -> None:
    server.n_breaks = 2
    assert fetched(server, partial) == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-", f"bytes={HALF + HALF // 2}-"]


def test_a_server_that_knows_no_ranges_sends_everything_again(server: FileServer, partial: Path) -> None:
    server.n_breaks, server.knows_ranges = 1, False
    assert fetched(server, partial) == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_nothing_is_added_to_what_is_complete(server: FileServer, partial: Path) -> None:
    partial.write_bytes(CONTENT)
    assert fetched(server, partial) == CONTENT


def test_another_part_than_the_one_asked_for_is_not_taken(
    server: FileServer, partial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    partial.write_bytes(CONTENT[:HALF])
    asked = "bytes=9-"
    monkeypatch.setattr(
        http, "Request", lambda url, headers, make=http.Request: make(url, headers=headers | {"Range": asked})
    )
    assert "the server sent a different range than requested" in refusal(server, partial)
    assert partial.read_bytes() == CONTENT[:HALF]


def test_what_arrived_is_kept_when_there_are_no_attempts_left(server: FileServer, partial: Path) -> None:
    server.n_breaks = http.RETRIES + 1
    sentence = refusal(server, partial)
    n_there = partial.stat().st_size
    assert f": the connection broke after {n_there:,} of {len(CONTENT):,} bytes" in sentence
    assert sentence.endswith(f"; {n_there:,} bytes are kept, and the next attempt resumes there")
    assert fetched(server, partial) == CONTENT
    assert server.ranges[-1] == f"bytes={n_there}-"


def test_what_arrived_is_kept_when_the_user_interrupts(server: FileServer, partial: Path) -> None:
    server.pause = 60

    def interrupt(n: int, total: int | None) -> None:
        if n == HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.url("file"), partial, interrupt)
    assert partial.read_bytes() == CONTENT[:HALF]
    server.pause = 0
    assert fetched(server, partial) == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_a_server_that_falls_silent_is_given_up(
    server: FileServer, partial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SECONDS_TO_WAIT", 0.2)
    monkeypatch.setattr(http, "RETRIES", 1)
    server.pause = 60
    sentence = refusal(server, partial)
    assert sentence.startswith(" cannot be downloaded: the server did not respond for 0.2 seconds; ")
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_a_file_that_is_not_there_is_asked_for_once(server: FileServer, partial: Path) -> None:
    server.files.clear()
    assert refusal(server, partial) == " cannot be downloaded: the server responded with 404 (Not Found)"
    assert len(server.asked) == 1
    assert not partial.exists()


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_in_trouble_is_asked_again(server: FileServer, partial: Path, code: int) -> None:
    server.refusals = [code] * http.RETRIES
    assert fetched(server, partial) == CONTENT
    server.refusals = [code] * (http.RETRIES + 1)
    partial.unlink()
    assert f"the server responded with {code}" in refusal(server, partial)


def test_a_name_that_no_machine_has_is_not_asked_for_again(
    server: FileServer, partial: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_calls = 0

    def urlopen(*arguments: object, **options: object) -> None:
        nonlocal n_calls
        n_calls += 1
        raise URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr(http, "urlopen", urlopen)
    assert refusal(server, partial) == " cannot be downloaded: Name or service not known"
    assert n_calls == 1


def test_what_the_disk_refuses_is_said_at_once(server: FileServer, partial: Path) -> None:
    partial.mkdir()
    with pytest.raises(DataError, match=r"file\.part: the file cannot be written \(Is a directory\)"):
        fetched(server, partial)
    assert len(server.asked) == 1


def test_pauses_grow_unless_the_server_says_how_long() -> None:
    assert [http.pause_after(n, OSError()) for n in range(3)] == [1, 2, 4]
    headers = Message()
    headers["Retry-After"] = "7"
    asked = HTTPError("", 429, "", headers, None)
    assert http.pause_after(0, asked) == 7
    headers.replace_header("Retry-After", "3600")
    assert http.pause_after(0, asked) == http.LONGEST_PAUSE
    headers.replace_header("Retry-After", formatdate(time.time() + 30, usegmt=True))
    assert 25 < http.pause_after(0, asked) <= 30
    headers.replace_header("Retry-After", formatdate(0, usegmt=True))
    assert http.pause_after(0, asked) == 0
    headers.replace_header("Retry-After", "soon")
    assert http.pause_after(1, asked) == 2
