"""The options of `learn`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, TypedDict, Unpack

from anyburl.errors import InvalidOptionError
from anyburl.paths.profile import PathProfile
from anyburl.rules.types import MAX_LENGTH

POLICIES = ("weighted", "greedy", "random", "saturation")
REWARDS = ("support", "support-confidence", "length-discounted", "support-pca")
HEADS = ("all", "sampled")
ENGINES = ("threads", "ray")

SECONDS = 100.0  # the budget of a run that is given none
PATHS_PER_CORE = 20_000  # in one time span of a run with a path budget
CORES_OF_PATH_RUNS = 4  # fixed, so that the result does not depend on the threads


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
    """Options of a learning run; the defaults are the paper's (section 4.1). Checked when made.

    The budget is either `seconds` (100 if neither is given) or `paths`, a number of paths to sample: with a path
    budget and a seed, two runs give the same rules. `engine="ray"` runs on the Ray cluster at `address`, or starts
    Ray on this machine; `threads` is then the number of its workers.
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
        self._check_numbers()
        self._check_choices()
        self._check_lists()
        if not isinstance(self.object_identity, bool):
            raise InvalidOptionError("object_identity", "True or False", self.object_identity)
        if self.address is not None and self.engine != "ray":
            raise InvalidOptionError("address", "left out unless {engine} is ray", self.address)
        if self.max_cyclic == 0 and self.max_acyclic == 0:
            raise InvalidOptionError("max_cyclic", "at least 1 when {max_acyclic} is 0", 0)

    def _check_numbers(self) -> None:
        for name, kind, least, most in _bounds():
            value: Any = getattr(self, name)
            if value is None and getattr(LearnOptions, name) is None:
                continue
            if not _is_a(kind, value):
                raise InvalidOptionError(name, "a whole number" if kind is Integral else "a number", value)
            if not value >= least:
                raise InvalidOptionError(name, f"at least {least}", value)
            if most is not None and value > most:
                raise InvalidOptionError(name, f"at most {most}", value)

    def _check_choices(self) -> None:
        for name, choices in (
            ("policy", POLICIES),
            ("reward", REWARDS),
            ("heads", HEADS),
            ("engine", ENGINES),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise InvalidOptionError(name, f"one of {', '.join(choices)}", value)

    def _check_lists(self) -> None:
        """Check the options with several values; a list is kept as a tuple."""
        moments = _as_tuple("snapshots", self.snapshots, Real, "seconds above 0")
        if any(not moment > 0 for moment in moments):
            raise InvalidOptionError("snapshots", "seconds above 0", moments)
        object.__setattr__(self, "snapshots", moments)
        if self.relations is not None:
            labels = _as_tuple("relations", self.relations, str, "a list of relations")
            if not labels:
                raise InvalidOptionError("relations", "at least one relation", labels)
            object.__setattr__(self, "relations", labels)

    def changed(self, **changes: Unpack[LearnKeywords]) -> LearnOptions:
        """Return these options with `changes`: one budget replaces the other, and threads need no address."""
        new: dict[str, Any] = {**self.to_json(), **changes}
        for budget, other in (("seconds", "paths"), ("paths", "seconds")):
            if changes.get(budget) is not None:
                new[other] = changes.get(other)
        if new["engine"] != "ray":
            new["address"] = changes.get("address")
        return LearnOptions(**new)

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


def _bounds() -> Iterator[tuple[str, type, float, float | None]]:
    """Yield the options that are numbers: name, whole or real, the least and the greatest value."""
    yield from (("seconds", Real, 0, None), ("paths", Integral, 1, None))
    yield from ((name, Integral, 0, MAX_LENGTH) for name in ("max_cyclic", "max_acyclic", "max_grounded"))
    yield from ((name, Integral, 1, None) for name in ("min_support", "budget", "max_rules", "threads"))
    yield from ((name, Real, 0, 1) for name in ("min_confidence", "epsilon", "saturation", "precision"))
    yield from (("span", Real, 0.01, None), ("seed", Integral, 0, None))


def _is_a(kind: type, value: object) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _as_tuple(name: str, values: Any, kind: type, requirement: str) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, tuple | list) or not all(_is_a(kind, v) for v in values):
        raise InvalidOptionError(name, requirement, values)
    return tuple(values)
