"""One learning run from the command line: compile, learn with progress shown, save. Shared by `learn` and `demo`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any

from anyburl.base.errors import MissingExtraError, counted
from anyburl.cli.events import MemoryWatch, tell, tell_progress
from anyburl.cli.learn_display import Display, make_display
from anyburl.cli.notes import PlainConsole, Slow, print_error
from anyburl.cli.streams import Interrupts
from anyburl.learning.options import DISTILLED
from anyburl.rules.types import RuleType

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.learning.learner import Learner, Span
    from anyburl.learning.options import LearnOptions
    from anyburl.learning.recorder import KeepRules, Recorder
    from anyburl.rules.ruleset import RuleSet

Start = Callable[[], "tuple[Learner, Recorder]"]


@dataclass(frozen=True)
class Session:
    """A finished run and its rules, which are saved."""

    learner: Learner
    recorder: Recorder
    rules: RuleSet

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended it."""
        return self.learner.stopped_by == "interrupt"

    def to_json(self) -> dict[str, Any]:
        """Return what `learn --json` prints."""
        by_type, update = self.rules.counts_by_type(), self.recorder.update
        return {
            "run": str(self.recorder.run.path),
            "seconds": round(self.learner.elapsed, 3),
            "rules": len(self.rules),
            "rules_by_type": {name: n for name, n in by_type.items() if n or RuleType(name).form.is_learned},
            "rules_by_length": self.rules.counts_by_length(),
            "paths": self.learner.n_paths,
            "bodies": self.learner.n_bodies,
            "peak_memory_mb": peak_memory_mb(),
            "stopped_by": self.learner.stopped_by,
            "found": self.learner.store.n_rules,
            "dropped": self.learner.store.n_dropped,
            "threads": self.learner.threads,
            "outlook": [entry.to_json() for entry in self.learner.outlook()],
            **({"update": update.to_json()} if update else {}),
        }


def compile_kernels(work: Callable[[], object], notes: PlainConsole) -> None:
    """Do `work`, which compiles the kernels that this machine has not compiled before, and report that.

    Each command compiles what it needs; after the first one, most kernels are only loaded.

    The compiler cannot be interrupted, and Python would wait for its thread, so an interrupt ends the process. Nothing
    is lost.
    """
    from anyburl.base.jit import compiling, is_compiled, not_kept

    words = "compiling kernels (each once on this machine)", "compiled kernels"
    slow = Slow(notes, *words, after=0.0)
    if is_compiled():
        slow = Slow(notes, "loading kernels (compiling those that are new to this machine)", "loaded kernels")
    try:
        with slow:
            _do_beside(lambda: compiling(work, lambda stage: slow.change(*words, stage)))
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.stderr.flush()
        os._exit(130)
    if remark := not_kept():
        notes.say(remark)


def _do_beside(work: Callable[[], object]) -> None:
    """Do `work` in another thread so that this one can be interrupted."""
    done: Future[object] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, name="anyburl-compiling", daemon=True).start()
    # An interrupt is recorded, then raised here: raised just anywhere, for example in a finaliser, it might be lost.
    with Interrupts(lambda: None) as interrupts:
        while not done.done():
            wait([done], timeout=0.1)
            if interrupts.was_interrupted:
                raise KeyboardInterrupt
    done.result()


def require_engine(engine: str) -> None:
    """Refuse, before any work is done, an engine whose extra is not installed."""
    if engine == "ray" and find_spec("ray") is None:
        raise MissingExtraError("--engine ray", "ray")


def silence_engine(engine: str) -> None:
    """Keep Ray from printing."""
    if engine == "ray":
        from anyburl.base.cluster import silence

        silence()


def starting(engine: str, notes: PlainConsole) -> Slow:
    """Report that an engine is starting if that takes a while; Ray itself is silenced."""
    silence_engine(engine)
    return Slow(notes, f"starting {engine}", f"started {engine}")


def run_session(
    dataset: Dataset, options: LearnOptions, start: Start, notes: PlainConsole, *, replacing: str | None = None
) -> Session:
    """Learn: `start` makes the learner and its recorder once the kernels are there.

    If the run is learned anew, `replacing` is its folder, which stays as it was if that is interrupted.
    """
    from anyburl.cli.rule_filters import Measuring  # which imports this module
    from anyburl.learning.engines.threads import warm_up_learning

    n_relations, has_values = dataset.vocabulary.n_relations, not dataset.attributes.empty
    compile_kernels(lambda: warm_up_learning(options, n_relations, has_values=has_values), notes)
    with starting(options.engine, notes):
        learner, recorder = start()
    _learn(learner, recorder, notes, describe(dataset, learner))
    if replacing and learner.stopped_by == "interrupt":
        recorder.close()
        notes.say(f"interrupted after {learner.elapsed:.1f} s: {replacing} is as it was before", "yellow")
        raise KeyboardInterrupt
    rules = _finish(learner, recorder, notes, replacing, _keeping(dataset, learner, notes))
    Measuring(str(recorder.run.path), None, options.threads, notes).write_best(rules)
    session = Session(learner, recorder, rules)
    tell("saved", run=str(recorder.run.path), rules=len(rules), stopped_by=learner.stopped_by)
    _remark_end(session, notes)
    return session


