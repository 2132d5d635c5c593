"""Sealed files: a checksum in the file itself tells damage before anything is made of what it holds.

The seal is a tag and a CRC-32 of everything else. It stands at the end, or before the footer of a Parquet file: a
Parquet reader goes by the places in the footer, and never sees it. Files from elsewhere have no seal. Polars ends the
process at some damaged Parquet files, so one without a seal is first read in a process of its own.

Records of arrays in a folder: one memory-mapped .npy file per array.

A record is a NamedTuple of arrays, whole numbers and other records; these have folders of their own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_type_hints

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.reading import open_regular, open_to_read

PARQUET = b"PAR1"
TAG = b"anyburl:"
N_SEAL = len(TAG) + 4
BLOCK = 1 << 20
TRIAL = """
import sys, warnings
import polars as pl

warnings.simplefilter("ignore")
for frame in pl.scan_parquet(sys.argv[1], glob=False).collect_batches():
    pass
"""


class DamagedFileError(OSError):
    """A file whose contents have changed since it was written, or that nothing can read."""


def seal(path: Path) -> None:
    """Add a seal to a file that has just been written."""
    with open(path, "r+b") as file:
        place = _place(file)
        file.seek(place)
        footer = file.read()
        file.seek(place)
        file.write(TAG + bytes(4) + footer)
        checksum = _checksum(file, place)
        file.seek(place + len(TAG))
        file.write(checksum)


def is_sealed(path: Path) -> bool:
    """Return whether a file has a seal; raise `DamagedFileError` if its contents are not those that were sealed."""
    found = read_seal(path)
    if not found:
        return False
    with open_to_read(path) as file:
        if found != TAG + _checksum(file, _place(file) - N_SEAL):
            raise DamagedFileError("its contents do not match its checksum")
    return True


def read_seal(path: Path) -> bytes:
    """Return the seal of a file, without looking at its contents; nothing if it has none."""
    with open_to_read(path) as file:
        place = _place(file) - N_SEAL
        if place < 0:
            return b""
        file.seek(place)
        found = file.read(N_SEAL)
    return found if found.startswith(TAG) else b""


def scan_parquet(path: str | os.PathLike[str]) -> pl.LazyFrame:
    """Return the rows of a Parquet file; raise `DamagedFileError` if reading them would end the process."""
    file = Path(path)
    if not is_sealed(file):
        _try_reading(file)
    return pl.scan_parquet(file, glob=False)


def _place(file: BinaryIO) -> int:
    """Return where the seal of a file ends, or is to be put: at its end, or before the footer of Parquet."""
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        return size
    file.seek(size - 8)
    length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    footer = length + 8
    return size - footer if magic == PARQUET and footer <= size else size


def _checksum(file: BinaryIO, place: int) -> bytes:
    """Return the checksum of a file whose seal stands at a place."""
    file.seek(0)
    checksum, left = 0, place
    while left > 0 and (block := file.read(min(BLOCK, left))):
        checksum, left = zlib.crc32(block, checksum), left - len(block)
    file.seek(place + N_SEAL)
    while block := file.read(BLOCK):
        checksum = zlib.crc32(block, checksum)
    return checksum.to_bytes(4, "little")


def _try_reading(path: Path) -> None:
    """Read a Parquet file in another process; refuse it if that one does not survive."""
    try:
        command = [sys.executable or "", "-P", "-c", TRIAL, os.fspath(path)]
        tried = subprocess.run(command, capture_output=True, check=False)
    except OSError:  # no interpreter of its own, or no process to be had
        return
    if tried.returncode < 0:
        name = signal.Signals(-tried.returncode).name
        raise DamagedFileError(f"reading it ends the process by {name}: it is damaged, or memory is short")


Record = TypeVar("Record", bound=tuple[Any, ...])

SIZES = "sizes.json"  # the numbers among the fields


def save_record(record: Any, folder: Path) -> None:
    """Write a record into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in record._asdict().items():
        if isinstance(value, tuple):
            save_record(value, folder / name)
        elif not isinstance(value, int):
            np.save(folder / f"{name}.npy", value)
    save_sizes(record, folder)


def save_sizes(record: Any, folder: Path) -> None:
    """Write the numbers of a record; a record without any has no such file."""
    numbers = {name: value for name, value in record._asdict().items() if isinstance(value, int)}
    if numbers:
        (folder / SIZES).write_text(json.dumps(numbers), "utf-8")


def open_array(path: Path) -> NDArray[Any]:
    """Map one array, read-only; a plain array, since Numba takes a memmap for another type."""
    with _named(path):
        os.close(open_regular(path))
        return np.asarray(np.lib.format.open_memmap(path, "r"))


def read_array(path: Path) -> NDArray[Any]:
    """Read one array into memory; it is frozen, as a mapped one is."""
    with _named(path), open_to_read(path) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    array.setflags(write=False)
    return array


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """NumPy has no one kind of error for a header that it cannot read."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path.name} is not an array ({error})") from error


def open_record(kind: type[Record], folder: Path, open_one: Callable[[Path], Any] = open_array) -> Record:
    """Map a record; nothing is read before it is used. What is missing or damaged raises OSError or ValueError.

    With another `open_one`, its arrays are what that returns for their files.
    """
    sizes = folder / SIZES
    fields: dict[str, Any] = dict(json.loads(sizes.read_text("utf-8"))) if sizes.is_file() else {}
    for name, hint in get_type_hints(kind).items():
        if name in fields:
            continue
        if isinstance(hint, type) and issubclass(hint, tuple):
            fields[name] = open_record(hint, folder / name, open_one)
        else:
            fields[name] = open_one(folder / f"{name}.npy")
    return kind(**fields)
