"""Table 1 on the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page.cells import listed, load_cells, table, thousands

WORDS = {"entities": "entities", "relations": "relations", "triples": "triples", "testset": "test triples"}


def section(results: Path, published: dict[str, Any], pictures: Path) -> str:
    """Return the data sets' figures beside the paper's."""
    cells = {cell["name"]: cell["results"] for cell in load_cells(results, "table1")}
    paper = published["table1"]["rows"]
    names = [name for name in paper if name in cells]
    if not names:
        return ""
    rows = []
    for key, words in WORDS.items():
        rows.append([words, *(thousands(cells[name][key]) for name in names)])
        rows.append([f"{words}, the paper", *(thousands(paper[name][key]) for name in names)])
    for key in ("entities_of_all_splits", "reflexive_triples"):
        rows.append([key.replace("_", " "), *(thousands(cells[name][key]) for name in names)])
    shown = table(["train split", *(cells[name]["data"] for name in names)], rows)
    return f"## Table 1: the data sets\n\n{shown}\n\n{sentences(cells, paper, names)}\n"


def sentences(cells: dict[str, Any], paper: dict[str, Any], names: list[str]) -> str:
    """Say what differs."""
    words = []
    whole = [name for name in names if cells[name]["data"] == name]
    odd = [
        f"{name} has {thousands(cells[name][key])} {WORDS[key]}, the paper says {thousands(paper[name][key])}"
        for name in whole
        for key in WORDS
        if cells[name][key] != paper[name][key]
    ]
    words.append(f"{'; '.join(odd)}." if odd else f"{listed(whole)} match the paper." if whole else "")
    for name in set(names) - set(whole):
        share = cells[name]["triples"] / paper[name]["triples"]
        words.append(
            f"{name} was not available in full: {cells[name]['data']} has {100 * share:.0f} % of its train triples, "
            "so its results are never compared with published ones."
        )
    return " ".join(filter(None, words))
