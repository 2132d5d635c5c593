"""From rules and data to a ranker: matched, indexed or mapped, on the chosen backend, tuned if needed.

Models are imported where rules alone do not answer.
"""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.checking import options_behind
from anyburl.base.errors import InvalidOptionError, OptionError, RunError
from anyburl.base.machine import available_cores
from anyburl.base.writing import KeptKey
from anyburl.data.dataset import Dataset, load_recorded
from anyburl.graph.stored import graph_of
from anyburl.learning.options import ENGINES
from anyburl.models.calibration import CALIBRATION, Calibration, calibration_key, load_calibration
from anyburl.models.tuned.observations import rule_groups
from anyburl.ranking.index import build_rule_index
from anyburl.ranking.options import MODEL, SCORES, RankOptions, parse_aggregation
from anyburl.ranking.queries import blocks_connected
from anyburl.ranking.ranker import Backend, LocalBackend, Ranker, ReadyRules, make_ranker
from anyburl.reasoning.prepared import (
    Carried,
    NotPreparedError,
    Prepared,
    digest,
    may_be_own_data,
    open_prepared,
    portable_rows,
    prepared_bytes,
    remembers_its_data,
    write_prepared,
)
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import RULES, described_run, is_finished

if TYPE_CHECKING:
    from anyburl.models.tuned.listing import OtherModel
    from anyburl.models.tuned.reranker import TunedReranker
    from anyburl.models.tuned.train import Tuning

Watch = Callable[[str, str], AbstractContextManager[object]]
"""Called with what is about to be done, and how to report that it was; returns a context for its duration."""


