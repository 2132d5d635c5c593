"""Compiled kernels are kept in one folder, and used whatever becomes of it."""

from __future__ import annotations

import inspect
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching
from numba.core.registry import CPUDispatcher

from anyburl.base import jit
from anyburl.base import jit as _jit
from anyburl.base.jit import keep_compiled, why_not_kept
from kernels import INTERPRETED

pytestmark = pytest.mark.skipif(INTERPRETED, reason="kernels are not compiled")

WIDTHS = (np.int32, np.int64)


def add_up(values: Any) -> int:
    total = 0
    for value in values:
        total += value
    return total


def compiled(folder: Path) -> Any:
    """Return the function as another process would have it: nothing compiled, nothing loaded."""
    dispatcher = CPUDispatcher(add_up, targetoptions={"nopython": True})
    keep_compiled(dispatcher, folder)
    return dispatcher


def hits(function: Any) -> int:
    """Return how many versions of a function were loaded."""
    return sum(function.stats.cache_hits.values())


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_failures", [])


def test_what_was_compiled_is_loaded(tmp_path: Path) -> None:
    first, second = compiled(tmp_path / "kernels"), compiled(tmp_path / "kernels")
    for width in WIDTHS:
        values = np.arange(4, dtype=width)
        assert first(values) == second(values) == 6
    assert (hits(first), hits(second)) == (0, 2)
    assert why_not_kept() is None


def double(value: int) -> int:
    return 2 * value


def caller(folder: Path) -> tuple[Any, Any]:
    """Return a part and a kernel that calls it, as another process would have them."""
    part = jit._Part(double, targetoptions={"nopython": True, "_nrt": False})
    keep_compiled(part, folder)

    def kernel(value: int) -> int:
        result: int = part(value) + part(value + 1)
        return result

    return part, CPUDispatcher(kernel, targetoptions={"nopython": True, "_nrt": False})


def test_another_kernel_loads_a_part_that_was_compiled(tmp_path: Path) -> None:
    (first, one), (second, another) = caller(tmp_path / "kernels"), caller(tmp_path / "kernels")
    assert one(20) == another(20) == 82
    assert (hits(first), hits(second)) == (0, 1)


def test_without_a_folder_kernels_are_compiled_and_put_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    beside = Path(inspect.getfile(add_up)).parent
    before = sorted(beside.rglob("*.nbi"))
    for _ in range(2):
        function = compiled(tmp_path / "file" / "kernels")
        assert function(np.arange(4)) == 6
        assert hits(function) == 0
    assert sorted(beside.rglob("*.nbi")) == before
    assert isinstance(why_not_kept(), OSError)
    told = _jit.not_kept()
    assert told is not None
    assert told.startswith("compiled kernels cannot be kept in ")
    assert told.endswith("(Not a directory): set ANYBURL_CACHE to a folder that can be written")


def test_a_folder_that_cannot_be_written_is_still_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tmp_path)(np.arange(4))

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(caching.IndexDataCacheFile, "_open_for_write", refuse)
    function = compiled(tmp_path)
    assert function(np.arange(4)) == 6
    assert hits(function) == 1
    assert why_not_kept() is None
    assert function(np.arange(4, dtype=np.int32)) == 6
    assert isinstance(why_not_kept(), PermissionError)


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\0" * 512, b"garbage"], ids=["empty", "zeros", "garbage"])
def test_a_damaged_file_is_replaced(tmp_path: Path, suffix: str, content: bytes) -> None:
    compiled(tmp_path)(np.arange(4))
    [file] = tmp_path.rglob(f"*.{suffix}")
    file.write_bytes(content)
    assert compiled(tmp_path)(np.arange(4)) == 6
    function = compiled(tmp_path)
    assert function(np.arange(4)) == 6
    assert hits(function) == 1


def test_two_that_compile_at_the_same_time_do_not_exchange_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba numbers the files by the index, which both would have read before either has written it."""
    write = caching.IndexDataCacheFile._save_index

    def write_slowly(*given: Any) -> None:
        time.sleep(0.3)
        write(*given)

    plain = CPUDispatcher(add_up, targetoptions={"nopython": True})
    for width in WIDTHS:
        plain(np.arange(4, dtype=width))
    monkeypatch.setattr(caching.IndexDataCacheFile, "_save_index", write_slowly)
    saving = [
        threading.Thread(target=compiled(tmp_path)._cache.save_overload, args=version)
        for version in plain.overloads.items()
    ]
    for thread in saving:
        thread.start()
    for thread in saving:
        thread.join()
    function = compiled(tmp_path)
    assert [function(np.arange(4, dtype=width)) for width in WIDTHS] == [6, 6]
    assert hits(function) == 2
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
