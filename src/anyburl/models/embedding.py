"""`Embedding` (vectors of entities and directed relations), its file, and `embed`, which trains it (extra `embed`).

ComplEx with the N3 norm, reciprocal relations and relation prediction: Lacroix et al. 2018, Canonical Tensor
Decomposition for Knowledge Base Completion; Chen et al. 2021, Relation Prediction as an Auxiliary Training Objective
for Improving Multi-Relational Graph Representations. Only training needs PyTorch; safetensors files execute nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from anyburl.base.checking import callback, from_keywords, options_behind
from anyburl.base.errors import InvalidOptionError, MissingExtraError, RunError
from anyburl.base.files import at_home
from anyburl.base.writing import replacing
from anyburl.data.dataset import DataLike, Dataset, load_dataset
from anyburl.learning.options import UNFINISHED, EmbedKeywords, EmbedOptions
from anyburl.rules.run_folder import OPTIONS, described_run

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
        """A digest of the vectors."""
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
    """Write vectors in half precision, which changes no rank; return the file."""
    arrays = {name: getattr(embedding, name).astype(np.float16) for name in VECTORS}
    return write_arrays(run / FILE, arrays, {**about, "data": dataset.fingerprint})


def load_embedding(run: Path, dataset: Dataset) -> Embedding:
    """Read the embedding of a run folder; raise an error if it belongs to other data."""
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
    """Return what is wrong with the arrays of an embedding; "" if nothing is."""
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
        metadata = {"anyburl": json.dumps({"format": FORMAT, **about}, sort_keys=True)}
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        unfinished.write_bytes(from_numpy(contiguous, metadata))
    return path


def read_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read what `write_arrays` wrote; raise an error for a damaged file or another format."""
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


FIRST_SCALE = 1e-3  # of the vectors before training
VALIDATIONS = 20  # over all epochs
MOST_VALIDATED = 2_000  # triples of valid
QUERIES_AT_A_TIME = 500

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Epoch:
    """The loss of an epoch and the MRR on a sample of valid, if it was computed."""

    number: int
    loss: float
    mrr: float | None


