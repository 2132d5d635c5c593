"""What a resumed run knows of an earlier one: the bodies it need not harvest again, and where to go on.

The bodies of rules are known from the rules. Those without rules are in files of their keys: one for each part of a run
folder, and `bodies.keys` of a run that has ended. How far lists of bodies had come is in the trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.errors import RunError
from anyburl.base.sealed import is_sealed, seal
from anyburl.base.writing import replacing
from anyburl.bodies.counting import rule_bodies
from anyburl.bodies.paths import with_keys
from anyburl.graph.arrays import GraphArrays
from anyburl.learning.options import LearnOptions
from anyburl.learning.policy import complete_in, listed_in
from anyburl.rules.files.run_folder import KEY_SUFFIX, KEYS, next_part, part_files
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import PathProfile

THRESHOLDS = (
    "min_support",
    "min_confidence",
    "max_grounded",
    "relations",
    "heads",
    "object_identity",
    "budget",
    "precision",
)
"""Options that decide which rules a body gives, and which bodies a profile has."""

Keys = NDArray[np.uint64]
NO_KEYS: Keys = np.empty(0, np.uint64)


def known_keys(graph: GraphArrays, rules: RuleSet, options: LearnOptions) -> Iterator[tuple[Keys, NDArray[np.int64]]]:
    """Yield, length by length, the keys of the bodies behind `rules` and how many rules each gave."""
    for length in np.unique(rules.lengths):
        if length == 0:
            continue
        bodies = rule_bodies(graph, rules.take(rules.lengths == length), int(length))
        if options.heads == "all":
            bodies.heads[:] = -1
            bodies.head_constants[:] = -1
        keys, counts = np.unique(with_keys(graph, bodies).keys, return_counts=True)
        yield keys, counts


def is_same_search(before: LearnOptions, options: LearnOptions) -> bool:
    """Whether what a run with options `before` did counts for one with `options`, too."""
    return all(getattr(before, name) == getattr(options, name) for name in (*THRESHOLDS, "reward"))


@dataclass(frozen=True)
class Earlier:
    """Where an earlier run ended: the `keys` of harvested bodies without rules and, at the end of the last `span` that
    is wholly recorded (-1: none), how many bodies of each list were harvested and which profiles had no body left.
    """

    keys: Keys
    span: int = -1
    listed: Mapping[PathProfile, int] = field(default_factory=dict)
    finished: frozenset[PathProfile] = frozenset()


NOTHING = Earlier(NO_KEYS)


@dataclass(frozen=True)
class KeyFiles:
    """The files of keys in a run folder.

    Each begins with what its keys depend on (`search`), the last span whose bodies are in it or in the files before,
    and how many rules the folder held then.
    """

    folder: Path
    search: Mapping[str, Any]
    seed: int

    @classmethod
    def of(cls, folder: Path, fingerprint: str | None, options: LearnOptions) -> KeyFiles:
        """Return the files of a run with `options` on the data with this fingerprint."""
        search = {
            "anyburl": __version__,
            "numpy": version("numpy"),  # lists of bodies are in its random order
            "data": fingerprint,
            **{name: getattr(options, name) for name in (*THRESHOLDS, "max_rules", "keep")},
        }
        return cls(folder, json.loads(json.dumps(search)), options.seed)

    def write_part(self, keys: Keys, *, span: int, n_rules: int) -> None:
        """Add a file beside the parts of the run; the rules of its spans must be there already."""
        self._write(next_part(self.folder, KEY_SUFFIX), keys, span, n_rules)

    def write_all(self, keys: Keys, *, span: int, n_rules: int, gave_rules: bool) -> None:
        """Write the only file of a run that has ended. If some of the bodies `gave_rules`, which a cap has dropped, it
        holds as long as the rules are there that were kept.
        """
        self._write(self.folder / KEYS, np.unique(keys), span, n_rules, gave_rules=gave_rules)

    def read(self, n_rules: int, trace: Iterable[Mapping[str, Any]]) -> Earlier:
        """Return where the run with this trace ended, whose folder holds `n_rules`.

        Rules that were lost or removed must be found again, so with fewer rules than there were, lists of bodies begin
        anew. A damaged file is left out, since it spares nothing but work.
        """
        keys = [NO_KEYS]
        last: dict[str, Any] = {"span": -1}
        for file in (self.folder / KEYS, *part_files(self.folder, KEY_SUFFIX)):
            try:
                head, stored = _read(file)
            except (OSError, ValueError):
                continue
            if head["search"] == self.search and not (head["gave_rules"] and head["rules"] > n_rules):
                keys.append(stored)
                last = max(last, head, key=itemgetter("span"))
        every = np.unique(np.concatenate(keys))
        line = next((line for line in trace if line["number"] == last["span"]), None)
        if line is None or last["rules"] > n_rules:
            return Earlier(every)
        same_order = last["seed"] == self.seed
        listed = {profile: place.done for profile, place in listed_in(line).items()} if same_order else {}
        return Earlier(every, int(last["span"]), listed, complete_in(line))

    def _write(self, path: Path, keys: Keys, span: int, n_rules: int, *, gave_rules: bool = False) -> None:
        head = {"search": self.search, "seed": self.seed, "span": span, "rules": n_rules, "gave_rules": gave_rules}
        with replacing(path, RunError) as unfinished, open(unfinished, "wb") as file:
            file.write(json.dumps(head).encode() + b"\n")
            np.save(file, keys)
            file.flush()
            seal(unfinished)


def _read(path: Path) -> tuple[dict[str, Any], Keys]:
    """Return the head and the keys of a file."""
    if not is_sealed(path):
        raise ValueError("it has no checksum")
    with open(path, "rb") as file:
        return json.loads(file.readline()), np.lib.format.read_array(file, allow_pickle=False)
