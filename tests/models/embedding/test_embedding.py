"""An embedding: its scores, its training, its file, and what rules and it rank together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anyburl import DataError, Dataset, InvalidOptionError, Reasoner, RunError, learn, load_dataset
from anyburl.learning.options import EmbedOptions
from anyburl.models.embedding import (
    CHECKPOINT,
    FILE,
    Embedding,
    load_embedding,
    read_arrays,
    save_embedding,
    write_arrays,
)

TINY = {"rank": 8, "epochs": 3, "batch_size": 64, "device": "cpu", "threads": 1}


def random_embedding(dataset: Dataset, seed: int = 0, rank: int = 4) -> Embedding:
    random, words = np.random.default_rng(seed), dataset.vocabulary
    shapes = (words.n_entities, 2 * rank), (2 * words.n_relations, 2 * rank)
    return Embedding(*(random.normal(size=shape).astype(np.float16).astype(np.float32) for shape in shapes))


def complex_rows(vectors: np.ndarray) -> np.ndarray:
    half = vectors.shape[1] // 2
    return vectors[:, :half].astype(np.complex128) + 1j * vectors[:, half:]


def test_scores_are_the_real_part_of_the_complex_product() -> None:
    geo = load_dataset("geo")
    embedding = random_embedding(geo)
    entities, relations = complex_rows(embedding.entities), complex_rows(embedding.relations)
    asked = np.array([0, 3, 5]), np.array([0, 1, geo.vocabulary.n_relations])
    expected = [
        [(entities[s] * relations[r] * entities[o].conj()).sum().real for o in range(len(entities))]
        for s, r in zip(*asked, strict=True)
    ]
    assert embedding.scores(*asked) == pytest.approx(np.array(expected), abs=1e-3)


def test_a_file_gives_the_same_vectors_and_refuses_other_data(tmp_path: Path) -> None:
    geo = load_dataset("geo")
    embedding = random_embedding(geo)
    save_embedding(tmp_path, embedding, geo, {"epochs": 3})
    again = load_embedding(tmp_path, geo)
    assert again.digest == embedding.digest
    other = Dataset.from_triples([("a", "r", "b")])
    with pytest.raises(RunError, match="data other than"):
        load_embedding(tmp_path, other)


def test_without_a_file_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="anyburl embed"):
        load_embedding(tmp_path, load_dataset("geo"))


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{}", b"garbage" * 100])
def test_damaged_files_are_refused_in_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(RunError, match="cannot be read as an embedding"):
        load_embedding(tmp_path, load_dataset("geo"))


def header(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    """Return what changes the header of a file, which keeps the right length."""

    def changed(content: bytes) -> bytes:
        end = 8 + int.from_bytes(content[:8], "little")
        about = json.loads(content[8:end])
        change(about)
        new = json.dumps(about).encode()
        return len(new).to_bytes(8, "little") + new + content[end:]

    return changed


TAMPERED: dict[str, Callable[[bytes], bytes]] = {
    "a header without an end": lambda content: b"\xff" * 8 + content[8:],
    "a header that is too long": lambda content: (1 << 40).to_bytes(8, "little") + content[8:],
    "a header that is too short": lambda content: (9).to_bytes(8, "little") + content[8:],
    "a huge shape": header(lambda about: about["entities"].update(shape=[1 << 40, 8])),
    "a negative shape": header(lambda about: about["entities"].update(shape=[-1, 8])),
    "other columns": header(lambda about: about["entities"].update(shape=[about["entities"]["shape"][0] * 4, 2])),
    "one row": header(lambda about: about["relations"].update(shape=[8 * about["relations"]["shape"][0]])),
    "offsets beyond the file": header(lambda about: about["relations"].update(data_offsets=[1 << 30, 1 << 31])),
    "overlapping offsets": header(lambda about: about["relations"].update(data_offsets=[0, 16])),
    "another type": header(lambda about: about["entities"].update(dtype="I16")),
    "no type": header(lambda about: about["entities"].update(dtype="F99")),
    "an array missing": header(lambda about: about.pop("relations")),
    "no record": header(lambda about: about.pop("__metadata__")),
    "a record of another kind": header(lambda about: about["__metadata__"].update(anyburl="[1]")),
    "a nested record": header(lambda about: about["__metadata__"].update(anyburl="[" * 9999)),
    "a short file": lambda content: content[:-2],
    "a long file": lambda content: content + b"xx",
    "no numbers": lambda content: content[:-64] + b"\xff" * 64,
}


@pytest.mark.parametrize("tampered", TAMPERED)
def test_tampered_files_are_refused_in_a_sentence(tmp_path: Path, tampered: str) -> None:
    geo = load_dataset("geo")
    save_embedding(tmp_path, random_embedding(geo), geo, {"epochs": 3})
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(TAMPERED[tampered](content))
    with pytest.raises(RunError, match="cannot be read as an embedding") as caught:
        load_embedding(tmp_path, geo)
    assert str(caught.value).endswith("train it again with `anyburl embed`")


def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / FILE, {"entities": np.zeros((1, 2), np.float16)}, {})
    content = (tmp_path / FILE).read_bytes().replace(b'\\"format\\": 1', b'\\"format\\": 9')
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(RunError, match="format 9"):
        read_arrays(tmp_path / FILE)


@pytest.mark.parametrize(
    "wrong",
    [{"rank": 0}, {"rank": 10**11}, {"epochs": 0}, {"learning_rate": 0.0}, {"regularisation": -1.0}, {"device": "tpu"}],
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidOptionError):
        EmbedOptions(**wrong)  # type: ignore[arg-type]


class TestTraining:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch", reason="torch is not installed: pip install 'anyburl[embed]'")

    def test_the_loss_falls_and_a_seed_gives_the_same_vectors(self, tmp_path: Path) -> None:
        from anyburl.models.embedding import embed

        losses: list[float] = []
        one = embed("geo", out=tmp_path / "a", on_epoch=lambda epoch: losses.append(epoch.loss), **TINY)  # type: ignore[arg-type]
        two = embed("geo", out=tmp_path / "b", **TINY)  # type: ignore[arg-type]
        assert losses[-1] < losses[0]
        assert one.digest == two.digest
        assert not (tmp_path / "a" / CHECKPOINT).exists()

    def test_interrupted_training_goes_on_where_it_was(self, tmp_path: Path) -> None:
        from anyburl.models.embedding import train_embedding

        geo, options = load_dataset("geo"), EmbedOptions(**TINY)  # type: ignore[arg-type]
        whole, _ = train_embedding(geo, tmp_path / "whole", options)
        cut = tmp_path / "cut"
        _, about = train_embedding(geo, cut, options, stop=lambda: True)
        assert (about["epochs"], about["stopped_by"]) == (1, "interrupt")
        assert (cut / FILE).is_file()
        assert (cut / CHECKPOINT).is_file()
        resumed, about = train_embedding(geo, cut, options, resume=True)
        assert about["epochs"] == 3
        assert resumed.entities == pytest.approx(whole.entities, abs=1e-6)
        assert not (cut / CHECKPOINT).exists()

    def test_nothing_to_resume_is_said(self, tmp_path: Path) -> None:
        from anyburl.models.embedding import embed

        with pytest.raises(RunError, match="no unfinished embedding"):
            embed("geo", out=tmp_path, resume=True, **TINY)  # type: ignore[arg-type]

    def test_a_folder_with_a_run_on_other_data_is_refused(self, tmp_path: Path) -> None:
        from anyburl.models.embedding import embed

        learn([("a", "r", "b"), ("b", "r", "a")], paths=100, out=tmp_path)
        with pytest.raises(RunError, match="data other than"):
            embed("geo", out=tmp_path, **TINY)  # type: ignore[arg-type]


def test_hybrid_without_an_embedding_is_refused(tmp_path: Path) -> None:
    rules = learn("geo", paths=2000, seed=1)
    with pytest.raises(ValueError, match="needs an embedding"):
        Reasoner(rules, "geo", aggregation="hybrid")


def test_hybrid_without_a_valid_split_is_refused() -> None:
    geo = load_dataset("geo")
    alone = Dataset.from_triples(geo.train)
    rules = learn(alone, paths=2000, seed=1)
    with pytest.raises(DataError, match="valid split"):
        Reasoner(rules, alone, aggregation="hybrid", other=random_embedding(alone))
