"""Options shared by all commands that ask questions, and `RulesAndData`, which opens rules for them."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.checking import Options
from anyburl.base.errors import OptionError
from anyburl.cli.arguments import Escaped, Json, NamesOption, Quiet, WithScores
from anyburl.cli.loading import (
    data_of_rules,
    existing_rules,
    load_data_of_rules,
    load_rules_argument,
    read_names_argument,
)
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, note_console, require_engine, silence_engine
from anyburl.ranking.options import RankOptions, parse_aggregation

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.data.names import Names
    from anyburl.models.tuned.listing import OtherModel
    from anyburl.reasoning.opening import Front
    from anyburl.reasoning.reasoner import Reasoner


class RulesAndData:
    """RULES and DATA of a command, made ready when they are asked for."""

    def __init__(
        self,
        rules: str,
        data: str | None,
        notes: PlainConsole,
        *,
        escaped: bool = False,
        names: Path | None = None,
        scores: Path | None = None,
        prepare: bool = True,
        engine: str = "threads",
        address: str | None = None,
    ) -> None:
        self.rules, self.data, self.notes, self.escaped = rules, data, notes, escaped
        self._names, self._scores = read_names_argument(names, rules), scores
        self.prepare, self.engine, self.address = prepare, engine, address
        self.path = existing_rules(rules)
        require_engine(engine)
        if address is not None and engine != "ray":
            raise OptionError(f"--address needs --engine ray, got engine {engine!r}")
        if data is None:
            data_of_rules(rules, None)
        self._dataset: Dataset | None = None
        self.seconds_loading = 0.0

    @property
    def names(self) -> Names:
        """Readable names: those given, those of the run, or else those that were found in the data."""
        return self._names or (self._names if self._dataset is None else self._dataset.names)

    @property
    def dataset(self) -> Dataset:
        """The data, loaded once."""
        if self._dataset is None:
            started = time.monotonic()
            self._dataset = load_data_of_rules(self.rules, self.data, self.notes)
            if self.data is None:
                self._remark_changed_data(self._dataset)
            self.seconds_loading += time.monotonic() - started
        return self._dataset

    def open(
        self,
        options: RankOptions,
        at: float | None = None,
        *,
        explaining: bool = False,
        completing: bool = False,
        seed: int = 0,
    ) -> Reasoner:
        """Make RULES, or the run's snapshot `at` some seconds, ready to be asked; tune them if asked to."""
        from anyburl.reasoning.opening import BackendChoice, open_rules, open_run
        from anyburl.reasoning.reasoner import Reasoner
        from anyburl.rules.ruleset import RuleSet

        self.compile(explaining=explaining, completing=completing)
        silence_engine(self.engine)
        front, engine = self.front(), BackendChoice(name=self.engine, address=self.address)

        def load() -> tuple[RuleSet, Dataset]:
            started = time.monotonic()
            rules = load_rules_argument(self.rules, self.notes, at=at, escaped=self.escaped)
            self.seconds_loading += time.monotonic() - started
            return rules, self.dataset

        other = self._other_model(options)
        if self.path.is_dir() and at is None and self.data is None:
            opened = open_run(self.path, load, options, engine, front, seed=seed, prepare=self.prepare, other=other)
        else:
            run = self.path if self.path.is_dir() and at is None else None
            opened = open_rules(*load(), options, engine, front, seed=seed, run=run, other=other)
        self._dataset = opened.dataset
        return Reasoner.of(opened, self.names)

    def _other_model(self, options: RankOptions) -> OtherModel | None:
        """Return the scores of --with-scores, if they are given."""
        if self._scores is None:
            return None
        if not parse_aggregation(options.aggregation).needs_embedding:
            raise OptionError(f"--with-scores needs --aggregation hybrid, got {options.aggregation}")
        from anyburl.models.tuned.listing import ScoredAnswers

        return ScoredAnswers.read(self._scores, self.dataset)

    def apply_reviews(self, reasoner: Reasoner) -> None:
        """Let the verdicts of the run folder count, and say so."""
        from anyburl.tools.review import FILE, ReviewLog

        if (self.path / FILE).is_file():
            log = ReviewLog.of_run(self.path)
            log.apply_to(reasoner)
            counts = log.counts()
            self.notes.say(f"{counts['accepted']} accepted and {counts['rejected']} rejected facts count", "dim")

    def front(self) -> Front:
        """Return where the library's remarks go: to the notes."""
        from anyburl.reasoning.opening import Front

        def watch(doing: str, done: str) -> AbstractContextManager[object]:
            return Slow(self.notes, doing, done)

        return Front(say=lambda note: self.notes.say(note, "yellow"), note=self.notes.say, watch=watch)

    def compile(self, *, explaining: bool, completing: bool = False) -> None:
        """Compile the kernels for answering, explaining and completing, if this machine has not yet, and report it."""
        from anyburl.base.jit import is_compiled

        needed = ["kernel.answer"]
        needed += ["kernel.find_walks"] if explaining else []
        needed += ["kernel.find_facts"] if completing else []
        if not all(map(is_compiled, needed)):
            from anyburl.reasoning.shortcuts import warm_up_reasoning

            n_relations = self.dataset.vocabulary.n_relations
            compile_kernels(
                lambda: warm_up_reasoning(n_relations, explaining=explaining, completing=completing), self.notes
            )

    def _remark_changed_data(self, dataset: Dataset) -> None:
        from anyburl.rules.run_folder import described_run

        learned_on = described_run(self.path)["data"].get("fingerprint")
        if learned_on not in (None, dataset.fingerprint):
            self.notes.say(f"{dataset.name} has changed since the rules of {self.rules} were learned", "yellow")


@dataclass(frozen=True, kw_only=True)
class AskingOptions(Options):
    """The options of such a command besides its own arguments."""

    names: NamesOption = None
    prepare: Annotated[bool, typer.Option(help="Prepare the run folder, so that later commands open it at once.")] = (
        True
    )
    escaped: Escaped = False
    ranking: RankOptions = field(default=RankOptions())
    with_scores: WithScores = None
    quiet: Quiet = False
    json: Json = False
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed for tuning and sampling.")] = 0

    def notes(self) -> PlainConsole:
        """Return where remarks go."""
        return note_console(quiet=self.quiet)

    def source(self, rules: str, data: str | None, **engine: Any) -> RulesAndData:
        """Return RULES and DATA, to be made ready."""
        names: Path | None = self.names
        scores: Path | None = self.with_scores
        return RulesAndData(
            rules, data, self.notes(), escaped=self.escaped, names=names, scores=scores, prepare=self.prepare, **engine
        )
