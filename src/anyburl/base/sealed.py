"""Files with a checksum, verified before parsing; and NamedTuples of arrays in a folder, one memory-mapped file each.

The seal is a tag and a CRC-32 of everything else, at the end of a file or before the footer of Parquet, where readers
of Parquet never look. Files from elsewhere have none: since some damaged Parquet files make Polars end the process,
those are first read in another process.
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

from anyburl.base.files import open_regular, open_to_read

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
        start = _seal_end(file)
        file.seek(start)
        footer = file.read()
        file.seek(start)
        file.write(TAG + bytes(4) + footer)
        checksum = _checksum(file, start)
        file.seek(start + len(TAG))
        file.write(checksum)


def is_sealed(path: Path) -> bool:
    """Return whether a file has a seal; raise `DamagedFileError` if its checksum is wrong."""
    expected = read_seal(path)
    if not expected:
        return False
    with open_to_read(path) as file:
        if expected != TAG + _checksum(file, _seal_end(file) - N_SEAL):
            raise DamagedFileError("its contents do not match its checksum")
    return True


def read_seal(path: Path) -> bytes:
    """Return the seal of a file without verifying it; nothing if it has none."""
    with open_to_read(path) as file:
        start = _seal_end(file) - N_SEAL
        if start < 0:
            return b""
        file.seek(start)
        read = file.read(N_SEAL)
    return read if read.startswith(TAG) else b""


def scan_parquet(path: str | os.PathLike[str]) -> pl.LazyFrame:
    """Return the rows of a Parquet file; raise `DamagedFileError` if reading them would end the process."""
    file = Path(path)
    if not is_sealed(file):
        _try_reading(file)
    return pl.scan_parquet(file, glob=False)


def _seal_end(file: BinaryIO) -> int:
    """Return the offset where the seal of a file ends, or belongs: at its end, or before the footer of Parquet."""
    size = file.seek(0, os.SEEK_END)
    if size < 12:
        return size
    file.seek(size - 8)
    length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    footer = length + 8
    return size - footer if magic == PARQUET and footer <= size else size


def _checksum(file: BinaryIO, start: int) -> bytes:
    """Return the checksum of a file whose seal starts at an offset."""
    file.seek(0)
    checksum, left = 0, start
    while left > 0 and (block := file.read(min(BLOCK, left))):
        checksum, left = zlib.crc32(block, checksum), left - len(block)
    file.seek(start + N_SEAL)
    while block := file.read(BLOCK):
        checksum = zlib.crc32(block, checksum)
    return checksum.to_bytes(4, "little")


def _try_reading(path: Path) -> None:
    """Read a Parquet file in another process; raise `DamagedFileError` if that process is killed."""
    try:
        command = [sys.executable or "", "-P", "-c", TRIAL, os.fspath(path)]
        tried = subprocess.run(command, capture_output=True, check=False)
    except OSError:  # no interpreter, or no process can be started
        return
    if tried.returncode < 0:
        name = signal.Signals(-tried.returncode).name
        raise DamagedFileError(f"reading it ends the process by {name}: it is damaged, or memory is short")


Record = TypeVar("Record", bound=tuple[Any, ...])

SIZES = "sizes.json"  # the numbers among the fields


def save_record(record: Any, folder: Path) -> None:
    """Write a NamedTuple of arrays, integers and such NamedTuples into a folder, which is created."""
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
    """Map one array, read-only; as a plain array, since a memmap is another type to Numba."""
    with _named(path):
        os.close(open_regular(path))
        return np.asarray(np.lib.format.open_memmap(path, "r"))


def read_array(path: Path) -> NDArray[Any]:
    """Read one array into memory, read-only like a mapped one."""
    with _named(path), open_to_read(path) as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    array.setflags(write=False)
    return array


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Raise ValueError for a header that NumPy cannot read, for which it has several errors."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise ValueError(f"{path.name} is not an array ({error})") from error


def open_record(kind: type[Record], folder: Path, open_one: Callable[[Path], Any] = open_array) -> Record:
    """Open a record, each array by `open_one`. Missing or damaged files raise OSError or ValueError."""
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
