"""The parts of a run folder: rules as ids, one array after the other, in numbered files.

Written every few seconds during a run, and removed when `rules.parquet` holds all rules.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np

from anyburl.errors import RunError
from anyburl.ruleset.columns import COLUMN_TYPES, RuleColumns
from anyburl.sealed import is_sealed, seal
from anyburl.triples.vocabulary import Vocabulary
from anyburl.writing import make_inner_folder, replacing

PARTS = "parts"
SUFFIX = ".columns"
KEY_SUFFIX = ".keys"  # of files beside the parts: bodies that a resumed run need not harvest again
ARRAY = b"\x93"  # with which every array begins

_STORED = ("bodies", *COLUMN_TYPES)
"""What a part holds, one array after the other; then the margins, if some are known."""


def part_files(folder: Path, suffix: str = SUFFIX) -> list[Path]:
    """Return the parts of a run, or the numbered files with another suffix beside them, in their order."""
    files = (folder / PARTS).glob(f"*{suffix}")
    return sorted((file for file in files if file.stem.isdecimal()), key=lambda file: int(file.stem))


def next_part(folder: Path, suffix: str = SUFFIX) -> Path:
    """Return the path of the next numbered file; their folder is made."""
    make_inner_folder(folder / PARTS, RunError)
    number = max((int(file.stem) for file in part_files(folder, suffix)), default=0) + 1
    return folder / PARTS / f"{number:06d}{suffix}"


def remove_parts(folder: Path) -> None:
    """Remove the parts of a run, whose rules are in `rules.parquet`, and the keys beside them; no other files."""
    for file in (*part_files(folder), *part_files(folder, KEY_SUFFIX)):
        with suppress(OSError):
            file.unlink()


def write_part(folder: Path, rules: RuleColumns) -> None:
    """Append rules to the parts of a run, complete or not at all."""
    with replacing(next_part(folder), RunError) as unfinished, open(unfinished, "wb") as file:
        for name in (*_STORED, *(["margin"] if rules.margin is not None else [])):
            np.save(file, getattr(rules, name))
        file.flush()
        seal(unfinished)


def read_part(file: Path, vocabulary: Vocabulary) -> RuleColumns:
    """Return the rules of a part; what is not whole, or does not fit the vocabulary, is refused."""
    try:
        has_seal = is_sealed(file)  # else it is of an earlier version
        with open(file, "rb") as stored:
            columns = {name: np.lib.format.read_array(stored, allow_pickle=False) for name in _STORED}
            margin = np.lib.format.read_array(stored, allow_pickle=False) if stored.peek(1)[:1] == ARRAY else None
            if stored.read() and not has_seal:
                raise ValueError("it ends in the middle of its checksum")
        return RuleColumns(vocabulary=vocabulary, **columns, margin=margin)
    except Exception as error:  # NumPy has no one kind of error for a header that it cannot read
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{file} is damaged ({reason or type(error).__name__})") from error
