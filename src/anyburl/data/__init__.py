"""Text in, integers out: vocabularies, triple tables, their files, and data sets.

Names are imported when they are used: the command line takes options from here, and its help needs no data frames.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyburl.data.dataset import SPLITS, Dataset, load_dataset
    from anyburl.data.files import read_triples, write_triples
    from anyburl.data.formats.frames import COLUMNS, TriplesLike
    from anyburl.data.table import TripleTable
    from anyburl.data.vocabulary import SELF_TOKEN, Vocabulary

_HOMES = {
    "COLUMNS": "formats.frames",
    "SELF_TOKEN": "vocabulary",
    "SPLITS": "dataset",
    "Dataset": "dataset",
    "TripleTable": "table",
    "TriplesLike": "formats.frames",
    "Vocabulary": "vocabulary",
    "load_dataset": "dataset",
    "read_triples": "files",
    "write_triples": "files",
}

__all__ = [
    "COLUMNS",
    "SELF_TOKEN",
    "SPLITS",
    "Dataset",
    "TripleTable",
    "TriplesLike",
    "Vocabulary",
    "load_dataset",
    "read_triples",
    "write_triples",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyburl.data' has no attribute {name!r}")
    return getattr(import_module(f"anyburl.data.{_HOMES[name]}"), name)
