"""Run folders, indexes and prepared runs in which one file is damaged or another one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import anyburl
from anyburl import Dataset, RuleSet, RunDirectory, load_dataset
from anyburl.graph.stored import graph_of
from anyburl.learning.progress import read_progress
from anyburl.reasoning.opening import Feedback, make_prepared
from anyburl.reasoning.prepared import NotPreparedError, open_prepared
from anyburl.rules.run_folder import read_run_names, snapshot_names
from fuzz.target import Target, damaged, told

KEPT = Path(__file__).resolve().parents[2] / "tests" / "formats" / anyburl.__version__


@cache
def _copied(folder: Path, name: str) -> tuple[Path, list[Path], list[bytes]]:
    """Return a copy of a folder that this version has written, its files and their contents."""
    copy = Path(shutil.copytree(KEPT / name, folder / name))
    if name == "finished":
        data = load_dataset(KEPT / "train.txt")
        make_prepared(copy, lambda: (RuleSet.load(copy), data), Feedback())
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.name != ".lock")
    return copy, files, [file.read_bytes() for file in files]


def within(name: str, opened: Callable[[Path], object]) -> Callable[[Path, bytes], None]:
    """Return the parser of a folder: one file is damaged, and put right again."""

    def parse(folder: Path, data: bytes) -> None:
        copy, files, contents = _copied(folder, name)
        number, other = damaged(contents, data)
        files[number].write_bytes(other)
        try:
            opened(copy)
        finally:
            files[number].write_bytes(contents[number])

    return parse


RUN_READERS: tuple[Callable[[Path], object], ...] = (
    lambda folder: RuleSet.load(folder).texts(),
    lambda folder: RunDirectory.open(folder).options(),
    lambda folder: list(RunDirectory.open(folder).trace()),
    lambda folder: RunDirectory.open(folder).load_train(),
    lambda folder: RunDirectory.open(folder).load_whole_rules(),
    read_run_names,
    read_progress,
    lambda folder: [RuleSet.load(folder, at=at) for at in snapshot_names(folder)],
)


def open_either(folder: Path, data: bytes) -> None:
    """Something of a run that was killed, or of one that is finished: the length of the input tells.

    All that a run folder holds would take eight times as long.
    """
    name = ("killed", "finished")[len(data) % 2]
    within(name, RUN_READERS[len(data) // 2 % len(RUN_READERS)])(folder, data)


def open_index(folder: Path) -> None:
    """Open an index and its graph: sizes are looked at, contents are trusted (SECURITY.md)."""
    data = load_dataset(folder)
    assert isinstance(data, Dataset)
    assert data.names is not None
    graph_of(data.train)


def open_ready(folder: Path) -> None:
    """Open what was prepared: checksums tell what is damaged."""
    try:
        open_prepared(folder)
    except NotPreparedError as error:
        told(error)


def _seeds(name: str) -> list[bytes]:
    files = sorted(path for path in (KEPT / name).rglob("*") if path.is_file())
    whole = [bytes([128 | number]) + file.read_bytes() for number, file in enumerate(files)]
    return [*whole, *(bytes([number, 20, 0, 0, 1, 65]) for number in range(len(files)))]


TARGETS = (
    Target("run", "run folders, killed or finished", open_either, _seeds("killed")),
    Target("index", "indexes", within("index", open_index), _seeds("index")),
    Target("prepared", "prepared runs", within("finished", open_ready), _seeds("finished")),
)
