"""Text in, integers out: vocabularies, tables of triples, their files, and data sets."""

from __future__ import annotations

from anyburl.triples.dataset import SPLITS, Dataset, load_dataset
from anyburl.triples.files import read_triples, write_triples
from anyburl.triples.frames import COLUMNS, TriplesLike
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import SELF_TOKEN, Vocabulary

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
