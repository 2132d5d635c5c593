"""The one way to write: what is unfinished has another name, and takes the place of what was there in one step."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anyburl.errors import AnyburlError, DataError


@contextmanager
def replacing(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Give a temporary path beside `path`, which replaces it if all goes well and vanishes if not.

    What the system refuses is raised as `error`.
    """
    unfinished = _beside(path)
    try:
        yield unfinished
        os.replace(unfinished, path)
    except OSError as refusal:
        raise error(f"{path}: the file cannot be written ({refusal.strerror or refusal})") from refusal
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Give an empty folder beside `path`, which replaces it if all goes well and vanishes if not.

    Whoever has files of the old folder open, or mapped, keeps them.
    """
    place = path.resolve()
    unfinished = _beside(place)
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        replace_folder(place, unfinished)
    except OSError as refusal:
        raise error(f"{path}: the folder cannot be written ({refusal.strerror or refusal})") from refusal
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def replace_folder(place: Path, finished: Path) -> None:
    """Put a finished folder, beside `place`, in its place."""
    if not place.is_dir():
        finished.rename(place)
        return
    old = place.with_name(f".{place.name}.old{os.getpid()}")
    place.rename(old)
    finished.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def replace_text(path: Path, text: str, error: type[AnyburlError] = DataError) -> None:
    """Write a small file of text."""
    with replacing(path, error) as unfinished:
        unfinished.write_text(text, "utf-8")


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part{os.getpid()}")