def require_torch() -> Any:
    """Return PyTorch; the error says how to install it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("anyburl embed", "embed") from error
    return torch


class Trainer:
    """Trains vectors epoch by epoch; `best` are those with the highest MRR on valid, None without a valid split."""

    def __init__(
        self, train: Triples, valid: Triples, n_entities: int, n_relations: int, options: EmbedOptions
    ) -> None:
        self._torch = torch = require_torch()
        self.options = options
        self.device = choose_device(options.device)
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        torch.set_float32_matmul_precision("high")
        generator = torch.Generator().manual_seed(options.seed)
        shapes = (n_entities, 2 * options.rank), (2 * n_relations, 2 * options.rank)
        self._vectors = [
            (FIRST_SCALE * torch.randn(shape, generator=generator)).to(self.device).requires_grad_() for shape in shapes
        ]
        self._optimiser = torch.optim.Adagrad(self._vectors, lr=options.learning_rate)
        self._triples = torch.from_numpy(_both_ways(train, n_relations)).to(self.device)
        self._validation = _Validation(train, valid, n_relations, options.seed)
        self.best: Embedding | None = None
        self.best_mrr: float | None = None
        self.n_epochs = self.best_epoch = self._since_best = 0

    @property
    def is_done(self) -> bool:
        """Whether all epochs are done, or valid got no better."""
        return self.n_epochs >= self.options.epochs or self._since_best >= self.options.patience

    def epochs(self) -> Iterator[Epoch]:
        """Train, one epoch after the other, until all are done or valid gets no better."""
        every = max(1, self.options.epochs // VALIDATIONS)
        while not self.is_done:
            loss = self._train_once()
            self.n_epochs += 1
            is_validated = self.n_epochs % every == 0 or self.n_epochs == self.options.epochs
            yield Epoch(self.n_epochs, loss, self._validate() if is_validated else None)

    def _validate(self) -> float | None:
        now = self.embedding()
        mrr = self._validation.mrr(now)
        if mrr is None:
            return None
        if self.best_mrr is None or mrr > self.best_mrr:
            self.best, self.best_mrr, self.best_epoch, self._since_best = now, mrr, self.n_epochs, 0
        else:
            self._since_best += 1
        return mrr

    def embedding(self) -> Embedding:
        """Return the vectors as they are now."""
        return Embedding(*(vectors.detach().cpu().numpy().copy() for vectors in self._vectors))

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Return all arrays that training continues from."""
        sums = [self._optimiser.state[vectors]["sum"] for vectors in self._vectors]
        arrays = zip(("entities", "relations", "entity_sums", "relation_sums"), [*self._vectors, *sums], strict=True)
        state = {name: array.detach().cpu().numpy() for name, array in arrays}
        if self.best is not None:
            state |= {f"best_{name}": getattr(self.best, name) for name in VECTORS}
        return state

    def progress(self) -> dict[str, Any]:
        """Return how far training is, as plain values."""
        return {
            "epochs": self.n_epochs,
            "best_epoch": self.best_epoch,
            "best_mrr": self.best_mrr,
            "since_best": self._since_best,
        }

    def restore(self, arrays: dict[str, NDArray[np.float32]], progress: dict[str, Any]) -> None:
        """Restore what `state` and `progress` returned."""
        torch = self._torch
        for vectors, name, sums in zip(
            self._vectors, ("entities", "relations"), ("entity_sums", "relation_sums"), strict=True
        ):
            with torch.no_grad():
                vectors.copy_(torch.from_numpy(arrays[name].copy()))
            self._optimiser.state[vectors]["sum"].copy_(torch.from_numpy(arrays[sums].copy()))
            self._optimiser.state[vectors]["step"].fill_(float(progress["epochs"]))
        if "best_entities" in arrays:
            self.best = Embedding(arrays["best_entities"], arrays["best_relations"])
        self.n_epochs, self.best_epoch = progress["epochs"], progress["best_epoch"]
        self.best_mrr, self._since_best = progress["best_mrr"], progress["since_best"]

    def _train_once(self) -> float:
        torch, batch_size = self._torch, self.options.batch_size
        drawn = np.random.SeedSequence(self.options.seed, spawn_key=(self.n_epochs,)).generate_state(1)[0]
        generator = torch.Generator().manual_seed(int(drawn))
        order = torch.randperm(len(self._triples), generator=generator).to(self.device)
        total = torch.zeros((), device=self.device)
        for start in range(0, len(order), batch_size):
            loss = self._loss(self._triples[order[start : start + batch_size]])
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            total += loss.detach()
        return float(total) / max(1, -(-len(order) // batch_size))

    def _loss(self, batch: Any) -> Any:
        functional, options, rank = self._torch.nn.functional, self.options, self.options.rank
        entities, relations = self._vectors
        subject, relation, object = entities[batch[:, 0]], relations[batch[:, 1]], entities[batch[:, 2]]
        (a, b), (c, d), (e, f) = ((rows[:, :rank], rows[:, rank:]) for rows in (subject, relation, object))
        answers = self._torch.cat([a * c - b * d, a * d + b * c], 1) @ entities.T
        loss = functional.cross_entropy(answers, batch[:, 2])
        if options.relation_weight:
            guessed = self._torch.cat([a * e + b * f, a * f - b * e], 1) @ relations.T
            loss = loss + options.relation_weight * functional.cross_entropy(guessed, batch[:, 1])
        cubes = sum(((real**2 + imaginary**2) ** 1.5).sum() for real, imaginary in ((a, b), (c, d), (e, f)))
        return loss + options.regularisation * cubes / len(batch)


class _Validation:
    """The MRR on a sample of valid, filtered by train and valid."""

    def __init__(self, train: Triples, valid: Triples, n_relations: int, seed: int) -> None:
        drawn = np.random.default_rng(seed).permutation(len(valid))[:MOST_VALIDATED]
        self._triples = _both_ways(valid[np.sort(drawn)], n_relations)
        known = _both_ways(np.concatenate([train, valid]), n_relations)
        keys = known[:, 0] * (2 * n_relations) + known[:, 1]
        order = np.argsort(keys, kind="stable")
        self._keys, self._answers, self._width = keys[order], known[order, 2], 2 * n_relations

    def mrr(self, embedding: Embedding) -> float | None:
        """Return the MRR; None without a valid split."""
        if not len(self._triples):
            return None
        reciprocals = []
        for start in range(0, len(self._triples), QUERIES_AT_A_TIME):
            entities, relations, targets = self._triples[start : start + QUERIES_AT_A_TIME].T
            scores = embedding.scores(entities, relations)
            own = scores[np.arange(len(targets)), targets].copy()
            keys = entities * self._width + relations
            firsts, lasts = (np.searchsorted(self._keys, keys, side) for side in ("left", "right"))
            for row, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
                scores[row, self._answers[first:last]] = -np.inf
            reciprocals.append(1 / (1 + (scores > own[:, None]).sum(axis=1)))
        return float(np.concatenate(reciprocals).mean())


def choose_device(name: str) -> str:
    """Return the device to train on; "auto" is a GPU if there is one."""
    torch = require_torch()
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if available[device])
    if not available[name]:
        listed = " or ".join(device for device in available if available[device])
        raise InvalidOptionError("device", f"one that this machine has ({listed})", name)
    return name


def _both_ways(triples: Triples, n_relations: int) -> NDArray[np.int64]:
    """Return triples and their inverses."""
    subjects, relations, objects = triples.astype(np.int64).T
    inverse = np.stack([objects, relations + n_relations, subjects], axis=1)
    return np.concatenate([np.stack([subjects, relations, objects], axis=1), inverse])


SECONDS_BETWEEN_CHECKPOINTS = 60.0


def embed(
    data: DataLike,
    *,
    out: str | os.PathLike[str],
    resume: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    **options: Unpack[EmbedKeywords],
) -> Embedding:
    """Train ComplEx on the train split of `data` and keep it in the run folder `out`, for aggregation="hybrid".

    `options` are the fields of `EmbedOptions`. Every minute the state is saved; with `resume`, training continues from
    there. On Ctrl-C, the best embedding so far is kept and returned.
    """
    callback("on_epoch", on_epoch)
    dataset, folder = load_dataset(data), at_home(out)
    return train_embedding(dataset, folder, from_keywords(EmbedOptions, options), resume=resume, on_epoch=on_epoch)[0]


def train_embedding(
    dataset: Dataset,
    run: Path,
    options: EmbedOptions,
    *,
    resume: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Embedding, dict[str, Any]]:
    """Train and save an embedding as `embed` does; return it and its description. `stop` is called after each epoch."""
    check_run(run, dataset)
    words = dataset.vocabulary
    trainer = Trainer(dataset.train.triples, dataset.valid.triples, words.n_entities, words.n_relations, options)
    if resume:
        _restore(trainer, run, dataset)
    started = saved = time.monotonic()
    try:
        for epoch in trainer.epochs():
            if on_epoch:
                on_epoch(epoch)
            if stop():
                break
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS:
                _save_state(trainer, run, dataset)
                saved = time.monotonic()
    except KeyboardInterrupt:
        if not trainer.n_epochs:
            raise
    is_done = trainer.is_done
    if is_done:
        (run / CHECKPOINT).unlink(missing_ok=True)
    else:
        _save_state(trainer, run, dataset)
    best = trainer.best or trainer.embedding()
    about = {
        "options": options.to_json(),
        "epochs": trainer.n_epochs,
        "best_epoch": trainer.best_epoch,
        "valid_mrr": trainer.best_mrr,
        "device": trainer.device,
        "seconds": round(time.monotonic() - started, 1),
        "stopped_by": "end" if is_done else "interrupt",
    }
    save_embedding(run, best, dataset, about)
    return best, about


def check_run(run: Path, dataset: Dataset) -> None:
    """Create the folder; raise an error if its rules were learned on other data."""
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write the run folder {run}: {error.strerror}") from error
    if (run / OPTIONS).is_file() and described_run(run)["data"].get("fingerprint") != dataset.fingerprint:
        raise RunError(
            f"{run} contains a run on data other than {dataset.name}: pass its own data, or choose another folder"
        )
    if not os.access(run, os.W_OK):
        raise RunError(f"cannot write the run folder {run}: permission denied")


def _save_state(trainer: Trainer, run: Path, dataset: Dataset) -> None:
    about = {"data": dataset.fingerprint, "options": trainer.options.to_json(), **trainer.progress()}
    write_arrays(run / CHECKPOINT, trainer.state(), about)


def _restore(trainer: Trainer, run: Path, dataset: Dataset) -> None:
    path = run / CHECKPOINT
    if not path.is_file():
        raise RunError(f"{run} has no unfinished embedding to resume: drop --resume")
    arrays, about = read_arrays(path)
    now = options_behind(UNFINISHED, trainer.options)
    free = trainer.options.to_json().keys() - now
    before = {name: value for name, value in about.get("options", {}).items() if name not in free}
    if about.get("data") != dataset.fingerprint or before != now:
        raise RunError(f"{path} belongs to other data or options: drop --resume to start over")
    expected = trainer.state()
    if any(name not in arrays or arrays[name].shape != array.shape for name, array in expected.items()):
        raise RunError(f"{path} has unexpected arrays: drop --resume to start over")
    trainer.restore(arrays, about)
