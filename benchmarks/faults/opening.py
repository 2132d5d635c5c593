"""Is what a command left there whole? Each function opens a file or folder, and raises if it cannot."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import polars as pl

from anyburl import RuleSet, load_dataset
from anyburl.models.embedding import read_arrays
from anyburl.reasoning.metrics import read_metrics
from anyburl.reasoning.prepared import open_prepared
from anyburl.rules.run_folder import read_run, read_trace


def rules(path: Path) -> None:
    """Open a file of rules."""
    assert len(RuleSet.load(path)) > 0


def run(path: Path) -> None:
    """Open a run folder, and each of the snapshots that its trace tells of."""
    _, damaged = read_run(path)
    assert not damaged, damaged
    for line in read_trace(path):
        if line.get("snapshot"):
            taken = read_run(path, at=line["snapshot"])[0]
            assert len(taken) >= line["rules"], f"snapshot {line['snapshot']}: {len(taken)} of {line['rules']} rules"


def prepared(path: Path) -> None:
    """Open what `prepare` made of the run folder that holds it."""
    assert len(open_prepared(path.parent).rules) > 0


def index(path: Path) -> None:
    """Open an index."""
    assert len(load_dataset(path).train) > 0


def table(path: Path) -> None:
    """Open a table, tab-separated or Parquet."""
    found = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, separator="\t", quote_char=None)
    assert found.height > 0


def text(path: Path) -> None:
    """Look at a file of text: it ends with the end of a line."""
    assert path.read_bytes().endswith(b"\n")


def page(path: Path) -> None:
    """Look at a page or a drawing: it is closed."""
    assert path.read_text("utf-8").rstrip().endswith(("</html>", "</svg>"))


def picture(path: Path) -> None:
    """Look at a PNG: it has its last chunk."""
    assert path.read_bytes()[-8:-4] == b"IEND"


def arrays(path: Path) -> None:
    """Open all files of arrays in a folder."""
    for file in path.glob("*.npz"):
        with np.load(file, allow_pickle=False) as stored:
            assert all(stored[name] is not None for name in stored.files)


def embedding(path: Path) -> None:
    """Open an embedding."""
    assert read_arrays(path)[0]


def database(path: Path) -> None:
    """Open a database: it has all facts or none."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def metrics(path: Path) -> None:
    """Read the metrics beside a run: a line that was cut short costs no other."""
    assert read_metrics(path.parent) or not path.read_bytes().endswith(b"}\n")
