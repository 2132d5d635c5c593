"""`embed`: train an embedding of a data set and keep it in a run folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Unpack

from anyburl.checking import callback, from_keywords
from anyburl.embedding.model import Embedding
from anyburl.embedding.options import EmbedKeywords, EmbedOptions
from anyburl.embedding.stored import CHECKPOINT, read_arrays, save_embedding, write_arrays
from anyburl.embedding.training import Epoch, Trainer
from anyburl.errors import RunError
from anyburl.reading import at_home
from anyburl.ruleset.files.run_folder import OPTIONS, described_run
from anyburl.triples.dataset import DataLike, Dataset, load_dataset

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
    free = ("epochs", "patience", "device", "threads")
    before, now = (
        {name: value for name, value in options.items() if name not in free}
        for options in (about.get("options", {}), trainer.options.to_json())
    )
    if about.get("data") != dataset.fingerprint or before != now:
        raise RunError(f"{path} belongs to other data or options: drop --resume to start over")
    expected = trainer.state()
    if any(name not in arrays or arrays[name].shape != array.shape for name, array in expected.items()):
        raise RunError(f"{path} has unexpected arrays: drop --resume to start over")
    trainer.restore(arrays, about)
