"""Files of columns: Parquet with bytes that were damaged, and whole Parquet with odd columns; safetensors; arrays."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anyburl import Dataset, RuleSet
from anyburl.data.files import read_triples
from anyburl.models.calibration import N_CONTEXTS, Calibration, calibration_key, load_calibration, save_calibration
from anyburl.models.embedding import FILE, load_embedding, write_arrays
from anyburl.models.tuned.kernel import ForestArrays
from anyburl.models.tuned.listing import COLUMNS, ScoredAnswers
from anyburl.models.tuned.model import TunedModel
from anyburl.models.tuned.train import N_FOLDS, Tuning, load_tuning, save_tuning, tuning_key
from anyburl.tools.publishing import read_facts
from fuzz.target import Target, damaged, parquet, written

TRIPLES = [("ed", "lives", "nl"), ("lisa", "lives", "nl"), ("nl", "lang", "dutch"), ("ed", "speaks", "dutch")]
DATA = Dataset.from_triples(TRIPLES)
RULES = [
    ("B", "speaks", ["lives", "lang"], [True, True], None, None, None, 5, 2, True),
    ("Uc", "speaks", ["lives"], [True], None, "dutch", "nl", 4, 3, False),
    ("Ud", "lives", ["speaks"], [False], "ed", None, None, 4, 3, None),
]
RULE_SCHEMA: dict[str, Any] = {
    "type": pl.String,
    "head": pl.String,
    "body": pl.List(pl.String),
    "forward": pl.List(pl.Boolean),
    "subject": pl.String,
    "object": pl.String,
    "constant": pl.String,
    "predictions": pl.Int64,
    "support": pl.Int64,
    "exact": pl.Boolean,
}
WITHIN = 64  # the bit of the first byte that tells to damage what is in an archive
N_FEATURES = 2  # columns that the kept model asks for
SCORES = [("nl", "lang", "object", "dutch", 1.5), ("dutch", "speaks", "subject", "ed", -2.0)]
FACTS = {
    "subject": ["a"],
    "relation": ["r"],
    "object": ["b"],
    "score": [0.5],
    "rules": [1],
    "facts": [[["a", "r", "c"]]],
}

ODD = ("", "B", "Z", "ed", "speaks", "\0self", "\0", "me_myself_i", "X", "é\t", None, "object", "9" * 30)
NUMBERS = (0, 1, -1, 3, 2**31, 2**62, -(2**63), None)
REALS = (0.5, -1.0, float("nan"), float("inf"), 1e300, None)


def odd_column(draw: random.Random, n_rows: int, kind: Any) -> pl.Series:
    """Return a column with odd values of a kind, or of another one."""
    kinds = (
        pl.String,
        pl.Int64,
        pl.Float64,
        pl.Boolean,
        pl.Categorical,
        pl.Null,
        pl.Binary,
        pl.Int8,
        pl.UInt64,
        pl.Date,
    )
    nested = (
        pl.List(pl.String),
        pl.List(pl.Int64),
        pl.List(pl.List(pl.String)),
        pl.Struct({"a": pl.String}),
        pl.List(pl.Boolean),
    )
    wanted = kind if draw.random() < 0.7 else draw.choice((*kinds, *nested))
    return pl.Series([odd_value(draw, wanted) for _ in range(n_rows)], dtype=wanted, strict=False)


def odd_value(draw: random.Random, kind: Any) -> Any:
    """Return a value that may stand in a column of a kind."""
    if isinstance(kind, pl.List):
        return None if draw.random() < 0.1 else [odd_value(draw, kind.inner) for _ in range(draw.randrange(4))]
    if isinstance(kind, pl.Struct):
        return {"a": draw.choice(ODD)}
    if kind in (pl.Int64, pl.UInt64, pl.Int8):
        return draw.choice(NUMBERS)
    if kind == pl.Float64:
        return draw.choice(REALS)
    if kind == pl.Boolean:
        return draw.choice((True, False, None))
    if kind == pl.Binary:
        return draw.choice((b"", b"\xff", None))
    return None if kind in (pl.Null, pl.Date) else draw.choice(ODD)


def odd_frame(data: bytes, frame: pl.DataFrame) -> bytes:
    """Return a frame as Parquet in which the bytes choose what is changed: columns, cells, the number of rows."""
    draw = random.Random(data)
    rows = frame[[draw.randrange(frame.height) for _ in range(draw.choice((0, 1, 2, 5)))]]
    for _ in range(draw.choice((0, 1, 1, 2, 4))):
        name = draw.choice(rows.columns) if rows.columns else "x"
        if draw.random() < 0.15:
            rows = rows.drop(name, strict=False)
        elif rows.columns:
            rows = rows.with_columns(odd_column(draw, rows.height, rows.schema[name]).alias(name))
    return parquet(rows)


def tabular(frame: pl.DataFrame, read: Callable[[Path], object]) -> tuple[Callable[[Path, bytes], object], list[bytes]]:
    """Return a parser of Parquet: an even first byte damages the bytes of the frame, an odd one its columns."""
    whole = parquet(frame)

    def parse(folder: Path, data: bytes) -> object:
        is_odd = bool(data) and data[0] & 1
        return read(
            written(folder, "table.parquet", odd_frame(data, frame) if is_odd else damaged([whole], data[1:])[1])
        )

    return parse, [b"\0\x80" + whole, b"\0\0", b"\1", *(bytes([1, number]) for number in range(64))]


def load_rules(path: Path) -> None:
    """Rules that were read can be written, and are counts that make sense."""
    found = RuleSet.load(path)
    assert (found.support <= found.predictions).all()
    found.texts()


def embedding(folder: Path, data: bytes) -> None:
    """An embedding: safetensors."""
    whole = _embedding(folder)
    (folder / FILE).write_bytes(damaged([whole], data)[1])
    found = load_embedding(folder, DATA)
    found.scores(np.array([0], np.int32), np.array([1], np.int32))


@cache
def _embedding(folder: Path) -> bytes:
    words, draw = DATA.vocabulary, np.random.default_rng(1)
    arrays = {"entities": draw.random((words.n_entities, 4)), "relations": draw.random((2 * words.n_relations, 4))}
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    return write_arrays(folder / FILE, halves, {"data": DATA.fingerprint}).read_bytes()


def tuned(folder: Path, data: bytes) -> None:
    """A tuned model and a calibration, as run folders keep them; what cannot be used is told, not raised.

    The archive is damaged, or one of its arrays within an archive that is whole: checksums tell the former.
    """
    first = data[0] if data else 0
    path, whole, kept_is_model = _kept(folder)[first & 1]
    path.write_bytes(_archive(whole, data[1:]) if first & WITHIN else damaged([whole], data[1:])[1])
    if kept_is_model:
        found = load_tuning(folder, tuning_key("rules", "data", {}), 1)
        if isinstance(found, Tuning) and found.model is not None:
            found.model.scores(np.zeros((2, N_FEATURES), np.float32))
    else:
        stored = load_calibration(folder, calibration_key("rules", "data", {}), DATA.vocabulary.n_relations)
        if isinstance(stored, Calibration):
            stored.probabilities(np.array([0, 2], np.int32), np.array([0, 1], np.int32), np.array([0.1, 0.9]))
            stored.least_scores(0.5)


def _archive(whole: bytes, data: bytes) -> bytes:
    """Return an archive in which one file is damaged."""
    names, contents = _files(whole)
    number, other = damaged(contents, data)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for place, name in enumerate(names):
            files.writestr(name, other if place == number else contents[place])
    return archive.getvalue()


@cache
def _files(archive: bytes) -> tuple[list[str], list[bytes]]:
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        return files.namelist(), [files.read(name) for name in files.namelist()]


@cache
def _kept(folder: Path) -> tuple[tuple[Path, bytes, bool], tuple[Path, bytes, bool]]:
    ints, reals = (lambda *values: np.array(values, np.int32)), (lambda *values: np.array(values, np.float64))
    forest = ForestArrays(ints(0, -4), ints(0, 1), reals(0.5, 0.2), ints(1, -1, -2, -3), reals(0.1, 0.2, 0.3, 0.4))
    trees = TunedModel(forest, 1)
    tuning = Tuning(trees, "noisy-or-top:5", {"model": 0.5}, 10, 1.0, by_fold=(trees,) * N_FOLDS)
    model = save_tuning(folder, tuning, tuning_key("rules", "data", {}))
    n_relations = DATA.vocabulary.n_relations
    counts = {name: np.full(n_relations, 9.0) for name in ("hidden", "stated", "elsewhere")}
    counts |= {"missing": np.full(n_relations, 0.1), "floors": np.zeros(n_relations), "shift": np.zeros(n_relations)}
    fitted = Calibration(np.array([0, 10, 40]), np.full((n_relations, N_CONTEXTS, 3), 0.5), **counts)
    calibration = save_calibration(folder, fitted, {}, calibration_key("rules", "data", {}))
    return (model, model.read_bytes(), True), (calibration, calibration.read_bytes(), False)


def _target(name: str, about: str, frame: pl.DataFrame, read: Callable[[Path], object]) -> Target:
    parse, seeds = tabular(frame, read)
    return Target(name, about, parse, seeds)


TARGETS = (
    _target(
        "triples-parquet",
        "triples in Parquet",
        pl.DataFrame(TRIPLES, ["subject", "relation", "object"], orient="row"),
        read_triples,
    ),
    _target("rules-parquet", "rules in Parquet", pl.DataFrame(RULES, RULE_SCHEMA, orient="row"), load_rules),
    _target(
        "scores",
        "scores of another model (--with-scores)",
        pl.DataFrame(SCORES, list(COLUMNS), orient="row"),
        lambda path: ScoredAnswers.read(path, DATA).scores(np.array([0, 1], np.int32), np.array([0, 1], np.int32)),
    ),
    _target("facts-parquet", "facts in Parquet", pl.DataFrame(FACTS), read_facts),
    Target("embedding", "embeddings (safetensors)", embedding, (b"\0", b"\0\x10\0\0\1x")),
    Target(
        "tuned",
        "kept tuned models and calibrations",
        tuned,
        (b"\0\0", b"\1\0", b"\0\0\x10\0\0\1x", b"\x40\1\x88\0\0\1x", b"\x41\1\x88\0\0\1x"),
    ),
)
