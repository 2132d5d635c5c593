"""Downloads of data sets, from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request

import pytest

from anyburl.base.errors import DataError
from anyburl.data import load_dataset, write_triples
from anyburl.data.catalogue import download_folder
from anyburl.data.sources import fetch_dataset
from serving import FileServer, blob_id

TRAIN = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch")]
TEXT = "".join("\t".join(triple) + "\n" for triple in TRAIN).encode()
Offer = Callable[..., None]


@pytest.fixture
def offer(server: FileServer, home: Path) -> Offer:
    """Return the function that serves a file as the train split of FB15k-237 and registers its address."""

    def serve(
        content: bytes = TEXT, *, name: str = "here/train.txt", table: str = "fb15k-237", **fields: object
    ) -> None:
        server.files[name] = content
        stated = {"url": server.url(name), **(fields or {"blob": blob_id(content)})}
        said = ", ".join(f"{key} = {json.dumps(value)}" for key, value in stated.items())
        (home / "datasets.toml").write_text(f'["{table}".files]\ntrain = {{ {said} }}\n')

    return serve


def refusal(name: str) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    return str(caught.value)


def folder_of(name: str) -> Path:
    return download_folder() / name


def kept(name: str) -> list[str]:
    """Return what there is of a data set, but for what the program keeps for itself."""
    return sorted(set(os.listdir(folder_of(name))) - {"checked.json", ".lock"})


@pytest.mark.parametrize("packed", [False, True])
def test_a_data_set_is_downloaded_once(offer: Offer, server: FileServer, packed: bool) -> None:
    content = gzip.compress(TEXT) if packed else TEXT
    offer(content, name="train.txt.gz" if packed else "train.txt")
    for _ in range(2):
        data = load_dataset("FB15k237")
        assert data.train.to_polars().rows() == TRAIN
        assert data.source == str(folder_of("FB15k-237"))
    assert len(server.asked) == 1
    assert kept("FB15k-237") == ["train.txt.gz" if packed else "train.txt"]


@pytest.mark.parametrize(
    "checksums",
    [
        {"blob": blob_id(TEXT)},
        {"sha256": hashlib.sha256(TEXT).hexdigest()},
        {"blob": blob_id(TEXT), "sha256": hashlib.sha256(TEXT).hexdigest(), "bytes": len(TEXT), "lines": 2},
    ],
)
def test_either_checksum_will_do(offer: Offer, checksums: dict[str, object]) -> None:
    offer(**checksums)
    assert len(load_dataset("fb15k-237").train) == 2


@pytest.mark.parametrize(
    ("checksums", "sentence"),
    [
        ({"blob": "0" * 40}, f"expected the git blob {'0' * 40}, got {blob_id(TEXT)}"),
        (
            {"blob": blob_id(TEXT), "sha256": "0" * 64},
            f"expected the SHA-256 {'0' * 64}, got {hashlib.sha256(TEXT).hexdigest()}",
        ),
    ],
)
def test_a_wrong_checksum_leaves_nothing_behind(
    offer: Offer, server: FileServer, checksums: dict[str, object], sentence: str
) -> None:
    offer(**checksums)
    said = refusal("fb15k-237")
    assert said == f"{server.url('here/train.txt')} has the wrong checksum: {sentence}; the download was discarded"
    assert kept("FB15k-237") == []
    assert len(server.asked) == 1


def test_other_columns_are_put_in_order(offer: Offer, server: FileServer) -> None:
    relation_first = b"speaks\ted\tdutch\nspeaks\tlisa\tdutch\n"
    offer(relation_first, blob=blob_id(relation_first), columns=["relation", "subject", "object"])
    assert load_dataset("fb15k-237").train.to_polars().rows() == TRAIN
    assert load_dataset(folder_of("FB15k-237")).train.to_polars().rows() == TRAIN
    assert load_dataset("fb15k-237").train.to_polars().rows() == TRAIN
    assert len(server.asked) == 1
    assert kept("FB15k-237") == ["train.txt"]


def test_a_new_address_takes_the_place_of_the_old_file(offer: Offer, server: FileServer) -> None:
    offer()
    assert len(load_dataset("fb15k-237").train) == 2
    offer(gzip.compress(TEXT + b"ed\tknows\tlisa\n"), name="new/train.txt.gz")
    assert len(load_dataset("fb15k-237").train) == 3
    assert kept("FB15k-237") == ["train.txt.gz"]


@pytest.mark.parametrize("damage", ["cut", "removed", "not checked"])
def test_what_is_damaged_is_downloaded_again(offer: Offer, server: FileServer, damage: str) -> None:
    offer()
    load_dataset("fb15k-237")
    file, checked = folder_of("FB15k-237") / "train.txt", folder_of("FB15k-237") / "checked.json"
    if damage == "cut":
        file.write_bytes(TEXT[:-3])
    elif damage == "removed":
        file.unlink()
    else:
        checked.write_text("[")
    assert len(load_dataset("fb15k-237").train) == 2
    assert len(server.asked) == 2


def test_a_downloaded_data_set_stays_without_its_address(offer: Offer, home: Path, server: FileServer) -> None:
    offer(table="my own")
    assert load_dataset("My-Own").name == "my own"
    (home / "datasets.toml").unlink()
    assert len(load_dataset("my-own").train) == 2
    assert len(server.asked) == 1


def test_what_was_kept_in_a_folder_that_is_gone_is_downloaded_again(offer: Offer, server: FileServer) -> None:
    offer()
    source = load_dataset("fb15k-237").source
    assert source is not None
    for file in Path(source).iterdir():
        file.unlink()
    Path(source).rmdir()
    assert len(load_dataset(source).train) == 2


def test_a_folder_of_data_sets_goes_before_a_download(offer: Offer, home: Path, server: FileServer) -> None:
    offer()
    (home / "fb15k-237").mkdir()
    write_triples(TRAIN[:1], home / "fb15k-237" / "train.txt")
    assert len(load_dataset("FB15k-237").train) == 1
    assert not server.asked


def test_a_download_that_broke_too_often_is_resumed_the_next_time(offer: Offer, server: FileServer) -> None:
    offer()
    server.n_breaks = 4
    assert "cannot be downloaded" in refusal("fb15k-237")
    n_there = (folder_of("FB15k-237") / "train.txt.part").stat().st_size
    assert n_there > len(TEXT) // 2
    assert len(load_dataset("fb15k-237").train) == 2
    assert server.ranges[-1] == f"bytes={n_there}-"
    assert kept("FB15k-237") == ["train.txt"]


def test_rubbish_left_by_a_broken_download_is_thrown_away(offer: Offer, server: FileServer) -> None:
    offer()
    folder = folder_of("FB15k-237")
    folder.mkdir(parents=True)
    for rubbish in (b"something else", b"something longer" * 100):
        (folder / "train.txt.part").write_bytes(rubbish)
        assert load_dataset("fb15k-237").train.to_polars().rows() == TRAIN
        (folder / "train.txt").unlink()


def test_an_address_that_is_not_there_is_named(offer: Offer, server: FileServer) -> None:
    offer()
    server.files.clear()
    assert refusal("fb15k-237") == (
        f"{server.url('here/train.txt')} cannot be downloaded: the server responded with 404 (Not Found)"
    )


def test_progress_names_the_file(offer: Offer, server: FileServer) -> None:
    offer()
    told: list[tuple[str, int, int | None]] = []
    fetch_dataset("fb15k-237", lambda *arguments: told.append(arguments))
    assert told[-1] == ("FB15k-237/train.txt", len(TEXT), len(TEXT))
    told.clear()
    fetch_dataset("fb15k-237", lambda *arguments: told.append(arguments))
    assert not told


def test_two_processes_download_once(offer: Offer, server: FileServer) -> None:
    offer()
    server.pause = 1.0
    command = [sys.executable, "-c", "import anyburl; print(len(anyburl.load_dataset('fb15k-237').train))"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in started] == ["2\n", "2\n"]
    assert len(server.asked) == 1
    assert kept("FB15k-237") == ["train.txt"]


def test_a_folder_that_cannot_be_written_is_named(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer()
    (tmp_path / "file").touch()
    monkeypatch.setenv("ANYBURL_CACHE", str(tmp_path / "file"))
    assert refusal("fb15k-237").endswith(" (Not a directory): set ANYBURL_CACHE to another folder")


def test_a_built_in_address_is_asked_for_when_its_name_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(request: Request, timeout: float) -> None:
        raise URLError(ConnectionRefusedError(111, "Connection refused"))

    monkeypatch.setattr("anyburl.data.remote.http.RETRIES", 0)
    monkeypatch.setattr("anyburl.data.remote.http.urlopen", refuse)
    assert re.fullmatch(
        r"https://raw\.githubusercontent\.com/.*/FB15k-237/train\.txt cannot be downloaded: Connection refused",
        refusal("fb15k-237"),
    )
