"""Options of what is learned: rules, temporal rules and embeddings; and which rules are kept (`DistilOptions`).

Imports no compiler: the command line takes its flags from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypedDict, Unpack

from anyburl.base import checking
from anyburl.base.checking import (
    MOST_KEPT,
    MOST_SECONDS,
    Options,
    above_zero,
    choice,
    flag,
    option,
    real,
    share,
    threads_option,
    whole,
)
from anyburl.base.errors import InvalidOptionError
from anyburl.rules.types import MAX_LENGTH, PathProfile

POLICIES = ("weighted", "greedy", "random", "saturation")
REWARDS = ("support", "support-confidence", "length-discounted", "support-pca")
HEADS = ("all", "sampled")
ENGINES = ("threads", "ray")
KEPT = NEEDED, DISTILLED, ALL = ("needed", "distilled", "all")
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {"keep": ALL, "min_support": 2, "min_confidence": 0.0001, "conditions": False}
}
"""Options that are set together: the paper keeps all rules above its thresholds, and has no conditions on values."""

SECONDS = 100.0  # the budget of a run that is given none
PATHS_PER_CORE = 20_000  # in one time span of a run with a path budget
CORES_OF_PATH_RUNS = 4  # fixed, so that the result does not depend on the threads

BUDGET, RULES, SEARCH = "Budget", "Which rules", "Search"


class LearnKeywords(TypedDict, total=False):
    """The fields of `LearnOptions` as keyword arguments, which editors complete and type checkers check."""

    seconds: float | None
    paths: int | None
    snapshots: tuple[float, ...]
    max_rules: int | None
    keep: str
    preset: str | None
    max_cyclic: int
    max_acyclic: int
    max_grounded: int
    min_support: int
    min_confidence: float
    relations: tuple[str, ...] | None
    conditions: bool
    object_identity: bool
    policy: str
    reward: str
    epsilon: float
    saturation: float
    span: float
    heads: str
    budget: int
    precision: float
    engine: str
    address: str | None
    threads: int | None
    seed: int


def _moments(option: str, snapshots: Any) -> tuple[float, ...]:
    if isinstance(snapshots, str | bytes) or not isinstance(snapshots, Iterable):
        raise InvalidOptionError(option, "seconds above 0", snapshots)
    moments = tuple(snapshots)
    try:
        return tuple(checking.above_zero(option, moment) for moment in moments)
    except InvalidOptionError:
        raise InvalidOptionError(option, "seconds above 0", moments) from None


def _relations(option: str, relations: Any) -> tuple[str, ...]:
    labels = checking.texts(option, relations, "a list of relations")
    if not labels:
        raise InvalidOptionError(option, "at least one relation", labels)
    return labels


@dataclass(frozen=True, kw_only=True)
class LearnOptions(Options):
    """Options of a learning run, checked on creation; the defaults are the paper's (section 4.1).

    The budget is either `seconds` (100 if neither is given) or `paths`, the number of paths to sample: with a path
    budget and a seed, two runs give the same rules. `engine="ray"` runs on the Ray cluster at `address`, or starts Ray
    on this machine; `threads` is then the number of workers.
    """

    seconds: float | None = option(
        None,
        real,
        0,
        MOST_SECONDS,
        help="How long to learn, including the time before --resume.",
        panel=BUDGET,
        shown={"show_default": f"{SECONDS:g}"},
    )
    paths: int | None = option(
        None, whole, 1, help="Sample this many paths instead; with a seed, the rules are always the same.", panel=BUDGET
    )
    snapshots: tuple[float, ...] = option(
        (10.0, 50.0, 100.0),
        _moments,
        help="Save a snapshot of the rules after these seconds.",
        parse=checking.parse_numbers("snapshots", "seconds such as 10,50,100"),
        panel=BUDGET,
    )
    max_rules: int | None = option(
        None, whole, 1, help="Keep at most this many rules, dropping the least valuable.", panel=BUDGET
    )
    keep: str = option(
        NEEDED,
        choice,
        KEPT,
        help="Which rules to keep at the end of the run. needed: if there are more than 200,000, those that are among "
        "the best of a known fact; distilled: as few as rank held-out facts nearly as well, as by `anyburl distil`",
        panel=BUDGET,
    )
    preset: str | None = option(
        None,
        choice,
        tuple(PRESETS),
        help="Set several options at once. paper: the thresholds of the paper, and all rules are kept",
        panel=BUDGET,
    )
    max_cyclic: int = option(3, whole, 0, MAX_LENGTH, help="Longest body of binary rules (B).", panel=RULES)
    max_acyclic: int = option(
        1, whole, 0, MAX_LENGTH, help="Longest body of unary rules (Uc, Ud) from acyclic paths.", panel=RULES
    )
    max_grounded: int = option(
        1,
        whole,
        0,
        MAX_LENGTH,
        help="Longest body of rules with the same constant in head and body (Uc from cyclic paths).",
        panel=RULES,
    )
    min_support: int = option(2, whole, 1, help="Minimum number of correct predictions.", panel=RULES)
    min_confidence: float = option(0.0001, real, 0, 1, help="Keep rules with a confidence above this.", panel=RULES)
    relations: tuple[str, ...] | None = option(
        None,
        _relations,
        help="Learn rules for these relations only.",
        flag_help="Separate them with commas, or repeat the option.",
        parse=tuple,
        repeated=True,
        metavar="A,B",
        panel=RULES,
    )
    conditions: bool = option(
        True,
        checking.flag,
        help="Learn conditions on numbers, dates and booleans (Uv), if the data has any.",
        panel=RULES,
    )
    object_identity: bool = option(True, checking.flag, help=checking.OBJECT_IDENTITY, panel=RULES)
    policy: str = option("weighted", choice, POLICIES, help="How to divide cores among path profiles", panel=SEARCH)
    reward: str = option(
        "support-confidence", choice, REWARDS, help="How to value the new rules of a profile", panel=SEARCH
    )
    epsilon: float = option(0.1, real, 0, 1, help="Share of cores that explore at random.", panel=SEARCH)
    saturation: float = option(
        0.99,
        real,
        0,
        1,
        help="Share of known rules at which the policy `saturation` moves on to longer ones.",
        panel=SEARCH,
    )
    span: float = option(1.0, real, 0.01, MOST_SECONDS, help="Length of a time span in seconds.", panel=SEARCH)
    heads: str = option(
        "all", choice, HEADS, help="Heads to try for a body (the paper tries only the sampled one)", panel=SEARCH
    )
    budget: int = option(
        1_000_000, whole, 1, help="Edges to visit per body; beyond that, its counts are estimated.", panel=SEARCH
    )
    precision: float = option(
        0.02,
        real,
        0,
        1,
        help="On large graphs, how precisely to estimate a confidence: its 95 % interval is within this, or within "
        "five times this share of it.",
        panel=SEARCH,
    )
    engine: str = option("threads", choice, ENGINES, help="The engine that runs the search", panel=SEARCH)
    address: str | None = option(
        None,
        checking.text,
        "text such as 10.0.0.1:6379",
        help="The Ray cluster to run on, such as 10.0.0.1:6379. Defaults to this machine.",
        metavar="ADDRESS",
        panel=SEARCH,
    )
    threads: int | None = checking.threads_option(
        help="Number of threads, or of workers with --engine ray. Defaults to one per core.", panel=SEARCH, shown={}
    )
    seed: int = option(0, whole, 0, help="Seed of all random numbers.", panel=SEARCH)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.preset is not None:
            self._apply_preset(PRESETS[self.preset])
        if self.seconds is not None and self.paths is not None:
            raise InvalidOptionError("paths", "left out when {seconds} is given", self.paths)
        if self.seconds is None and self.paths is None:
            object.__setattr__(self, "seconds", SECONDS)
        if self.address is not None and self.engine != "ray":
            raise InvalidOptionError("address", "left out unless {engine} is ray", self.address)
        if self.max_cyclic == 0 and self.max_acyclic == 0:
            raise InvalidOptionError("max_cyclic", "at least 1 when {max_acyclic} is 0", 0)

    def _apply_preset(self, settings: Mapping[str, Any]) -> None:
        """Set the options of a preset; refuse others that are given besides."""
        defaults = {field.name: field.default for field in fields(self)}
        for name, value in settings.items():
            given = getattr(self, name)
            if given not in (value, defaults[name]):
                raise InvalidOptionError(name, f"{value}, or left out, when {{preset}} is {self.preset}", given)
            object.__setattr__(self, name, value)

    def changed(self, **changes: Unpack[LearnKeywords]) -> LearnOptions:
        """Return these options with `changes`: one budget replaces the other, and threads need no address."""
        new: dict[str, Any] = {**self.to_json(), **changes}
        for budget, other in (("seconds", "paths"), ("paths", "seconds")):
            if changes.get(budget) is not None:
                new[other] = changes.get(other)
        if new["engine"] != "ray":
            new["address"] = changes.get("address")
        return checking.from_keywords(type(self), new)

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


MODELS = ("none", "logit", "forest")
STEPS = ("single", "multi")
FILTERS = ("time", "static", "raw")
TIES = ("realistic", "optimistic", "pessimistic")
TEMPORAL_FORMS = ("pair", "constant", "hops", "popular")
"""The forms of temporal rules, by their codes."""
TEMPORAL_AGGREGATIONS = ("model", "sum", "max", "noisy-or")
"""How the candidates of a question are ordered: by the model, by the mixture of all rules, or by pair rules alone."""


@dataclass(frozen=True, kw_only=True)
class TemporalOptions(Options):
    """How temporal rules are learned."""

    rounds: int = option(3, whole, 0, 100, help="Rounds of sharing the credit for an answer among rules.")
    constants: bool = option(True, flag, help="Learn rules with constants.")
    hops: bool = option(True, flag, help="Learn rules of two hops.")
    three_hops: int = option(
        0, whole, 0, 100, help="Learn rules of three hops as well, over so many last facts of each entity on the way."
    )
    n_last: int = option(30, whole, 1, 1000, help="Facts of an entity that rules with constants look back on.")
    oldest: int = option(30, whole, 1, help="Steps of the clock that rules with constants look back.")
    n_first: int = option(10, whole, 1, 1000, help="Facts of an entity that rules of two hops start with.")
    n_second: int = option(20, whole, 1, 1000, help="Facts of the entity in the middle that they go on with.")
    min_support: int = option(2, whole, 1, help="Right cases that a rule with constants or hops needs.")
    min_confidence: float = option(0.01, share, help="Confidence that a rule with constants needs.")
    smoothing: float = option(20.0, real, 0, help="Cases added to the denominator of rules with constants or hops.")
    model: str = option("forest", choice, MODELS, help="What orders the best candidates, fitted on the valid split")
    fit_for: str = option("single", choice, STEPS, help="The steps for which weights and model are fitted")
    candidates: int = option(100, whole, 1, 10_000, help="Candidates of a question that the model orders.")
    recount: bool = option(True, flag, help="Count rules again with the valid split, after all else was fitted on it.")
    seconds: float | None = option(
        None, above_zero, help="Stop after so many seconds, with what was finished; pairs are always counted."
    )
    seed: int = option(0, whole, 0, help="Random seed of the model.")
    threads: int | None = threads_option()


DEVICES = ("auto", "cpu", "cuda", "mps")
MOST_DIMENSIONS = 1 << 16
UNFINISHED = "unfinished"
"""What is kept of an unfinished training: options say that they may change when it is resumed."""

_option = partial(option, panel="Training")


class EmbedKeywords(TypedDict, total=False):
    """The fields of `EmbedOptions` as keywords."""

    rank: int
    epochs: int
    batch_size: int
    learning_rate: float
    regularisation: float
    relation_weight: float
    patience: int
    device: str
    seed: int
    threads: int | None


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(Options):
    """How ComplEx is trained: on both queries of every triple of train, against all entities, with Adagrad.

    Training ends after `epochs`, or once the MRR on a sample of valid has not risen for `patience` looks at it; the
    best epoch is kept.
    """

    rank: int = _option(512, whole, 1, MOST_DIMENSIONS, help="Number of complex dimensions.")
    epochs: int = _option(
        100, whole, 1, MOST_KEPT, help="Maximum number of passes over the train split.", no_effect_on=(UNFINISHED,)
    )
    batch_size: int = _option(1000, whole, 1, MOST_KEPT, help="Triples per batch.")
    learning_rate: float = _option(0.1, checking.above_zero, help="Learning rate of Adagrad.")
    regularisation: float = _option(0.05, real, 0, help="Weight of the N3 regularisation.")
    relation_weight: float = _option(1.0, real, 0, help="Weight of the relation prediction loss.")
    patience: int = _option(
        4,
        whole,
        1,
        MOST_KEPT,
        help="Stop after this many evaluations on valid without a better MRR.",
        no_effect_on=(UNFINISHED,),
    )
    device: str = _option("auto", choice, DEVICES, help="Where to train", no_effect_on=(UNFINISHED,))
    seed: int = _option(0, whole, 0, help="Seed of all random numbers.")
    threads: int | None = checking.threads_option(no_effect_on=(UNFINISHED,))


QUALITY = 0.98
SIZE = "How many rules are kept"
EVIDENCE = "What they are chosen by"


class DistilKeywords(TypedDict, total=False):
    """The fields of `DistilOptions` as keywords."""

    rules: int | None
    per_relation: int | None
    quality: float | None
    relations: tuple[str, ...] | None
    facts: int | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class DistilOptions(Options):
    """Options of distilling, checked on creation; without any size, `quality` is 0.98."""

    rules: int | None = option(None, whole, 1, checking.MOST_KEPT, help="Keep this many rules.", panel=SIZE)
    per_relation: int | None = option(
        None, whole, 1, checking.MOST_KEPT, help="Keep at most this many rules for each relation.", panel=SIZE
    )
    quality: float | None = option(
        None,
        real,
        0,
        1,
        help="Keep as few rules as rank held-out facts with this share of the MRR that all rules have.",
        panel=SIZE,
        shown={"show_default": f"{QUALITY:g}"},
    )
    relations: tuple[str, ...] | None = option(
        None,
        _relations,
        help="Keep rules for these relations only.",
        parse=checking.parse_texts,
        metavar="A,B",
        panel=SIZE,
    )
    facts: int | None = option(
        None,
        whole,
        2,
        help="Look at this many known facts: those of the valid split, then of train. Defaults to 32,000, and to more "
        "where many rules are to be kept: 100,000 for 5,000 rules or more, 150,000 for 200,000.",
        panel=EVIDENCE,
    )
    seed: int = option(0, whole, 0, help="Seed of the choice of facts.", panel=EVIDENCE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules is not None and self.quality is not None:
            raise InvalidOptionError("quality", "left out when {rules} is given", self.quality)
        if self.rules is None and self.per_relation is None and self.quality is None:
            object.__setattr__(self, "quality", QUALITY)