def warn(note: str) -> None:
    """Warn a user of the Python interface."""
    warnings.warn(note, stacklevel=4)


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Where warnings and notes go, and what reports the progress of slow steps."""

    say: Callable[[str], None] = warn
    note: Callable[[str], None] = field(default=lambda note: None)
    watch: Watch = field(default=lambda doing, done: nullcontext())


@dataclass(frozen=True, kw_only=True)
class BackendChoice:
    """What answers: threads, or the workers of the Ray cluster at `address` (None: on this machine)."""

    name: str = "threads"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise InvalidOptionError("engine", f"one of {', '.join(ENGINES)}", self.name)
        if self.address is not None and self.name != "ray":
            raise OptionError(f"an address needs the engine ray, got engine {self.name!r}")

    def start(self, ready: ReadyRules, options: RankOptions, feedback: Feedback) -> Backend:
        """Return the backend, ready to answer."""
        if self.name == "threads":
            return LocalBackend(ready, options.threads)
        from anyburl.ranking.ray import RayBackend

        with feedback.watch("starting the engine ray", "started the engine ray"):
            return RayBackend(ready, options.threads, self.address, feedback.say)


@dataclass(frozen=True)
class Opened:
    """The parts of a reasoner, ready for use."""

    ranker: Ranker
    dataset: Dataset
    seconds: dict[str, float]
    seed: int = 0
    run: Path | None = None  # the folder that the rules and data are those of
    calibration: Calibration | None = None


def open_rules(
    rules: RuleSet,
    dataset: Dataset,
    options: RankOptions,
    engine: BackendChoice,
    feedback: Feedback,
    *,
    seed: int = 0,
    other: OtherModel | None = None,
    run: Path | None = None,
) -> Opened:
    """Make rules ready that are in memory; `run` is the folder that they are from, where there is one.

    On its own data, whatever the folder keeps is used: models, the embedding and the calibration.
    """
    at_home = run is not None and may_be_own_data(run, dataset)
    return _open_rules(rules, dataset, options, engine, feedback, seed, other, run, at_home=at_home)


def _open_rules(
    rules: RuleSet,
    dataset: Dataset,
    options: RankOptions,
    engine: BackendChoice,
    feedback: Feedback,
    seed: int,
    other: OtherModel | None,
    run: Path | None,
    *,
    at_home: bool,
) -> Opened:
    """Make rules ready that are in memory; `at_home` says that the data are those of `run`."""
    started = time.perf_counter()
    carried = Carried.to(dataset.vocabulary, rules)
    if note := carried.note(dataset):
        feedback.say(note)
    aggregation, reranker = parse_aggregation(options.aggregation), None
    if run is not None and not at_home and aggregation.needs_model and other is None:
        if aggregation.needs_embedding:
            raise OptionError(f"{run} has an embedding of its own data only, not of {dataset.name}: use another model")
        if remembers_its_data(run):
            carried, reranker = _carry_model(run, rules, dataset, options, feedback, seed)
    other = _other_model(options, dataset, run, other)
    matched = carried.rules
    with feedback.watch(f"indexing {len(matched):,} rules", f"indexed {len(matched):,} rules"):
        block = blocks_connected(options.block_connected, dataset)
        ranker = make_ranker(graph_of(dataset.train), matched, options, block_connected=block)
    seconds = {"index": time.perf_counter() - started}
    if reranker is not None:
        ranker = replace(ranker, backend=engine.start(ranker.ready, options, feedback), reranker=reranker)
        return Opened(ranker, dataset, seconds, seed)
    home = run if run is not None and at_home and is_finished(run) else None
    return _finish(ranker, dataset, seconds, engine, feedback, seed, home, other=other)


def _carry_model(
    run: Path, rules: RuleSet, dataset: Dataset, options: RankOptions, feedback: Feedback, seed: int
) -> tuple[Carried, TunedReranker]:
    """Match the rules of a run with other data than its own; return them with the model that its own data gave them:
    kept in the folder, or trained now.
    """
    from anyburl.models.tuned.listing import take_groups
    from anyburl.models.tuned.reranker import TunedReranker
    from anyburl.models.tuned.train import tune, tuning_key

    rows = portable_rows(rules, dataset.vocabulary)
    used = rules if rows is None else rules.take(rows)
    groups = rule_groups(used)
    first = load_recorded(described_run(run)["data"])
    block = blocks_connected(options.block_connected, first)
    key = tuning_key(
        digest(run / RULES),
        first.fingerprint,
        tuning_options(options, block, seed) | ({} if rows is None else {"rules": "without constants"}),
    )

    def train() -> Tuning:
        at_home = Carried.to(first.vocabulary, used)
        ranker = make_ranker(graph_of(first.train), at_home.rules, options, block_connected=block)
        return tune(ranker, first, take_groups(groups, at_home.rows), seed=seed)

    tuning = _kept_or_new(run, key, options.threads or available_cores(), feedback, train, f"tuning on {first.name}")
    carried = Carried.to(dataset.vocabulary, used)
    return carried, TunedReranker(tuning, take_groups(groups, carried.rows))


def open_run(
    run: Path,
    load: Callable[[], tuple[RuleSet, Dataset]],
    options: RankOptions,
    engine: BackendChoice,
    feedback: Feedback,
    *,
    seed: int = 0,
    prepare: bool = True,
    other: OtherModel | None = None,
) -> Opened:
    """Make the rules of a run ready, as they were prepared or, where they were not, now; `load` gives rules, data."""
    started = time.perf_counter()
    try:
        prepared = open_prepared(run)
    except NotPreparedError as error:
        rules, dataset = load()
        made = _try_to_prepare(run, rules, dataset, feedback, f"{error}") if prepare and is_finished(run) else None
        if made is None:
            return _open_rules(rules, dataset, options, engine, feedback, seed, other, run, at_home=True)
        prepared = made
    ranker = make_ranker(
        prepared.graph,
        prepared.rules,
        options,
        block_connected=prepared.blocks_auto if options.block_connected == "auto" else options.block_connected == "on",
        index=prepared.index,
    )
    seconds = {"index": time.perf_counter() - started}
    if prepared.n_left_out:
        feedback.say(left_out_note(prepared.n_left_out, prepared.dataset))
    other = _other_model(options, prepared.dataset, run, other)
    return _finish(ranker, prepared.dataset, seconds, engine, feedback, seed, run, prepared, other)


def _try_to_prepare(run: Path, rules: RuleSet, dataset: Dataset, feedback: Feedback, reason: str) -> Prepared | None:
    """Prepare a run; where its folder cannot be written to, say so."""
    try:
        return make_prepared(run, lambda: (rules, dataset), feedback, reason)
    except (RunError, NotPreparedError) as error:
        feedback.say(f"using {run} unprepared: {error}")
        return None


MANY_BYTES = 200_000_000


def make_prepared(
    run: Path, load: Callable[[], tuple[RuleSet, Dataset]], feedback: Feedback, reason: str = ""
) -> Prepared:
    """Index the rules of a run and write them to its folder, to be mapped from there."""
    rules, dataset = load()
    matched = rules.with_vocabulary(dataset.vocabulary)
    if reason:
        feedback.note(f"preparing {run}, so that it opens at once in future: {reason}")
    with feedback.watch(f"preparing {run}", f"prepared {run}"):
        graph = graph_of(dataset.train)
        index = build_rule_index(graph, matched)
        _check_room(run, prepared_bytes(dataset, graph, matched, index), feedback)
        write_prepared(run, dataset, graph, matched, index, len(rules) - len(matched))
    try:
        return open_prepared(run)
    except NotPreparedError as error:
        raise RunError(f"{run} was prepared, but cannot be opened: {error}") from error


def _check_room(run: Path, n_bytes: int, feedback: Feedback) -> None:
    """Say how much will be written, if it is much; refuse it before anything is written if there is no room."""
    free = shutil.disk_usage(run).free
    if n_bytes > free:
        raise RunError(
            f"preparing {run} takes {n_bytes / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free: make room, keep fewer "
            "rules (`anyburl distil`), or ask with --no-prepare"
        )
    if n_bytes > MANY_BYTES:
        feedback.note(f"preparing {run} writes {n_bytes / 1e6:,.0f} MB to its folder; --no-prepare does without")


def left_out_note(n: int, dataset: Dataset) -> str:
    """Report that rules were left out."""
    rules = "1 rule uses labels" if n == 1 else f"{n:,} rules use labels"
    return f"{rules} that are not in {dataset.name}: left out"


def _finish(
    ranker: Ranker,
    dataset: Dataset,
    seconds: dict[str, float],
    engine: BackendChoice,
    feedback: Feedback,
    seed: int,
    run: Path | None = None,
    prepared: Prepared | None = None,
    other: OtherModel | None = None,
) -> Opened:
    """Start the engine, and tune if the aggregation needs it; `other` is the model that hybrid combines with rules."""
    if engine.name != "threads":
        ranker = replace(ranker, backend=engine.start(ranker.ready, ranker.options, feedback))
    calibration = kept_calibration(ranker, dataset, seed, run, prepared)
    ranker = with_fallback(ranker)
    opened = Opened(ranker, dataset, seconds, seed, run, calibration)
    if not ranker.aggregation.needs_model:
        return opened
    from anyburl.models.tuned.reranker import TunedReranker

    groups = rule_groups(ranker.rules) if prepared is None else prepared.groups
    tuning = tuning_of(ranker, dataset, groups, feedback, seed, run, prepared, other=other)
    reranker = TunedReranker(tuning, groups, other)
    took = {**seconds, "tune": 0.0 if tuning.stored else tuning.seconds}
    return replace(opened, ranker=replace(ranker, reranker=reranker), seconds=took)


def with_fallback(ranker: Ranker) -> Ranker:
    """Return a ranker that lists answers without a rule behind the others, if its options ask for that; a model does so
    in any case.
    """
    if not ranker.options.fallback or ranker.aggregation.needs_model:
        return ranker
    from anyburl.models.tuned.fallback import Fallback
    from anyburl.models.tuned.reranker import FilledReranker

    return replace(ranker, reranker=FilledReranker(ranker.aggregation, Fallback(ranker.graph, ranker.backend.threads)))


def _other_model(
    options: RankOptions, dataset: Dataset, run: Path | None, other: OtherModel | None
) -> OtherModel | None:
    """Return the model that is combined with the rules: the given one or, for hybrid, the embedding of the run."""
    if other is not None and not (hasattr(other, "scores") and hasattr(other, "digest")):
        raise OptionError(f"expected a model with scores and a digest as `other`, got {type(other).__name__}")
    if other is not None or not parse_aggregation(options.aggregation).needs_embedding:
        return other
    if run is None:
        raise OptionError('aggregation="hybrid" needs an embedding: open a run folder that has one, or pass `other`')
    from anyburl.models.embedding import load_embedding

    return load_embedding(run, dataset)


def kept_calibration(
    ranker: Ranker, dataset: Dataset, seed: int, run: Path | None, prepared: Prepared | None = None
) -> Calibration | None:
    """Return the calibration in the run folder that fits, if there is one."""
    if run is None or not (run / CALIBRATION).is_dir():
        return None
    key = make_calibration_key(ranker, dataset, seed, run, prepared)
    calibration = load_calibration(run, key, dataset.vocabulary.n_relations)
    return None if isinstance(calibration, str) else calibration


def make_calibration_key(
    ranker: Ranker, dataset: Dataset, seed: int, run: Path, prepared: Prepared | None = None
) -> KeptKey:
    """Return the cache key of a calibration: the run's rules, the data, and the options that scores depend on."""
    rules_digest = digest(run / RULES) if prepared is None else prepared.rules_digest
    options = answering_options(ranker, seed)
    if ranker.aggregation.needs_model:  # which is kept, too: what it depends on, its calibration depends on
        from anyburl.models.tuned.train import tuning_key

        options["model"] = tuning_key(rules_digest, dataset.fingerprint, {}).recipe
    return calibration_key(rules_digest, dataset.fingerprint, options)


