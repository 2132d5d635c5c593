"""A distilled set of rules as a run folder, with the rules that were left out and what they are represented by."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError, RunError
from anyburl.base.files import at_home
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replace_text, replacing
from anyburl.data.dataset import Dataset
from anyburl.learning.options import LearnOptions
from anyburl.learning.run import RunDirectory, claim_run
from anyburl.models.distilling.distil import Distilled
from anyburl.rules.ruleset import RuleSet

LEFT_OUT = "left-out.parquet"
"""The rules that were left out and resemble a kept one: the columns of rules.parquet, `kept` and `overlap`."""
DISTILLED = "distilled.json"
"""How the rules were chosen: what `distil --json` prints."""


def save_distilled(
    path: str | os.PathLike[str], distilled: Distilled, dataset: Dataset, options: LearnOptions, source: str | None
) -> None:
    """Write a new run folder with the kept rules; `options` are those that all rules were learned with."""
    run = RunDirectory.create(path, dataset, options)
    with claim_run(run.path):
        save_about(run.path, distilled, source)
        run.finish(distilled.rules, {})


def save_about(folder: Path, distilled: Distilled, source: str | None = None) -> None:
    """Write how the rules were chosen, and those that were left out and resemble a kept one, with that one's row."""
    about = {"from": source, **distilled.to_json()}
    replace_text(folder / DISTILLED, json.dumps(about, indent=2) + "\n", RunError)
    frame = distilled.left_out.to_polars().with_columns(
        pl.Series("kept", distilled.representation.kept, pl.UInt32),
        pl.Series("overlap", distilled.representation.overlaps, pl.Float32),
    )
    with replacing(folder / LEFT_OUT, RunError) as unfinished:
        frame.write_parquet(unfinished, compression="zstd", compression_level=1)
        seal(unfinished)


@dataclass(frozen=True)
class LeftOut:
    """Rules that were left out, the nearest to its representative first: its `kept` rule is row so-and-so of the run,
    and `overlaps` is the share of its known answers that this one predicts as well.
    """

    rules: RuleSet
    kept: NDArray[np.int64]
    overlaps: NDArray[np.float64]


def left_out_rules(run: str | os.PathLike[str], row: int | None = None) -> LeftOut:
    """Return the rules that a distilled run left out and that a kept rule stands for: of the rule at `row`, or all."""
    path = at_home(run) / LEFT_OUT
    if not path.is_file():
        raise RunError(f"{os.fspath(run)} has no {LEFT_OUT}: it is not a distilled run")
    try:
        frame = scan_parquet(path)
        chosen = (frame if row is None else frame.filter(pl.col("kept") == row)).collect()
    except UNREADABLE as error:
        raise RunError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return LeftOut(
        RuleSet.from_polars(chosen),
        chosen["kept"].to_numpy().astype(np.int64),
        chosen["overlap"].to_numpy().astype(np.float64),
    )


def check_out(run: Path, out: Path) -> None:
    """Refuse an output that holds a run already."""
    if out.resolve() == run.resolve():
        raise InvalidOptionError("out", "another folder than the run itself", str(out))
    if (out / "options.json").exists():
        raise RunError(f"{out} already contains a run: choose another folder")
