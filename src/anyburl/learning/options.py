"""What `learn` can be told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from anyburl.errors import OptionError
from anyburl.paths.profile import PathProfile

POLICIES = ("weighted", "greedy", "random", "saturation")
REWARDS = ("support", "support-confidence", "length-discounted")
HEADS = ("all", "sampled")
ENGINES = ("threads", "ray")

PATHS_PER_CORE = 20_000  # in one time span of a run with a path budget
CORES_OF_PATH_RUNS = 4  # fixed, so that the result does not depend on the threads


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """Options of a learning run; the defaults are the paper's (section 4.1). Checked when made.

    The budget is `seconds`, or `paths` sampled: with a path budget and a seed, two runs give the same rules.
    `engine="ray"` runs on the Ray cluster at `address`, or with Ray on this machine; `threads` is then the number of
    its workers.
    """

    seconds: float | None = 100.0
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
    object_identity: bool = True
    relations: tuple[str, ...] | None = None
    max_rules: int | None = None
    threads: int | None = None
    seed: int = 0
    engine: str = "threads"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.paths is not None:
            object.__setattr__(self, "seconds", None)
        elif self.seconds is None:
            raise OptionError("LearnOptions needs a budget: seconds or paths, got neither")
        self._check_numbers()
        self._check_choices()
        if self.address is not None and self.engine != "ray":
            raise OptionError(f"LearnOptions.address is for the engine ray, got engine {self.engine!r}")
        if self.max_cyclic == 0 and self.max_acyclic == 0:
            raise OptionError("LearnOptions.max_cyclic and max_acyclic are both 0: there is no path to sample")

    def _check_numbers(self) -> None:
        from anyburl.bodies.arrays import MAX_LENGTH  # here, so that `anyburl learn --help` loads no compiler

        for name, least, most in (
            ("seconds", 0, None),
            ("paths", 1, None),
            ("max_cyclic", 0, MAX_LENGTH),
            ("max_acyclic", 0, MAX_LENGTH),
            ("max_grounded", 0, MAX_LENGTH),
            ("min_support", 1, None),
            ("min_confidence", 0, 1),
            ("epsilon", 0, 1),
            ("saturation", 0, 1),
            ("span", 0.01, None),
            ("budget", 1, None),
            ("max_rules", 1, None),
            ("threads", 1, None),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if value is None:
                continue
            if not value >= least:
                raise OptionError(f"LearnOptions.{name} must be at least {least}, got {value}")
            if most is not None and value > most:
                raise OptionError(f"LearnOptions.{name} must be at most {most}, got {value}")
        if any(not moment > 0 for moment in self.snapshots):
            raise OptionError(f"LearnOptions.snapshots must be seconds above 0, got {self.snapshots}")

    def _check_choices(self) -> None:
        if self.relations is not None and not self.relations:
            raise OptionError("LearnOptions.relations must name at least one relation, got none")
        for name, choices in (
            ("policy", POLICIES),
            ("reward", REWARDS),
            ("heads", HEADS),
            ("engine", ENGINES),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise OptionError(f"LearnOptions.{name} must be one of {', '.join(choices)}, got {value!r}")

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
