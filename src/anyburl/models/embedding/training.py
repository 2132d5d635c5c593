"""Training by PyTorch (extra `embed`): ComplEx with the N3 norm, reciprocal relations and relation prediction.

Lacroix et al. 2018, Canonical Tensor Decomposition for Knowledge Base Completion; Chen et al. 2021, Relation Prediction
as an Auxiliary Training Objective for Improving Multi-Relational Graph Representations.

`embed`: train an embedding of a data set and keep it in a run folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from anyburl.base.checking import callback, from_keywords, options_behind
from anyburl.base.errors import InvalidOptionError, MissingExtraError, RunError
from anyburl.base.reading import at_home
from anyburl.data.dataset import DataLike, Dataset, load_dataset
from anyburl.models.embedding.model import CHECKPOINT, Embedding, read_arrays, save_embedding, write_arrays
from anyburl.models.embedding.options import UNFINISHED, EmbedKeywords, EmbedOptions
from anyburl.rules.files.run_folder import OPTIONS, described_run

FIRST_SCALE = 1e-3  # of the vectors before training
LOOKS = 20  # at valid, over all epochs
MOST_LOOKED_AT = 2_000  # triples of valid
QUERIES_AT_A_TIME = 500

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Epoch:
    """What an epoch has come to; `mrr` is that on a sample of valid, where it was looked at."""

    number: int
    loss: float
    mrr: float | None


def require_torch() -> Any:
    """Return the library, or say how to install it."""
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
        self._look = _Look(train, valid, n_relations, options.seed)
        self.best: Embedding | None = None
        self.best_mrr: float | None = None
        self.n_epochs = self.best_epoch = self._since_best = 0

    @property
    def is_done(self) -> bool:
        """Whether all epochs are done, or valid got no better."""
        return self.n_epochs >= self.options.epochs or self._since_best >= self.options.patience

    def epochs(self) -> Iterator[Epoch]:
        """Train, one epoch after the other, until all are done or valid gets no better."""
        every = max(1, self.options.epochs // LOOKS)
        while not self.is_done:
            loss = self._train_once()
            self.n_epochs += 1
            looks = self.n_epochs % every == 0 or self.n_epochs == self.options.epochs
            yield Epoch(self.n_epochs, loss, self._look_at_valid() if looks else None)

    def _look_at_valid(self) -> float | None:
        now = self.embedding()
        mrr = self._look.mrr(now)
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
        best = (
            {}
            if self.best is None
            else {f"best_{name}": getattr(self.best, name) for name in ("entities", "relations")}
        )
        return {**{name: array.detach().cpu().numpy() for name, array in arrays}, **best}

    def progress(self) -> dict[str, Any]:
        """Return how far training is, as plain values."""
        return {
            "epochs": self.n_epochs,
            "best_epoch": self.best_epoch,
            "best_mrr": self.best_mrr,
            "since_best": self._since_best,
        }

    def restore(self, arrays: dict[str, NDArray[np.float32]], progress: dict[str, Any]) -> None:
        """Go back to what `state` and `progress` told."""
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


class _Look:
    """The filtered MRR on a sample of valid: train's and valid's other answers do not count."""

    def __init__(self, train: Triples, valid: Triples, n_relations: int, seed: int) -> None:
        drawn = np.random.default_rng(seed).permutation(len(valid))[:MOST_LOOKED_AT]
        self._asked = _both_ways(valid[np.sort(drawn)], n_relations)
        known = _both_ways(np.concatenate([train, valid]), n_relations)
        keys = known[:, 0] * (2 * n_relations) + known[:, 1]
        order = np.argsort(keys, kind="stable")
        self._keys, self._answers, self._width = keys[order], known[order, 2], 2 * n_relations

    def mrr(self, embedding: Embedding) -> float | None:
        """Return it; None without a valid split."""
        if not len(self._asked):
            return None
        found = []
        for start in range(0, len(self._asked), QUERIES_AT_A_TIME):
            asked = self._asked[start : start + QUERIES_AT_A_TIME]
            scores = embedding.scores(asked[:, 0], asked[:, 1])
            own = scores[np.arange(len(asked)), asked[:, 2]].copy()
            firsts, lasts = (
                np.searchsorted(self._keys, asked[:, 0] * self._width + asked[:, 1], side) for side in ("left", "right")
            )
            for row, (first, last) in enumerate(zip(firsts, lasts, strict=True)):
                scores[row, self._answers[first:last]] = -np.inf
            found.append(1 / (1 + (scores > own[:, None]).sum(axis=1)))
        return float(np.concatenate(found).mean())


def choose_device(name: str) -> str:
    """Return the device to train on: that of the name or, with "auto", a GPU if there is one."""
    torch = require_torch()
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return next(device for device in ("cuda", "mps", "cpu") if there[device])
    if not there[name]:
        found = " or ".join(device for device in there if there[device])
        raise InvalidOptionError("device", f"one that this machine has ({found})", name)
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
    there. On Ctrl-C, what is best so far is kept and returned.
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
    """Do what `embed` says; return the embedding and what is to be said of it. `stop` is asked after each epoch."""
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
    found = trainer.best or trainer.embedding()
    about = {
        "options": options.to_json(),
        "epochs": trainer.n_epochs,
        "best_epoch": trainer.best_epoch,
        "valid_mrr": trainer.best_mrr,
        "device": trainer.device,
        "seconds": round(time.monotonic() - started, 1),
        "stopped_by": "end" if is_done else "interrupt",
    }
    save_embedding(run, found, dataset, about)
    return found, about


def check_run(run: Path, dataset: Dataset) -> None:
    """Make the folder, and refuse one whose rules were learned on other data."""
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
