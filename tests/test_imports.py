"""Imports stand at the top of a file and hide no ring; what Polars may change stands in one file."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import anyburl

PACKAGE = Path(anyburl.__file__).parent

EXTRAS = {
    "duckdb",
    "lightgbm",
    "matplotlib",
    "pandas",
    "psycopg",
    "pyarrow",
    "pykeen",
    "pyoxigraph",
    "ray",
    "safetensors",
    "torch",
}
"""Libraries that may be missing, or whose own libraries may: imported where they are used."""

NEED_EXTRAS = {"anyburl.ranking.ray"}
"""Modules of ours that import such a library at their top."""

UNSTABLE = {"collect_batches", "read_lines", "register_io_source", "scan_lines", "sink_batches"}
"""What Polars calls unstable and we have a use for."""


IMPORT_WHEN_USED = {"reasoning/opening.py", "reasoning/queries.py", "reasoning/reasoner.py"}
"""What every question to rules passes: what only some need, such as models, is a third of what they would import."""


def is_command_line(name: str) -> bool:
    """The command line imports what a command needs when it runs, so that `anyburl --help` is there at once."""
    return name.startswith("cli/")


@cache
def files() -> list[tuple[str, ast.Module]]:
    paths = sorted(PACKAGE.rglob("*.py"))
    return [(path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8"))) for path in paths]


def imported(tree: ast.AST) -> set[str]:
    """Return the modules that are imported anywhere below a node."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    return names


def imported_in_functions(tree: ast.Module) -> set[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return set().union(*map(imported, functions))


def imported_for_types(tree: ast.Module) -> set[str]:
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    return set().union(*map(imported, blocks))


def test_imports_stand_at_the_top_but_for_extras_and_commands() -> None:
    found = {name: imported_in_functions(tree) for name, tree in files() if not is_command_line(name)}
    inside = {
        name
        for name, names in found.items()
        if any(module.split(".")[0] not in EXTRAS for module in names - NEED_EXTRAS)
    }
    assert inside <= IMPORT_WHEN_USED


def test_imports_for_types_hide_no_ring() -> None:
    """A module that is imported for types alone is usually one that could not be imported otherwise."""
    found = {name: imported_for_types(tree) for name, tree in files() if not is_command_line(name)}
    hidden = {name for name, names in found.items() if any(n.startswith(("anyburl", ".")) for n in names)}
    assert hidden == {"__init__.py", "data/__init__.py"} | IMPORT_WHEN_USED  # they import when a name is used


def test_what_polars_may_change_stands_in_one_file() -> None:
    users = {
        name
        for name, tree in files()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in UNSTABLE)
        or (isinstance(node, ast.alias) and node.name in UNSTABLE)
    }
    assert users == {"base/polars_unstable.py"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f():\n    import numpy.linalg", {"numpy.linalg"}),
        ("class A:\n    async def f(self):\n        if self:\n            from anyburl import x", {"anyburl"}),
        ("def f():\n    from . import x", {"."}),
        ("import numpy\nclass A:\n    import polars", set()),
    ],
)
def test_imports_inside_functions_are_found_wherever_they_stand(source: str, expected: set[str]) -> None:
    assert imported_in_functions(ast.parse(source)) == expected
