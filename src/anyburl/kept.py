"""Results kept in a run folder: small files of arrays that record what they were computed from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import RunError
from anyburl.writing import make_inner_folder, replacing


def no_effect_on(*results: str) -> Mapping[str, Any]:
    """Mark the field of an options dataclass, in its `metadata`, as one that these kept results do not depend on."""
    return {"no_effect_on": results}


def options_behind(result: str, options: Any) -> dict[str, Any]:
    """Return the options that a kept result depends on: every field that is not marked by `no_effect_on`."""
    chosen = (field.name for field in fields(options) if result not in field.metadata.get("no_effect_on", ()))
    return {name: getattr(options, name) for name in chosen}


@dataclass(frozen=True)
class KeptKey:
    """What a file depends on: the rules, the data, the options, and the `recipe` that made it."""

    rules: str
    data: str
    options: dict[str, Any]
    recipe: Any = None

    @property
    def name(self) -> str:
        """The name of the file: one for each choice of options."""
        options = json.dumps([self.recipe, self.options], sort_keys=True)
        return f"{hashlib.blake2b(options.encode(), digest_size=8).hexdigest()}.npz"


@dataclass(frozen=True)
class Kept:
    """What a file holds: plain values and arrays."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_kept(folder: Path, key: KeptKey, kept: Kept) -> Path:
    """Write a file into a folder of the run, which is made if need be; return the file."""
    path = folder / key.name
    make_inner_folder(folder, RunError)
    about = {"rules": key.rules, "data": key.data, "options": key.options, **kept.about}
    with replacing(path, RunError) as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **kept.arrays)
    return path


def load_kept(folder: Path, key: KeptKey) -> Kept | str:
    """Return what was kept, or why that cannot be used: "" if there is nothing."""
    path = folder / key.name
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            if about["rules"] != key.rules:
                return "the rules have changed"
            if about["data"] != key.data:
                return "the data has changed"
            arrays = {name: stored[name] for name in stored.files if name != "about"}
            if odd := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
                raise ValueError(f"{odd[0]} is not an array")
            return Kept(about, arrays)
    except Exception as error:  # archives and arrays have no one kind of error
        return damaged(path, error)


def damaged(path: Path, error: Exception) -> str:
    """Report that a file cannot be understood, or not even read."""
    fault = "cannot be read" if isinstance(error, OSError) else "is damaged"
    return f"{path.name} {fault} ({' '.join(str(error).split())[:100]})"
