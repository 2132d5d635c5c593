"""Records of arrays in a folder: one memory-mapped .npy file per array.

A record is a NamedTuple of arrays, whole numbers and other records; these have folders of their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from anyburl.reading import open_regular, open_to_read

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
