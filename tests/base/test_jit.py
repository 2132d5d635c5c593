"""The decorators of kernels: what they refuse, what they compile how often, and which files the cache depends on."""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numba
import numpy as np
import pytest
from numba.core.compiler import run_frontend
from numba.core.errors import TypingError
from numpy.typing import NDArray

import anyburl
from anyburl.base import jit as _jit
from anyburl.base.jit import inlined, kernel, merged, part
from kernels import INTERPRETED

PACKAGE = Path(anyburl.__file__).parent
DECORATORS = {"kernel", "part", "inlined", "merged"}
compiled_only = pytest.mark.skipif(INTERPRETED, reason="kernels are not compiled")


@cache
def modules() -> list[tuple[Path, ast.Module]]:
    """Every file that may use the decorators, parsed."""
    texts = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py")) if path.name != "jit.py"}
    return [(path, ast.parse(text)) for path, text in texts.items() if "jit" in text]


def decorated(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions under one of the decorators, however that is written: @kernel, @_jit.kernel, @kernel(...)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            called = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
            names = {d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in called}
            found += [node] if names & DECORATORS else []
    return found


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Name -> module, of everything imported from this package."""
    return {
        alias.asname or alias.name: node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("anyburl")
        for alias in node.names
    }


def names_in(nodes: list[ast.FunctionDef]) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def test_every_kernel_is_in_a_file_that_the_cache_depends_on() -> None:
    """A kernel elsewhere would run as stale machine code after an edit: name its file kernel*.py."""
    counted = {path.resolve() for path in _jit.kernel_sources()}
    elsewhere = [str(path) for path, tree in modules() if decorated(tree) and path.resolve() not in counted]
    assert elsewhere == []


def test_the_cache_of_a_kernel_depends_on_everything_that_it_uses() -> None:
    """NamedTuples, constants and functions that kernels name: swapped fields would give wrong numbers."""
    elsewhere = set()
    n_used = 0
    for path, tree in modules():
        imported, sources = imported_names(tree), _jit.sources_of(path)
        for name in names_in(decorated(tree)) & imported.keys():
            home = Path(str(import_module(imported[name]).__file__)).relative_to(PACKAGE).as_posix()
            n_used += 1
            if home not in sources:
                elsewhere.add(f"{path.name}: {name} from {home}")
    assert n_used > 100
    assert elsewhere == set()


def argument_types() -> set[type]:
    """The NamedTuples that kernels take, and those that are fields of them, like LevelArrays in Scratch."""
    found: set[type] = set()
    for path, tree in modules():
        if functions := decorated(tree):
            module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
            waiting = [hint for node in functions for hint in hints_of(getattr(module, node.name)).values()]
            while waiting:
                hint = waiting.pop()
                if hasattr(hint, "_fields") and hint not in found:
                    found.add(hint)
                    waiting += get_type_hints(hint).values()
    return found


def hints_of(function: Any) -> dict[str, Any]:
    return get_type_hints(getattr(function, "py_func", function))


def test_the_named_tuples_of_kernels_are_in_such_files() -> None:
    counted = {path.resolve() for path in _jit.kernel_sources()}
    types = argument_types()
    assert {"GraphArrays", "Scratch", "LevelArrays"} <= {named.__name__ for named in types}
    assert [named for named in types if Path(inspect.getfile(named)).resolve() not in counted] == []


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with two files of kernels, one of which imports another file."""
    texts = {
        "base/jit.py": "",
        "stage/arrays.py": "WIDTH = 1",
        "stage/kernel.py": "from anyburl.stage.arrays import WIDTH",
        "stage/kernel_call.py": "from anyburl.stage.kernel import (\n    WIDTH,\n)",
        "stage/kernel_other.py": "",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(_jit, "__file__", str(tmp_path / "base" / "jit.py"))
    yield tmp_path
    _jit.cache_folder.cache_clear()
    _jit._text.cache_clear()


def folders(package: Path) -> dict[str, Path]:
    _jit.cache_folder.cache_clear()
    _jit._text.cache_clear()
    return {path.stem: _jit.cache_folder(path) for path in sorted((package / "stage").glob("kernel*.py"))}


@pytest.mark.parametrize(
    ("edited", "dependent"),
    [
        ("base/jit.py", {"kernel", "kernel_call", "kernel_other"}),
        ("stage/arrays.py", {"kernel", "kernel_call"}),
        ("stage/kernel_call.py", {"kernel_call"}),
        ("stage/kernel_other.py", {"kernel_other"}),
    ],
)
def test_an_edit_changes_the_cache_of_what_depends_on_it(edited: str, dependent: set[str], package: Path) -> None:
    before = folders(package)
    (package / edited).write_text((package / edited).read_text() + "\nNEW = 1")
    after = folders(package)
    assert {name for name in after if after[name] != before[name]} == dependent


def test_a_copy_of_the_sources_has_the_same_cache(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = folders(package)
    copy = package.parent / "copy"
    shutil.copytree(package, copy)
    monkeypatch.setattr(_jit, "__file__", str(copy / "base" / "jit.py"))
    assert folders(copy) == before


def test_a_cache_that_cannot_be_read_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise PermissionError("a cache of somebody else")

    monkeypatch.setattr(Path, "glob", refuse)
    assert not _jit.is_compiled("kernel.answer")


def test_checked_kernels_have_a_folder_of_their_own(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    fast = folders(package)["kernel"].name
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert folders(package)["kernel"].name == fast.removesuffix("-fast") + "-checked"


@kernel
def allocate(n: int) -> Any:
    return np.empty(n, np.int64)


@kernel
def join(values: Any) -> Any:
    return np.concatenate((values, values))


@compiled_only
@pytest.mark.parametrize(("function", "argument"), [(allocate, 3), (join, np.zeros(2))])
def test_a_kernel_that_allocates_is_refused(function: Any, argument: Any) -> None:
    with pytest.raises(TypingError, match="Only accept returning of array passed into the function as argument"):
        function(argument)


@inlined
def doubled(value: int) -> int:
    return 2 * value


@part
def tripled(value: int) -> int:
    return 3 * value


@merged
def squared(value: int) -> int:
    return value * value


@kernel
def sum_up(small: Any, large: Any) -> int:
    """Call each part with a literal, a variable that starts as one, an int32 and an int64."""
    total = 0
    for i in range(len(small)):
        total = tripled(doubled(total)) + doubled(small[i]) + tripled(small[i]) + doubled(large[i]) + tripled(7)
    return total + squared(len(small))


def test_parts_may_be_called_with_any_integer() -> None:
    total = sum_up(np.array([1, 2], np.int32), np.array([3, 2**40]))
    expected = 6 * (2 + 3 + 6 + 21) + 4 + 6 + 2**41 + 21
    assert total == expected + 4


@compiled_only
def test_parts_are_compiled_once_whatever_the_integers() -> None:
    compiled_now = numba.njit(_nrt=False)(sum_up.py_func)  # type: ignore[attr-defined]  # not loaded from the cache
    assert compiled_now(np.array([1], np.int32), np.array([3])) == 2 + 3 + 6 + 21 + 1
    for function in (doubled, tripled):
        assert [str(signature) for signature in function.signatures] == ["(int64,)"]  # type: ignore[attr-defined]


@compiled_only
@pytest.mark.parametrize("function", [doubled, tripled, squared])
def test_python_cannot_call_a_part(function: Any) -> None:
    with pytest.raises(TypeError, match="is part of kernels: Python cannot call it"):
        function(1)


class Pair(NamedTuple):
    small: NDArray[np.int32]
    sizes: tuple[int, float]


@part
def weigh(pair: Pair, nothing: tuple[()], values: NDArray[np.int64]) -> float:
    return pair.small[0] * pair.sizes[1] + len(nothing) + values[-1]


@kernel
def weigh_all(pair: Pair, values: NDArray[np.int64]) -> float:
    """Read one field in several blocks, and pass all of them on, whole and put together anew."""
    total = 0.0
    for i in range(len(values)):
        if pair.small[0] > 0:
            total += weigh(pair, (), values[: i + 1])
        else:
            total += weigh(Pair(pair.small[1:], (7, pair.sizes[1] + 1)), (), values)
    return total


def test_parts_take_arrays_and_tuples() -> None:
    small, values = np.array([3, 5], np.int32), np.array([10, 20])
    assert weigh_all(Pair(small, (1, 0.5)), values) == 1.5 + 10 + 1.5 + 20
    assert weigh_all(Pair(-small, (1, 0.5)), values) == 2 * (-5 * 1.5 + 20)


def read_later(values: Any, limit: int) -> int:
    first, total, last = values[0], 0, values[0]
    for value in values:
        total += first
        if value > limit:
            found = value
            last = found + first
    return int(total + last + found)


def test_what_is_assigned_once_before_it_is_read_needs_no_place_on_the_stack() -> None:
    once = _jit._assigned_once(run_frontend(read_later).blocks)
    assert {"values", "limit", "first"} <= once
    assert not {"total", "last", "found"} & once


CHECKED = """
import numpy as np
from anyburl.bodies.kernel_paths import record_rules
from anyburl.bodies.paths import _empty_table
record_rules(_empty_table(8), np.zeros(3, np.uint64), np.zeros(1, np.int64))
"""


@compiled_only
def test_bounds_are_checked_on_demand() -> None:
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    done = subprocess.run([sys.executable, "-c", CHECKED], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "IndexError: index is out of bounds" in done.stderr