def tuning_of(
    ranker: Ranker,
    dataset: Dataset,
    groups: NDArray[np.uint8],
    feedback: Feedback,
    seed: int,
    run: Path | None = None,
    prepared: Prepared | None = None,
    *,
    again: bool = False,
    other: OtherModel | None = None,
) -> Tuning:
    """Return the tuned model kept in the run folder, or else train one and keep it."""
    from anyburl.models.tuned.train import tune, tuning_key

    key = None
    if run is not None and (run / RULES).is_file():
        rules_digest = digest(run / RULES) if prepared is None else prepared.rules_digest
        options = tuning_options(ranker.options, ranker.block_connected, seed)
        options |= {} if other is None else {"other": other.digest}
        key = tuning_key(rules_digest, dataset.fingerprint, options)

    def train() -> Tuning:
        return tune(ranker, dataset, groups, seed=seed, other=other)

    return _kept_or_new(run, key, ranker.backend.threads, feedback, train, f"tuning on {dataset.name}", again=again)


def _kept_or_new(
    run: Path | None,
    key: KeptKey | None,
    threads: int,
    feedback: Feedback,
    train: Callable[[], Tuning],
    doing: str,
    *,
    again: bool = False,
) -> Tuning:
    """Return the tuned model kept in the run folder, or else train one and keep it."""
    from anyburl.models.tuned.train import Tuning, load_tuning, save_tuning

    kept = load_tuning(run, key, threads) if run and key and not again else ""
    if isinstance(kept, Tuning):
        feedback.note(f"using the tuned model kept in {run}")
        return kept
    if kept:
        feedback.note(f"tuning again: {kept}")
    with feedback.watch(doing, doing.replace("tuning", "tuned", 1)):
        tuning = train()
    if run and key:
        try:
            save_tuning(run, tuning, key)
        except RunError as error:
            if again:
                raise
            feedback.say(f"the tuned model was not saved: {error}")
    return tuning


def tuning_options(options: RankOptions, block_connected: bool, seed: int) -> dict[str, Any]:
    """Return the options that a tuned model depends on."""
    return _settled(options_behind(MODEL, options), block_connected, seed)


def answering_options(ranker: Ranker, seed: int) -> dict[str, Any]:
    """Return the options that scores depend on."""
    return _settled(options_behind(SCORES, ranker.options), ranker.block_connected, seed)


def _settled(options: dict[str, Any], block_connected: bool, seed: int) -> dict[str, Any]:
    """Return options as they are in force: choices that mean the same are the same."""
    weights = {name: factor for name, factor in sorted(options["weights"].items()) if factor != 1}
    return {**options, "weights": weights, "block_connected": block_connected, "seed": seed}
