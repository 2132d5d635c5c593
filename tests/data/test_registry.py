"""What is known about data sets by name."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from anyburl.base.errors import DataError
from anyburl.data import Dataset, load_dataset, write_triples
from anyburl.data.catalogue import SPLITS, find_entry, plain_name, registry
from serving import blob_id

PINNED = r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/[\w./-]+\.txt"
ADDRESSED = {name: entry for name, entry in registry().items() if entry.files}
INDUCTIVE = [f"{graph}-v{n}" for graph in ("WN18RR", "FB15k-237", "NELL-995") for n in range(1, 5)]
PAIRS = [*INDUCTIVE, "ILPC22-small", "ILPC22-large"]
HERE = ["nations", "umls", "CoDEx-S", "WN18", "WN18RR", "FB15k-237", "FB15k"]
PARTS_HERE = [
    f"inductive/{name}{ind}"
    for name in ("ILPC22-small", *(f"{graph}_v{n}" for graph in ("WN18RR", "fb237", "nell") for n in (1, 3)))
    for ind in ("", "_ind")
]


def test_the_common_benchmarks_are_known_by_name() -> None:
    known = registry()
    paper = {"WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10"}
    others = {"CoDEx-S", "CoDEx-M", "CoDEx-L", "kinship", "umls", "nations", "NELL-995"}
    pairs = {name + ind for name in PAIRS for ind in ("", "-ind")}
    assert set(ADDRESSED) == paper | others | pairs
    built_in = {"geo", "history"}
    assert set(known) == {*built_in, "Hetionet", "OpenBioLink", "Wikidata5M", *ADDRESSED}
    assert all(entry.about and entry.citation and entry.source for name, entry in known.items() if name not in built_in)
    assert len({plain_name(name) for name in known}) == len(known)


@pytest.mark.parametrize("name", ADDRESSED)
def test_addresses_are_pinned_and_have_checksums(name: str) -> None:
    entry = ADDRESSED[name]
    assert "train" in entry.files
    assert set(entry.files) <= set(SPLITS)
    for file in entry.files.values():
        assert re.fullmatch(PINNED, file.url)
        assert re.fullmatch("[0-9a-f]{40}", file.blob or "")
        assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)
    repositories = {"/".join(file.url.split("/")[3:5]) for file in entry.files.values()}
    assert {f"github.com/{repository}" for repository in repositories} == {entry.source}


def test_no_two_splits_have_the_same_file() -> None:
    blobs = [file.blob for entry in ADDRESSED.values() for file in entry.files.values()]
    assert len(blobs) == len(set(blobs)) == 116


@pytest.mark.parametrize("name", ADDRESSED)
def test_counts_agree_with_the_lines_of_the_files(name: str) -> None:
    entry = ADDRESSED[name]
    assert entry.triples is not None
    for split, count in zip(SPLITS, entry.triples, strict=True):
        if split not in entry.files:
            assert count == 0
        elif entry.files[split].lines is not None:
            assert count == entry.files[split].lines


def test_kinship_is_known_to_have_its_relation_first() -> None:
    odd = {name for name, entry in ADDRESSED.items() for file in entry.files.values() if file.columns[0] != "subject"}
    assert odd == {"kinship"}
    assert {file.columns for file in ADDRESSED["kinship"].files.values()} == {("relation", "subject", "object")}


def test_the_registry_is_right_about_geo() -> None:
    check_counts("geo", load_dataset("geo"))


@pytest.mark.parametrize("path", [*HERE, *PARTS_HERE])
def test_the_registry_is_right_about_what_is_here(shared_data: Callable[[str], Path], path: str) -> None:
    name = path.removeprefix("inductive/").replace("fb237", "FB15k-237").replace("nell", "NELL-995").replace("_", "-")
    folder = shared_data(path)
    check_counts(name, load_dataset(folder))
    for split, file in ADDRESSED[name].files.items():
        content = gzip.decompress((folder / f"{split}.txt.gz").read_bytes())
        assert (blob_id(content), len(content)) == (file.blob, file.bytes)


def check_counts(name: str, data: Dataset) -> None:
    entry = find_entry(name)
    assert entry is not None
    assert tuple(len(table) + table.n_duplicates for table in (data.train, data.valid, data.test)) == entry.triples
    words = data.vocabulary
    assert (words.n_entities, words.n_relations) == (entry.entities, entry.relations)


@pytest.mark.parametrize("written", ["FB15k-237", "fb15k-237", "fb15k237", "FB15K_237"])
def test_a_name_is_found_in_the_folder_of_data_sets_however_it_is_written(home: Path, written: str) -> None:
    folder = home / "FB15k-237"
    folder.mkdir()
    write_triples([("ed", "speaks", "dutch")], folder / "train.txt")
    data = load_dataset(written)
    assert (data.name, data.source, len(data.train)) == ("FB15k-237", str(folder), 1)


def refusal(name: str) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(name)
    return str(caught.value)


def test_a_data_set_without_an_address_is_asked_for_in_one_sentence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal("hetionet") == (
        "Hetionet is not on this machine, and anyburl cannot download it: get it from github.com/hetio/hetionet and "
        f"put train, valid and test into {home / 'Hetionet'}"
    )
    monkeypatch.delenv("ANYBURL_DATA")
    assert refusal("Hetionet").endswith("put train, valid and test into $ANYBURL_DATA/Hetionet")


def test_a_mistyped_name_is_answered_with_those_like_it(home: Path) -> None:
    assert refusal("fb15k-238").endswith("did you mean FB15k-237 or FB15k-237-v4 or FB15k-237-v3?")


SHA256, BLOB = "0" * 64, "0" * 40


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[a", "is not valid TOML"),
        ("a = 1", r"expected a table \[a\], got 1"),
        ('["../a"]\nentities = 1', "the name of a data set must be a valid folder name, got '../a'"),
        ("[a]\nsize = 3", r"\[a\] has unknown fields: size"),
        ("[a]\nabout = 3", r"\[a\] about must be text, got 3"),
        ('[a]\nentities = "many"', r"\[a\] entities must be a number, got 'many'"),
        ("[a]\ntriples = 3", r"\[a\] triples must be the counts of train, valid and test, got 3"),
        ("[a]\ntriples = [1, 2]", r"triples must be the counts of train, valid and test, got \[1, 2\]"),
        ("[a]\nfiles = 1", r"expected a table \[a.files\], got 1"),
        ('[a.files]\ndev = {url = "x", sha256 = "y"}', "takes train, valid and test, got dev"),
        ('[a.files]\ntest = {url = "x", sha256 = "y"}', r"\[a.files\] must have train"),
        ('[a.files]\ntrain = "x"', "train must have url and a checksum, blob or sha256, got 'x'"),
        ('[a.files]\ntrain = {url = "x"}', "train must have url and a checksum, blob or sha256, got {'url': 'x'}"),
        ('[a.files]\ntrain = {url = "x", blob = "y", size = 1}', "train has unknown fields: size"),
        ('[a.files]\ntrain = {url = "x", sha256 = "y"}', "sha256 must be 64 hexadecimal digits, got 'y'"),
        ('[a.files]\ntrain = {url = "x", blob = "y"}', "blob must be 40 hexadecimal digits, got 'y'"),
        (f'[a.files]\ntrain = {{url = "x", blob = "{BLOB}", bytes = "1"}}', "bytes must be a number, got '1'"),
        (f'[a.files]\ntrain = {{url = "ftp://x.txt", sha256 = "{SHA256}"}}', "url must start with https://"),
        (f'[a.files]\ntrain = {{url = "http://x y.txt", sha256 = "{SHA256}"}}', "contain no spaces"),
        (f'[a.files]\ntrain = {{url = "http://x.zip", sha256 = "{SHA256}"}}', r"url must end in one of \.txt, "),
        (
            f'[a.files]\ntrain = {{url = "http://x.txt", blob = "{BLOB}", columns = ["object", "subject"]}}',
            r"columns must be subject, relation and object in some order, got \['object', 'subject'\]",
        ),
    ],
)
def test_what_is_wrong_with_the_file_of_data_sets_is_said(home: Path, text: str, sentence: str) -> None:
    (home / "datasets.toml").write_text(text)
    with pytest.raises(DataError, match=sentence):
        load_dataset("a")
