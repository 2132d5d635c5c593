"""The options of `learn`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack

from anyburl.base import checking
from anyburl.base.checking import MOST, MOST_SECONDS, MOST_THREADS
from anyburl.base.errors import InvalidOptionError
from anyburl.rules.types import MAX_LENGTH, PathProfile

POLICIES = ("weighted", "greedy", "random", "saturation")
REWARDS = ("support", "support-confidence", "length-discounted", "support-pca")
HEADS = ("all", "sampled")
ENGINES = ("threads", "ray")

SECONDS = 100.0  # the budget of a run that is given none
PATHS_PER_CORE = 20_000  # in one time span of a run with a path budget
CORES_OF_PATH_RUNS = 4  # fixed, so that the result does not depend on the threads

CHOICES = {"policy": POLICIES, "reward": REWARDS, "heads": HEADS, "engine": ENGINES}
WHOLE = (
    ("paths", 1, MOST),
    *((name, 0, MAX_LENGTH) for name in ("max_cyclic", "max_acyclic", "max_grounded")),
    *((name, 1, MOST) for name in ("min_support", "budget", "max_rules")),
    ("threads", 1, MOST_THREADS),
    ("seed", 0, MOST),
)
"""The options that are whole numbers, with the least and the greatest value."""
REAL = (
    ("seconds", 0, MOST_SECONDS),
    ("span", 0.01, MOST_SECONDS),
    *((name, 0, 1) for name in ("min_confidence", "epsilon", "saturation", "precision")),
)
"""The options that are numbers, with the least and the greatest value."""


class LearnKeywords(TypedDict, total=False):
    """The fields of `LearnOptions` as keyword arguments, which editors complete and type checkers check."""

    seconds: float | None
    paths: int | None
    snapshots: tuple[float, ...]
    max_cyclic: int
    max_acyclic: int
    max_grounded: int
    min_support: int
    min_confidence: float
    policy: str
    reward: str
    epsilon: float
    saturation: float
    span: float
    heads: str
    budget: int
    precision: float
    object_identity: bool
    relations: tuple[str, ...] | None
    max_rules: int | None
    threads: int | None
    seed: int
    engine: str
    address: str | None


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """Options of a learning run, checked on creation; the defaults are the paper's (section 4.1).

    The budget is either `seconds` (100 if neither is given) or `paths`, the number of paths to sample: with a path
    budget and a seed, two runs give the same rules. `engine="ray"` runs on the Ray cluster at `address`, or starts Ray
    on this machine; `threads` is then the number of workers.
    """

    seconds: float | None = None
    paths: int | None = None
    snapshots: tuple[float, ...] = (10.0, 50.0, 100.0)
    max_cyclic: int = 3
    max_acyclic: int = 1
    max_grounded: int = 1
    min_support: int = 2
    min_confidence: float = 0.0001
    policy: str = "weighted"
    reward: str = "support-confidence"
    epsilon: float = 0.1
    saturation: float = 0.99
    span: float = 1.0
    heads: str = "all"
    budget: int = 1_000_000
    precision: float = 0.02
    object_identity: bool = True
    relations: tuple[str, ...] | None = None
    max_rules: int | None = None
    threads: int | None = None
    seed: int = 0
    engine: str = "threads"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None and self.paths is not None:
            raise InvalidOptionError("paths", "left out when {seconds} is given", self.paths)
        if self.seconds is None and self.paths is None:
            object.__setattr__(self, "seconds", SECONDS)
        for name, value in (*self._numbers(), *self._others()):
            object.__setattr__(self, name, value)
        if self.address is not None and not isinstance(self.address, str):
            raise InvalidOptionError("address", "text such as 10.0.0.1:6379", self.address)
        if self.address is not None and self.engine != "ray":
            raise InvalidOptionError("address", "left out unless {engine} is ray", self.address)
        if self.max_cyclic == 0 and self.max_acyclic == 0:
            raise InvalidOptionError("max_cyclic", "at least 1 when {max_acyclic} is 0", 0)

    def _numbers(self) -> Iterator[tuple[str, float | None]]:
        """Yield the options that are numbers, checked; those that may be left out stay None."""
        for name, least, most in WHOLE:
            value = getattr(self, name)
            if value is not None or getattr(LearnOptions, name) is not None:
                yield name, checking.whole(name, value, least, most)
        for name, lower, upper in REAL:
            value = getattr(self, name)
            if value is not None or getattr(LearnOptions, name) is not None:
                yield name, checking.real(name, value, lower, upper)

    def _others(self) -> Iterator[tuple[str, Any]]:
        """Yield the other options, checked."""
        for name, choices in CHOICES.items():
            yield name, checking.choice(name, getattr(self, name), choices)
        yield "object_identity", checking.flag("object_identity", self.object_identity)
        yield "snapshots", _moments(self.snapshots)
        if self.relations is not None:
            labels = checking.texts("relations", self.relations, "a list of relations")
            if not labels:
                raise InvalidOptionError("relations", "at least one relation", labels)
            yield "relations", labels

    def changed(self, **changes: Unpack[LearnKeywords]) -> LearnOptions:
        """Return these options with `changes`: one budget replaces the other, and threads need no address."""
        new: dict[str, Any] = {**self.to_json(), **changes}
        for budget, other in (("seconds", "paths"), ("paths", "seconds")):
            if changes.get(budget) is not None:
                new[other] = changes.get(other)
        if new["engine"] != "ray":
            new["address"] = changes.get("address")
        return checking.from_keywords(LearnOptions, new)

    @property
    def profiles(self) -> tuple[PathProfile, ...]:
        """The path profiles to choose from, the shortest first."""
        lengths = range(1, max(self.max_cyclic, self.max_acyclic) + 1)
        return tuple(
            PathProfile(cyclic, length)
            for length in lengths
            for cyclic in (True, False)
            if length <= (self.max_cyclic if cyclic else self.max_acyclic)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the options as plain values."""
        return asdict(self)


def _moments(snapshots: Any) -> tuple[float, ...]:
    if isinstance(snapshots, str | bytes) or not isinstance(snapshots, Iterable):
        raise InvalidOptionError("snapshots", "seconds above 0", snapshots)
    moments = tuple(snapshots)
    try:
        return tuple(checking.above_zero("snapshots", moment) for moment in moments)
    except InvalidOptionError:
        raise InvalidOptionError("snapshots", "seconds above 0", moments) from None
