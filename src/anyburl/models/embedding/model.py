"""`Embedding`: vectors of entities and directed relations, and how they score answers. PyTorch is not needed for it.

An embedding in a run folder: one safetensors file, with a record of what it was trained on.

Nothing in such a file is executed, and reading it does not need PyTorch.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import MissingExtraError, RunError
from anyburl.base.writing import replacing
from anyburl.data.dataset import Dataset

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Embedding:
    """ComplEx: a row holds the real parts, then the imaginary parts. `relations` are directed, backward ones last."""

    entities: Floats
    relations: Floats

    @property
    def rank(self) -> int:
        """The number of complex dimensions."""
        return int(self.entities.shape[1]) // 2

    @cached_property
    def digest(self) -> str:
        """What tells one embedding from another."""
        return hashlib.blake2b(self.entities.tobytes() + self.relations.tobytes(), digest_size=16).hexdigest()

    def scores(self, entities: NDArray[np.integer], relations: NDArray[np.integer]) -> Floats:
        """Return the score of every entity as an answer to (entity, directed relation, ?): the real part of
        <entity, relation, conjugate of answer>, queries by entities.
        """
        return np.asarray(self.queries(entities, relations) @ self.entities.T, np.float32)

    def queries(self, entities: NDArray[np.integer], relations: NDArray[np.integer]) -> Floats:
        """Return the complex products of entity and relation."""
        first, second, rank = self.entities[entities], self.relations[relations], self.rank
        real, imaginary, by_real, by_imaginary = first[:, :rank], first[:, rank:], second[:, :rank], second[:, rank:]
        product = [real * by_real - imaginary * by_imaginary, real * by_imaginary + imaginary * by_real]
        return np.concatenate(product, axis=1)


FILE, CHECKPOINT = "embedding.safetensors", "embedding.checkpoint.safetensors"
VECTORS = ("entities", "relations")
FORMAT = 1

Arrays = dict[str, NDArray[Any]]


def save_embedding(run: Path, embedding: Embedding, dataset: Dataset, about: dict[str, Any]) -> Path:
    """Write vectors, in half precision, which costs no rank; return the file."""
    arrays = {name: getattr(embedding, name).astype(np.float16) for name in VECTORS}
    return write_arrays(run / FILE, arrays, {**about, "data": dataset.fingerprint})


def load_embedding(run: Path, dataset: Dataset) -> Embedding:
    """Read the embedding of a run folder; one of other data is refused."""
    path = run / FILE
    if not path.is_file():
        raise RunError(f'{run} has no embedding, which aggregation="hybrid" needs: train one with `anyburl embed`')
    arrays, about = read_arrays(path)
    if about.get("data") != dataset.fingerprint:
        raise RunError(f"{path} was trained on data other than {dataset.name}: train it again with `anyburl embed`")
    if fault := _fault(arrays, dataset):
        raise RunError(f"{path} cannot be read as an embedding ({fault}): train it again with `anyburl embed`")
    return Embedding(*(arrays[name].astype(np.float32) for name in VECTORS))


def _fault(arrays: Arrays, dataset: Dataset) -> str:
    """Return what is wrong with the arrays of an embedding; nothing if they are as they should be."""
    if missing := [name for name in VECTORS if name not in arrays]:
        return f"{missing[0]} are missing"
    vectors = [arrays[name] for name in VECTORS]
    if any(array.dtype not in (np.float16, np.float32) or array.ndim != 2 for array in vectors):
        return "expected tables of numbers"
    width = vectors[0].shape[1]
    rows = (dataset.vocabulary.n_entities, 2 * dataset.vocabulary.n_relations)
    if width < 2 or width % 2 or any(array.shape != (n, width) for array, n in zip(vectors, rows, strict=True)):
        return f"its tables have unexpected shapes, {' and '.join(str(array.shape) for array in vectors)}"
    return "" if all(np.isfinite(array).all() for array in vectors) else "some numbers are infinite or missing"


def write_arrays(path: Path, arrays: Arrays, about: dict[str, Any]) -> Path:
    """Write arrays and plain values into one file, all or nothing."""
    from_numpy = _library().save
    with replacing(path, RunError) as unfinished:
        told = {"anyburl": json.dumps({"format": FORMAT, **about}, sort_keys=True)}
        unfinished.write_bytes(from_numpy({name: np.ascontiguousarray(array) for name, array in arrays.items()}, told))
    return path


def read_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `write_arrays` wrote; a damaged file or one of another format is refused."""
    library = _library()
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["anyburl"])
        if not isinstance(about, dict):
            raise TypeError("it does not say what it was trained on")
        arrays = library.load(content)
    except MemoryError:
        raise
    except Exception as error:  # the library has no one kind of error
        reason = " ".join(str(error).split())[:100]
        raise RunError(
            f"{path} cannot be read as an embedding ({reason}): train it again with `anyburl embed`"
        ) from error
    if about.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {about.get('format')}, expected {FORMAT}: train it again with `anyburl embed`"
        )
    return arrays, about


def _library() -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise MissingExtraError("an embedding", "embed") from error
    return safetensors.numpy