def _learn(learner: Learner, recorder: Recorder, notes: PlainConsole, title: str) -> None:
    from anyburl.learning.recorder import run_learner

    try:
        with Interrupts(learner.stop), make_display(learner, notes, title) as display:
            run_learner(learner, recorder, watched(display, notes))
    except BaseException:
        with suppress(Exception):
            recorder.close()
        raise


def watched(display: Display, notes: PlainConsole) -> Callable[[Span], None]:
    """Return what is done with each span: it is shown and logged, and memory is looked at."""
    memory = MemoryWatch(lambda warning: notes.say(warning, "yellow"))

    def show(span: Span) -> None:
        display.show(span)
        counts = {"rules": span.n_rules, "new_rules": span.new_rules, "paths": span.n_paths, "bodies": span.n_bodies}
        told = {"span": span.number, "seconds": round(span.elapsed, 3), **counts, "dropped": span.n_dropped}
        tell_progress(doing="learning", **told)
        if span.snapshot is not None:
            tell("snapshot", name=span.snapshot, **told)
        memory.look(span.n_rules)

    return show


def _keeping(dataset: Dataset, learner: Learner, notes: PlainConsole) -> KeepRules | None:
    """Return what chooses the rules to keep; its kernels are compiled if there is much to choose from."""
    from anyburl.models.distilling.distil import MANY_RULES
    from anyburl.models.distilling.keeping import rules_to_keep
    from anyburl.reasoning.warmup import warm_up_distilling

    n_rules, options = learner.store.n_rules, learner.options
    keep = rules_to_keep(dataset, options, lambda doing, done: Slow(notes, doing, done))
    if keep is None or not n_rules or (n_rules <= MANY_RULES and options.keep != DISTILLED):
        return None
    compile_kernels(lambda: warm_up_distilling(dataset.vocabulary.n_relations), notes)
    return keep


def _finish(
    learner: Learner, recorder: Recorder, notes: PlainConsole, replacing: str | None, keep: KeepRules | None
) -> RuleSet:
    """Save the rules. If that is interrupted, they stay in the parts of the run; a run to be replaced stays."""
    try:
        return recorder.finish(learner, keep)
    except KeyboardInterrupt:
        recorder.close()
        if replacing is None:
            rules = counted(learner.store.n_rules, "rule")
            notes.say(
                f"interrupted while saving: {rules} kept in {recorder.run.path}, which can still be opened", "yellow"
            )
        raise


def _remark_end(session: Session, notes: PlainConsole) -> None:
    learner, n_rules = session.learner, counted(len(session.rules), "rule")
    if learner.store.n_dropped:
        dropped = counted(learner.store.n_dropped, "rule")
        notes.say(f"dropped the {dropped} with the least support x confidence; {n_rules} kept", "yellow")
    if (reduced := session.recorder.reduced) is not None:
        notes.say(f"kept {n_rules} of {learner.store.n_rules:,}: {reduced.which}")
        notes.say(_sizes(session))
    if session.was_interrupted:
        notes.say(f"interrupted after {learner.elapsed:.1f} s: {n_rules} saved", "yellow")
    elif learner.stopped_by == "complete":
        notes.say(f"complete after {learner.elapsed:.1f} s: no bodies left to explore")


PREPARED_BYTES = 57  # for each rule: Debian's 56 million rules take 3.2 GB


def _sizes(session: Session) -> str:
    """Return how large the run folder is, and how large it would be with all rules."""
    path, n_kept, n_all = session.recorder.run.path, max(1, len(session.rules)), session.learner.store.n_rules
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    rules = (path / "rules.parquet").stat().st_size
    whole = size + rules * (n_all / n_kept - 1)
    sizes = (size, size + n_kept * PREPARED_BYTES, whole, whole + n_all * PREPARED_BYTES)
    now, ready, then, then_ready = (f"{n_bytes / 1e6:,.0f} MB" for n_bytes in sizes)
    return f"{path} takes {now}, about {ready} once prepared; with --keep all about {then} and {then_ready}"


def describe(dataset: Dataset, learner: Learner) -> str:
    """Return one line about the data and how it is learned from."""
    words, train = dataset.vocabulary, dataset.train
    worker = "thread" if learner.options.engine == "threads" else "Ray worker"
    duplicates = f" ({counted(train.n_duplicates, 'duplicate')} dropped)" if train.n_duplicates else ""
    return (
        f"learning on {dataset.name}: {counted(len(train), 'triple')}{duplicates}, "
        f"{counted(words.n_entities, 'entity', 'entities')}, {counted(words.n_relations, 'relation')}; "
        f"{counted(learner.threads, worker)}, policy {learner.options.policy}"
    )


def peak_memory_mb() -> int | None:
    """Return the peak memory of this process in MB, where the system reports it."""
    peak = peak_bytes()
    return None if peak is None else peak // 1_000_000


def peak_bytes() -> int | None:
    """Return the peak memory of this process in bytes, where the system reports it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
