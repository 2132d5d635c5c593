"""`Target`: a parser that is given arbitrary bytes, and the inputs to start from."""

from __future__ import annotations

import io
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from anyburl.base.errors import AnyburlError

LONGEST = 10  # seconds of processor time for one input
PATCH = 4  # bytes before the payload of a patch: two of place, one of what to do, one of how much


@dataclass(frozen=True)
class Target:
    """`parse` reads `data`, with a folder to write it to; it raises errors of ours, or gives a right answer."""

    name: str
    about: str
    parse: Callable[[Path, bytes], object]
    seeds: Sequence[bytes]

    def check(self, folder: Path, data: bytes) -> None:
        """Parse an input; whatever is raised here is a finding."""
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.parse(folder, data)
            except AnyburlError as error:
                told(error)
        if time.process_time() - started > LONGEST:
            raise TimeoutError(f"took more than {LONGEST} seconds of processor time")


def told(error: Exception) -> None:
    """Insist that an error says what is wrong."""
    if not str(error):
        raise AssertionError(f"{type(error).__name__} says nothing") from error


def written(folder: Path, name: str, data: bytes) -> Path:
    """Write an input to a file of its own; return where it is."""
    path = folder / name
    path.write_bytes(data)
    return path


def chosen(data: bytes, *choices: str) -> tuple[str, bytes]:
    """Return what the first byte chooses, and the rest."""
    return choices[(data[0] if data else 0) % len(choices)], data[1:]


def text(data: bytes) -> str:
    """Return bytes as text: whatever a shell or an HTTP client would pass on."""
    return data.decode("utf-8", "replace")


def patched(whole: bytes, patches: bytes) -> bytes:
    """Return a file with some bytes overwritten, put in, taken out, or the rest cut off."""
    result = bytearray(whole)
    while len(patches) >= PATCH and result:
        place, kind, length = int.from_bytes(patches[:2], "little") % len(result), patches[2] % 4, patches[3] % 32
        payload, patches = patches[PATCH : PATCH + length], patches[PATCH + length :]
        if kind == 0:
            result[place : place + len(payload)] = payload
        elif kind == 1:
            result[place:place] = payload
        elif kind == 2:
            del result[place : place + length]
        else:
            del result[place:]
    return bytes(result)


def damaged(files: Sequence[bytes], data: bytes) -> tuple[int, bytes]:
    """Choose one of some files by the first byte; return its number and other contents: the rest, or it patched."""
    first, rest = (data[0] if data else 0), data[1:]
    number = (first & 127) % len(files)
    return number, rest if first & 128 else patched(files[number], rest)


def parquet(frame: pl.DataFrame) -> bytes:
    """Return a frame as a file of Parquet."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()
