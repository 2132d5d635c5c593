"""Data sets by name: the registry, the folder $ANYBURL_DATA, and downloads from a server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from anyburl.errors import DataError
from anyburl.triples import load_dataset, write_triples
from anyburl.triples.registry import download_folder, find_entry, plain_name, registry

TRAIN = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch")]
TEXT = "".join("\t".join(triple) + "\n" for triple in TRAIN)


class Server(ThreadingHTTPServer):
    """Serves files from memory; the first `n_breaks` answers break off after half of what is asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.n_breaks = 0
        self.asked: list[tuple[str, str | None]] = []

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        content = self.server.files.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        part = content[start:]
        if self.server.n_breaks:
            self.server.n_breaks -= 1
            part = part[: len(part) // 2]
        self.wfile.write(part)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    monkeypatch.setattr("anyburl.triples.download.BYTES_AT_A_TIME", 1)
    with Server() as serving:
        thread = Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that ANYBURL_DATA names; downloads go to another empty one."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ANYBURL_DATA", str(folder))
    monkeypatch.setenv("ANYBURL_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def offer(server: Server, home: Path) -> Callable[..., None]:
    """Return the function that serves a file as the train split of FB15k-237 and registers its address."""

    def serve(content: bytes, *, name: str = "here/train.txt", checksum: str = "", table: str = "fb15k-237") -> None:
        server.files[name] = content
        sha256 = checksum or hashlib.sha256(content).hexdigest()
        text = f'["{table}".files]\ntrain = {{ url = "{server.url(name)}", sha256 = "{sha256}" }}\n'
        (home / "datasets.toml").write_text(text)

    return serve


def refusal(name: str) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    return str(caught.value)


def test_the_common_benchmarks_are_known_by_name() -> None:
    known = registry()
    paper = ["WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10"]
    others = ["CoDEx-S", "CoDEx-M", "CoDEx-L", "kinship", "umls", "nations", "Hetionet", "OpenBioLink", "Wikidata5M"]
    assert set(known) == {"geo", *paper, *others}
    assert all(entry.citation and entry.source for name, entry in known.items() if name != "geo")
    assert len({plain_name(name) for name in known}) == len(known)


def test_no_address_is_given_that_was_not_checked() -> None:
    assert not [entry.name for entry in registry().values() if entry.files]


def test_the_registry_is_right_about_geo() -> None:
    check_counts("geo", load_dataset("geo"))


@pytest.mark.parametrize("name", ["nations", "umls", "CoDEx-S", "WN18", "WN18RR", "FB15k-237", "FB15k"])
def test_the_registry_is_right_about_what_is_here(
    shared_data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("ANYBURL_DATA", str(shared_data(name).parent))
    check_counts(name, load_dataset(name.lower().replace("-", "_")))


def check_counts(name: str, data: object) -> None:
    entry = find_entry(name)
    assert entry is not None
    tables = (data.train, data.valid, data.test)  # type: ignore[attr-defined]
    assert tuple(len(table) + table.n_duplicates for table in tables) == entry.triples
    words = data.vocabulary  # type: ignore[attr-defined]
    assert (words.n_entities, words.n_relations) == (entry.entities, entry.relations)


@pytest.mark.parametrize("written", ["FB15k-237", "fb15k-237", "fb15k237", "FB15K_237"])
def test_a_name_is_found_in_the_folder_of_data_sets_however_it_is_written(home: Path, written: str) -> None:
    folder = home / "FB15k-237"
    folder.mkdir()
    write_triples(TRAIN, folder / "train.txt")
    data = load_dataset(written)
    assert (data.name, data.source, len(data.train)) == ("FB15k-237", str(folder), 2)


def test_a_data_set_without_an_address_is_asked_for_in_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal("wn18rr") == (
        "WN18RR is not on this machine, and there is no address of it that was checked: put train, valid and test "
        f"into {home / 'WN18RR'} (from github.com/TimDettmers/ConvE)"
    )
    monkeypatch.delenv("ANYBURL_DATA")
    assert "into $ANYBURL_DATA/WN18RR (from" in refusal("WN18RR")


def test_a_mistyped_name_is_answered_with_those_like_it(home: Path) -> None:
    assert refusal("fb15k-238").endswith("did you mean FB15k-237 or FB15k?")


@pytest.mark.parametrize("packed", [False, True])
def test_a_data_set_is_downloaded_once(offer: Callable[..., None], server: Server, packed: bool) -> None:
    content = gzip.compress(TEXT.encode()) if packed else TEXT.encode()
    offer(content, name="train.txt.gz" if packed else "train.txt")
    for _ in range(2):
        data = load_dataset("FB15k237")
        assert data.train.to_polars().rows() == TRAIN
        assert data.source == str(download_folder() / "FB15k-237")
    assert len(server.asked) == 1
    assert sorted(os.listdir(download_folder() / "FB15k-237")) == ["train.txt.gz" if packed else "train.txt"]


def test_a_downloaded_data_set_stays_without_its_address(
    offer: Callable[..., None], home: Path, server: Server
) -> None:
    offer(TEXT.encode(), table="my own")
    assert load_dataset("My-Own").name == "my own"
    (home / "datasets.toml").unlink()
    assert len(load_dataset("my-own").train) == 2
    assert len(server.asked) == 1


def test_a_folder_of_data_sets_goes_before_a_download(offer: Callable[..., None], home: Path, server: Server) -> None:
    offer(TEXT.encode())
    (home / "fb15k-237").mkdir()
    write_triples(TRAIN[:1], home / "fb15k-237" / "train.txt")
    assert len(load_dataset("FB15k-237").train) == 1
    assert not server.asked


def test_a_broken_download_is_gone_on_with(offer: Callable[..., None], server: Server) -> None:
    offer(TEXT.encode())
    server.n_breaks = 2
    assert load_dataset("fb15k-237").train.to_polars().rows() == TRAIN
    half = len(TEXT) // 2
    three_quarters = half + (len(TEXT) - half) // 2
    assert [wanted for _, wanted in server.asked] == [None, f"bytes={half}-", f"bytes={three_quarters}-"]


def test_a_download_that_broke_too_often_is_gone_on_with_the_next_time(
    offer: Callable[..., None], server: Server
) -> None:
    offer(TEXT.encode())
    server.n_breaks = 3
    assert "cannot be downloaded" in refusal("fb15k-237")
    assert (download_folder() / "FB15k-237" / "train.txt.part").stat().st_size > len(TEXT) // 2
    assert len(load_dataset("fb15k-237").train) == 2
    assert os.listdir(download_folder() / "FB15k-237") == ["train.txt"]


def test_rubbish_left_by_a_broken_download_is_thrown_away(offer: Callable[..., None], server: Server) -> None:
    offer(TEXT.encode())
    folder = download_folder() / "FB15k-237"
    folder.mkdir(parents=True)
    for rubbish in (b"something else", b"something longer" * 100):
        (folder / "train.txt.part").write_bytes(rubbish)
        assert len(load_dataset("fb15k-237").train) == 2
        (folder / "train.txt").unlink()


def test_a_wrong_checksum_leaves_nothing_behind(offer: Callable[..., None], server: Server) -> None:
    offer(TEXT.encode(), checksum="0" * 64)
    assert f"has not the checksum it should have, {'0' * 64}: nothing of it was kept" in refusal("fb15k-237")
    assert os.listdir(download_folder() / "FB15k-237") == []


def test_an_address_that_is_not_there_is_named(offer: Callable[..., None], server: Server) -> None:
    offer(TEXT.encode())
    server.files.clear()
    sentence = refusal("fb15k-237")
    assert sentence.startswith(f"{server.url('here/train.txt')} cannot be downloaded: 404")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[a", "cannot be read as TOML"),
        ("a = 1", r"expected a table \[a\], got 1"),
        ("[a]\nsize = 3", r"\[a\] has size, which says nothing about a data set"),
        ("[a]\ntriples = 3", r"\[a\] triples must count those of train, valid and test, got 3"),
        ("[a]\ntriples = [1, 2]", r"triples must count those of train, valid and test, got \[1, 2\]"),
        ("[a]\nfiles = 1", r"expected a table \[a.files\], got 1"),
        ('[a.files]\ndev = {url = "x", sha256 = "y"}', "takes train, valid and test, got dev"),
        ('[a.files]\ntrain = "x"', "train must give url and sha256, got 'x'"),
        ('[a.files]\ntrain = {url = "x.txt", sha256 = "y"}', "sha256 has 64 hexadecimal digits, got 'y'"),
        (f'[a.files]\ntrain = {{url = "x.zip", sha256 = "{"0" * 64}"}}', "a url ends in .txt or .tsv"),
    ],
)
def test_what_is_wrong_with_the_file_of_data_sets_is_said(home: Path, text: str, sentence: str) -> None:
    (home / "datasets.toml").write_text(text)
    with pytest.raises(DataError, match=sentence):
        load_dataset("a")
