"""The `kernel` and `inlined` decorators: the only file that imports Numba.

Numba's own cache watches a kernel's own file only: after an edit to a function that the kernel calls, or to a
NamedTuple that it reads, stale machine code would run. So the cache folder's name holds a digest of every source file
that kernels are made of.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba
from platformdirs import user_cache_path

P = ParamSpec("P")
R = TypeVar("R")

_KERNEL_SOURCES = ("kernel*.py", "arrays.py", "rng.py", "rules/types.py")


def _digest() -> str:
    """Name what the kernels' machine code depends on."""
    package = Path(__file__).parent
    sources = sorted({path for pattern in _KERNEL_SOURCES for path in package.rglob(pattern)})
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sources:
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    mode = "checked" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else "fast"
    return f"{digest.hexdigest()[:16]}-{mode}"


_config = vars(numba.config)
_cache_dir = Path(os.environ.get("ANYBURL_CACHE") or user_cache_path("anyburl")) / "kernels" / _digest()


def is_compiled(name: str = "") -> bool:
    """Whether kernels of this version, or the one of that name ("kernel.answer"), were compiled here before."""
    return any(_cache_dir.rglob(f"{name}*.nbi"))


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on its first call: without the GIL, cached on disk.

    Kernels allocate nothing (`_nrt=False`, a private option of Numba's): a kernel that does is refused, and no
    array's reference count is touched. With counting on, every array of a NamedTuple is counted at every use, which
    made harvests 2 to 8 times slower.
    """
    return _compile(function, forceinline=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` into its callers: for what runs once per edge or rule.

    A call costs more than such a function does: the arrays of a NamedTuple are passed one by one.
    """
    return _compile(function, forceinline=True)


def _compile(function: Callable[P, R], *, forceinline: bool) -> Callable[P, R]:
    saved = _config["CACHE_DIR"]
    _config["CACHE_DIR"] = str(_cache_dir)
    try:
        options: dict[str, Any] = {"nogil": True, "cache": True, "forceinline": forceinline, "_nrt": False}
        compiled: Callable[P, R] = numba.njit(**options)(function)
        return compiled
    finally:
        _config["CACHE_DIR"] = saved
