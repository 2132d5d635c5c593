"""Keeps compiled kernels in one folder, whatever becomes of that folder.

Numba by itself would fall back to folders beside the sources, where a kernel may outlive a change of what it calls. It
would fail at a damaged file, as a power cut leaves it. And of two processes that compile a kernel at the same time for
different types of arguments, one could be given the code of the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba.core import caching

from anyburl.locks import alone

LOCK = "lock"
_failures: list[OSError] = []


def keep(dispatcher: Any, folder: Path) -> None:
    """Let `dispatcher` load from `folder` what was compiled before, and keep there what it compiles."""
    dispatcher._cache = _KeptKernel(dispatcher.py_func, folder)


def why_not_kept() -> OSError | None:
    """Return why this process could not keep a kernel that it compiled, if that has happened."""
    return _failures[0] if _failures else None


class _KeptKernel(caching.FunctionCache):  # type: ignore[misc]
    """The files of one kernel. What cannot be read is compiled again; what cannot be written is used all the same."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._impl_class = lambda function: _Files(function, folder)
        super().__init__(function)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel for some types of arguments, None if it is not there."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # damaged pickles have no one kind of error
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the kernel for some types of arguments."""
        folder = Path(self.cache_path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with alone(folder / LOCK):
                self._forget_if_damaged()
                super().save_overload(sig, data)
        except OSError as error:
            _failures.append(error)

    def _forget_if_damaged(self) -> None:
        try:
            self._cache_file._load_index()
        except OSError:
            raise
        except Exception:
            self.flush()


class _Files(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """What a kernel's files are called and hold."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._locator_classes = [_Locators(folder)]
        super().__init__(function)


class _Locators:
    """Stands for a class of locators that all point to one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def from_function(self, function: Callable[..., Any], file: str) -> _Locator:
        """Return where a function is kept."""
        return _Locator(function, file, self._folder)


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):  # type: ignore[misc]
    """Where a function is kept: unlike Numba's own locators, it writes nothing to find out whether it could."""

    def __init__(self, function: Callable[..., Any], file: str, folder: Path) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._path = os.path.join(folder, self.get_suitable_cache_subpath(file))

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._path

    def ensure_cache_path(self) -> None:
        """The folder is made before anything is kept."""
