"""Which module holds which targets: only that one is imported, since instrumenting takes its time."""

from __future__ import annotations

from importlib import import_module

from fuzz.target import Target

MODULES = {
    "texts": ("lines", "tables", "edges", "rdf", "dumps", "names", "addresses", "results", "datasets"),
    "rules": ("rule", "rules", "amie", "queries", "facts", "reviews"),
    "columns": ("triples-parquet", "rules-parquet", "scores", "facts-parquet", "embedding", "tuned"),
    "folders": ("run", "index", "prepared"),
}
NAMES = tuple(name for names in MODULES.values() for name in names)


def find_target(name: str) -> Target:
    """Return a target by its name."""
    module = next(module for module, names in MODULES.items() if name in names)
    return next(target for target in import_module(f"fuzz.{module}").TARGETS if target.name == name)


def abouts() -> dict[str, str]:
    """Return what each target is."""
    return {name: find_target(name).about for name in NAMES}
