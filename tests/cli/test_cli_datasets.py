"""`anyburl datasets`, and names where a command asks for DATA."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anyburl.cli.datasets import fitting_table
from anyburl.cli.notes import PlainConsole, SlowDownload
from anyburl.data import write_triples
from anyburl.data.catalogue import registry
from serving import FileServer, blob_id, serving, stay_on_this_machine

TEXT = b"ed\tspeaks\tdutch\nlisa\tspeaks\tdutch\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that ANYBURL_DATA names, with one data set that is known and one that is not."""
    for name in ("umls", "family"):
        (tmp_path / name).mkdir()
        write_triples([("ed", "speaks", "dutch")], tmp_path / name / "train.txt")
    (tmp_path / "names").mkdir()
    monkeypatch.setenv("ANYBURL_DATA", str(tmp_path))
    monkeypatch.setenv("ANYBURL_CACHE", str(tmp_path / "cache"))
    stay_on_this_machine(monkeypatch)
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[FileServer]:
    """Return a server that has the data set `tiny`."""
    with serving() as started:
        started.files["train.txt"] = TEXT
        table = f'[tiny.files]\ntrain = {{ url = "{started.url("train.txt")}", blob = "{blob_id(TEXT)}" }}\n'
        (home / "datasets.toml").write_text(table)
        yield started


def test_data_sets_are_listed_with_where_they_are(run: Any) -> None:
    shown = run("datasets").stdout
    lines = {line.split()[0]: line for line in shown.splitlines() if line.strip()}
    assert "built in" in lines["geo"]
    assert "here" in lines["umls"]
    assert "here" in lines["family"]
    assert "to download" in lines["FB15k-237"]
    assert "272,115" in lines["FB15k-237"]
    assert "to add" in lines["Hetionet"]
    assert "names" not in lines
    assert "to download: on first use, or with anyburl datasets get NAME, to " in shown


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_names_are_whole_on_a_terminal_of_any_width(width: int) -> None:
    console = PlainConsole(width=width)
    with console.capture() as capture:
        console.print(fitting_table([(entry, "to download", None) for entry in registry().values()], width))
    lines = [line for line in capture.get().splitlines() if line.strip()]
    assert [line.split()[0] for line in lines[2:]] == list(registry())
    assert all("to download" in line for line in lines[2:])
    assert ("licence" in lines[0]) == (width == 200)
    assert max(map(len, lines)) <= width
    if width >= 80:
        assert "…" not in capture.get()


def test_the_list_as_json(run_json: Any, home: Path) -> None:
    found = run_json("datasets")
    by_name = {entry["name"]: entry for entry in found["datasets"]}
    assert found["folder"] == str(home)
    assert by_name["umls"]["path"] == str(home / "umls")
    assert by_name["WN18RR"]["triples"] == {"train": 86835, "valid": 3034, "test": 3134}
    assert by_name["WN18RR"]["state"] == "to download"
    assert set(by_name["WN18RR"]["files"]) == {"train", "valid", "test"}
    assert by_name["NELL-995"]["triples"] == {"train": None, "valid": 11221, "test": 11099}
    assert (by_name["Hetionet"]["state"], by_name["Hetionet"]["files"]) == ("to add", {})


def test_getting_a_data_set_tells_where_it_is(run: Any, run_json: Any, home: Path) -> None:
    shown = run("datasets", "get", "UMLS").stdout
    assert "umls: train 1, valid 0, test 0; 2 entities, 1 relations" in shown
    assert f"it is in {home / 'umls'}" in shown
    assert run_json("datasets", "get", "UMLS")["path"] == str(home / "umls")
    assert "it is built in" in run("datasets", "get", "geo").stdout


def test_a_data_set_is_downloaded_and_then_it_is_here(run: Any, run_json: Any, home: Path, server: FileServer) -> None:
    def state() -> str:
        (entry,) = (entry for entry in run_json("datasets")["datasets"] if entry["name"] == "tiny")
        return f"{entry['state']}"

    assert state() == "to download"
    shown = run("datasets", "get", "tiny")
    assert "tiny: train 2, valid 0, test 0; 3 entities, 1 relations" in shown.stdout
    assert f"it is in {home / 'cache' / 'datasets' / 'tiny'}" in shown.stdout
    assert shown.stderr == ""
    assert state() == "here"


@pytest.mark.parametrize("command", ["learn", "index"])
def test_a_name_is_downloaded_wherever_data_is_asked_for(
    run_json: Any, geo_run: Path, tmp_path: Path, server: FileServer, command: str
) -> None:
    budget = ["--paths", 100] if command == "learn" else []
    told = run_json(command, "Tiny", *budget, "--out", tmp_path / "out")
    assert told["stopped_by" if command == "learn" else "train"] is not None
    assert len(server.asked) == 1


def test_a_download_that_takes_its_time_is_said_on_standard_error(
    run: Any, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.cli.notes.SECONDS_UNTIL_SAID", 0.05)
    server.pause = 0.5
    shown = run("datasets", "get", "tiny", "--json")
    assert json.loads(shown.stdout)["train"] == 2
    downloaded = r"downloading tiny \.\.\.\ndownloaded tiny in \d+\.\d s\n"
    read = r"reading tiny \.\.\.\nread tiny in \d+\.\d s\n"  # on a busy machine
    assert re.fullmatch(f"{downloaded}({read})?", shown.stderr)


def test_a_terminal_shows_how_much_of_which_file_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    with SlowDownload(PlainConsole(stderr=True), "downloading x", "downloaded x", after=0) as slow:
        slow.reach("FB15k-237-v1-ind/train.txt", 1_000_000, None)
        slow.reach("FB15k-237-v1-ind/train.txt", 10_500_000, 21_000_000)
        time.sleep(0.3)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "FB15k-237-v1-ind/train.txt" in shown
    assert "10.5/21.0 MB" in shown


def test_an_interrupted_download_is_resumed(spawn: Any, run: Any, home: Path, server: FileServer) -> None:
    server.pause = 60
    partial = home / "cache" / "datasets" / "tiny" / "train.txt.part"
    with spawn("datasets", "get", "tiny") as process:
        deadline = time.monotonic() + 60
        while not (partial.exists() and partial.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert partial.read_bytes() == TEXT[: len(TEXT) // 2]
    server.pause = 0
    run("datasets", "get", "tiny")
    assert server.ranges == [None, f"bytes={len(TEXT) // 2}-"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["got"], "`anyburl datasets list` or `anyburl datasets get NAME`, got 'got'"),
        (["get"], "name one data set: anyburl datasets get NAME"),
        (["get", "hetionet"], "Hetionet is not on this machine, and anyburl cannot download it: get it from"),
        (["get", "wn19"], "did you mean"),
    ],
)
def test_what_cannot_be_done_is_said(run: Any, arguments: list[str], sentence: str) -> None:
    assert sentence in run("datasets", *arguments, code=2).stderr
