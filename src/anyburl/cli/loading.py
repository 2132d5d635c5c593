"""Resolves RULES, DATA and RULES2 on the command line, and prompts for credentials that a server requires.

`RulesAndData` opens rules for all commands that ask questions; `AskingOptions` are the options that these share, and
`Common` those of all others.
"""

from __future__ import annotations

import difflib
import getpass
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from anyburl.base.checking import Options
from anyburl.base.errors import (
    CredentialsError,
    OptionError,
    RuleError,
    RunError,
    UnauthorizedError,
    UnknownDataError,
    counted,
    shown_argument,
)
from anyburl.base.files import at_home
from anyburl.cli.arguments import Escaped, Json, NamesOption, Quiet, Threads, WithScores
from anyburl.cli.notes import (
    PlainConsole,
    Slow,
    SlowDownload,
    compile_kernels,
    note_console,
    require_engine,
    silence_engine,
)
from anyburl.data.options import MOST_LISTED, ReadOptions
from anyburl.ranking.options import RankOptions, parse_aggregation

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.data.names import Names
    from anyburl.data.options import ReadOptions
    from anyburl.models.tuned.listing import OtherModel
    from anyburl.reasoning.opening import Feedback
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.rules.rule_file import ReadReport
    from anyburl.rules.ruleset import RuleSet


Loaded = TypeVar("Loaded")


def unlock(data: str, timeout: float = ReadOptions.timeout, *, writing: bool = False) -> None:
    """Ask for what opens the server behind DATA, if it is one; without a terminal, the environment must do."""
    from anyburl.data.remote.addresses import ENDPOINT, find_address, keep_credentials
    from anyburl.data.sources import check_access

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    address = find_address(data)
    if address is None or address.file is not None:
        return
    try:
        check_access(address, timeout, writing=writing)
    except CredentialsError:
        raise
    except UnauthorizedError:
        host = urlsplit(address.location).netloc
        user = _prompt(f"user name for {host}: ") if address.kind == ENDPOINT else ""
        keep_credentials(address.location, user, getpass.getpass(f"password for {user or host}: "))


def _prompt(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer:
        raise OptionError("no user name entered")
    return answer


N_REJECTED_SHOWN = 5
INSTEAD = {
    "literals": "`--literals keep` turns them into entities, `--literals ranges` turns numbers and dates into ranges",
    "values that are no number, date or boolean": "`--attribute NAME=KIND` says what they are meant to be",
    "exact numbers and dates": "ranges take their place",
}
"""Hints that follow the note on what was left out."""


def existing_rules(rules: str, *, temporal: bool = False) -> Path:
    """Return the path of RULES; if nothing is there, raise an error that names similar paths.

    So is a run folder with temporal rules, unless it is what the command takes.
    """
    path = at_home(rules)
    if not path.exists():
        raise RuleError(f"no run folder or rule file at {shown_argument(rules)!r}{names_beside(path)}")
    if path.is_dir() and not (path / "options.json").exists():
        _refuse_data(path)
    from anyburl.rules.run_folder import is_temporal_run

    if is_temporal_run(path) != temporal:
        kind = "rules without times" if temporal else "temporal rules"
        raise RuleError(f"{rules} holds {kind}, which this command does not take")
    return path


def require_run(run: str) -> None:
    """Refuse what is not a run folder, for a command that writes into it."""
    if not existing_rules(run).is_dir():
        raise RunError(f"{run} is not a run folder, which this command writes to")


def names_beside(path: Path) -> str:
    """Return a hint to similar names beside a path that does not exist."""
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, beside, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(str(path.parent / name)) for name in near)}?" if near else ""


def _refuse_data(path: Path) -> None:
    """Say of a folder with triples that rules are to be learned from it first."""
    from anyburl.data.catalogue import has_train

    if has_train(path):
        raise RuleError(
            f"{path} contains triples, not rules: pass the folder that `anyburl learn {path} --out RUN` wrote"
        )


def load_rules_argument(rules: str, notes: PlainConsole, *, at: float | None = None, escaped: bool = False) -> RuleSet:
    """Load RULES: a run folder (or its snapshot `at` some seconds), a Parquet file or a text file."""
    return read_rules_argument(rules, notes, at=at, escaped=escaped)[0]


def read_rules_argument(
    rules: str, notes: PlainConsole, *, at: float | None = None, escaped: bool = False
) -> tuple[RuleSet, ReadReport]:
    """Load RULES and say, in `notes` and in the report, which lines are not rules."""
    from anyburl.rules.ruleset import RuleSet

    path = existing_rules(rules)
    if at is not None and not path.is_dir():
        raise OptionError(f"--at needs a run folder with snapshots, got the file {rules!r}")
    with Slow(notes, f"reading {rules}", f"read {rules}"):
        loaded, report = RuleSet.read(path, at=at, escaped=escaped)
    if not len(loaded) and report.rejected:
        number, reason = report.rejected[0]
        raise RuleError(f"{rules}: the file contains no rules; line {number}: {reason}")
    for fault in (*report.damaged, *(f"{rules}: {remark}" for remark in report.remarks)):
        notes.say(fault, "yellow")
    _remark_rejected(rules, report, notes)
    return loaded, report


def _remark_rejected(rules: str, report: ReadReport, notes: PlainConsole) -> None:
    if not report.rejected:
        return
    read, left_out = counted(report.n_rules, "rule"), counted(len(report.rejected), "line")
    verb = "is not a rule and was" if len(report.rejected) == 1 else "are not rules and were"
    notes.say(f"{rules}: {read} read; {left_out} {verb} left out", "yellow")
    for number, reason in report.rejected[:N_REJECTED_SHOWN]:
        notes.say(f"{rules}:{number}: {reason}")
    if len(report.rejected) > N_REJECTED_SHOWN:
        notes.say(f"and {len(report.rejected) - N_REJECTED_SHOWN:,} more")


def read_with_progress(
    data: str, notes: PlainConsole, noun: str, load: Callable[[Callable[[int], None]], Loaded]
) -> Loaded:
    """Return what `load` returns, which reads DATA and calls its argument with the number of `noun`s read so far.

    DATA is downloaded first if it is the name of a data set; what is not there is refused, with what is beside it.
    """
    doing, done = f"reading {shown_argument(data)}", f"read {shown_argument(data)}"
    try:
        download_data_argument(data, notes)
        unlock(data)
        with Slow(notes, doing, done) as slow:
            return load(lambda n: slow.change(doing, done, counted(n, noun)))
    except UnknownDataError as error:
        if error.suggestions:
            raise
        raise UnknownDataError(f"{error}{names_beside(at_home(data))}") from error


def load_data_argument(
    data: str, notes: PlainConsole, options: ReadOptions | None = None, *, is_new: bool = True
) -> Dataset:
    """Load DATA and, if it `is_new` and not what a run folder remembers, say what of it was left out."""
    from anyburl.data.dataset import load_dataset

    dataset = read_with_progress(data, notes, "triple", lambda progress: load_dataset(data, options, progress))
    if is_new:
        remark_left_out(dataset.name, dataset.left_out, dataset.reading, notes)
        _remark_attributes(dataset, notes)
        _remark_split(dataset, notes)
    return dataset


def remark_left_out(name: str, left_out: Mapping[str, int], reading: ReadOptions, notes: PlainConsole) -> None:
    """Say how many statements of DATA are no triples here, and what else could become of them."""
    for what, number in left_out.items():
        more = f" ({INSTEAD[what]})" if what in INSTEAD and reading.dump is None else ""
        if number:
            notes.say(f"{name}: {number:,} {what} left out{more}")


def _remark_attributes(dataset: Dataset, notes: PlainConsole) -> None:
    if not dataset.attributes.empty:
        shown = [
            f"{dataset.names.get(name)} ({counted(len(one), str(one.kind))})"
            for name, one in dataset.attributes.items()
        ]
        more = f" and {len(shown) - MOST_LISTED} more" if len(shown) > MOST_LISTED else ""
        notes.say(
            f"{dataset.name}: read as attributes: {', '.join(shown[:MOST_LISTED])}{more} "
            "(`--attribute NAME=entity` keeps a relation as it is)"
        )


def _remark_split(dataset: Dataset, notes: PlainConsole) -> None:
    if dataset.reading.split:
        sizes = [len(table) for table in (dataset.train, dataset.valid, dataset.test)]
        shares = ", ".join(
            f"{split} {size:,} ({size / max(1, sum(sizes)):.1%})"
            for split, size in zip(("train", "valid", "test"), sizes, strict=True)
        )
        notes.say(f"{dataset.name} is split into {shares}")


def download_data_argument(data: str, notes: PlainConsole) -> None:
    """Download DATA if it is the name of a data set that is not here yet."""
    from anyburl.data.sources import fetch_dataset

    shown = shown_argument(data)
    with SlowDownload(notes, f"downloading {shown}", f"downloaded {shown}") as slow:
        fetch_dataset(data, slow.reach)


def read_names_argument(path: Path | None, *rules: str) -> Names:
    """Read the file of --names; without one, the names are those that the run folders among RULES have kept."""
    from anyburl.data.names import Names, read_names
    from anyburl.rules import run_folder

    folders = [folder for given in rules if ((folder := at_home(given)) / run_folder.OPTIONS).is_file()]
    kept_names = [run_folder.read_run_names(folder) for folder in folders]
    kept_names += [] if path is None else [read_names(path)]
    named = [dict(names) for names in (kept_names if path is None else kept_names[-1:])]
    return Names(_joined(named), _joined([names.prefixes for names in kept_names]))


def _joined(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    return {key: value for mapping in mappings for key, value in mapping.items()}


def load_data_of_rules(rules: str, data: str | None, notes: PlainConsole) -> Dataset:
    """Load the DATA to use with RULES: what was given, or what a run folder was learned on, read as then."""
    source, options = data_of_rules(rules, data)
    return load_data_argument(source, notes, options, is_new=options is None)


def data_of_rules(rules: str, data: str | None) -> tuple[str, ReadOptions | None]:
    """Return the DATA to use with RULES, and how a run folder has read its own."""
    if data is not None:
        return data, None
    path = at_home(rules)
    if not path.is_dir():
        raise OptionError(f"--data is missing: only a run folder remembers its data, and {rules!r} is not one")
    from anyburl.rules.run_folder import described_run

    return recorded_data(described_run(path)["data"], f"{rules} does not record where its data came from: pass --data")


def recorded_data(described: Mapping[str, Any], otherwise: str) -> tuple[str, ReadOptions]:
    """Return where the data of a run came from and how it was read; `otherwise` is the error if it does not say."""
    from anyburl.data.options import ReadOptions

    if described.get("source") is None:
        raise RunError(otherwise)
    return str(described["source"]), ReadOptions.from_json(described.get("reading", {}))


def check_rules_output(path: Path) -> None:
    """Refuse, before any work is done, a file that rules cannot be written to."""
    from anyburl.rules.ruleset import check_suffix

    if path.is_dir():
        raise RuleError(f"{path} is a folder: expected a file for the rules")
    check_suffix(path)
    if not path.parent.is_dir():
        raise RuleError(f"{path}: the folder {path.parent} does not exist")
    if not os.access(path.parent, os.W_OK):
        raise RuleError(f"{path}: the folder {path.parent} is not writable")


class RulesAndData:
    """RULES and DATA of a command, loaded on first use."""

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
        """Return a reasoner on RULES, or on the run's snapshot `at` some seconds; train `tuned` if it is chosen."""
        from anyburl.reasoning.opening import BackendChoice, open_rules, open_run
        from anyburl.reasoning.reasoner import Reasoner

        self.compile(explaining=explaining, completing=completing)
        silence_engine(self.engine)
        feedback, engine = self.feedback(), BackendChoice(name=self.engine, address=self.address)

        def load() -> tuple[RuleSet, Dataset]:
            started = time.monotonic()
            rules = load_rules_argument(self.rules, self.notes, at=at, escaped=self.escaped)
            self.seconds_loading += time.monotonic() - started
            return rules, self.dataset

        other = self._other_model(options)
        if self.path.is_dir() and at is None and self.data is None:
            opened = open_run(self.path, load, options, engine, feedback, seed=seed, prepare=self.prepare, other=other)
        else:
            run = self.path if self.path.is_dir() and at is None else None
            opened = open_rules(*load(), options, engine, feedback, seed=seed, run=run, other=other)
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
        """Apply the verdicts of the run folder, and report how many there are."""
        from anyburl.tools.review import FILE, ReviewLog

        if (self.path / FILE).is_file():
            log = ReviewLog.of_run(self.path)
            log.apply_to(reasoner)
            counts = log.counts()
            self.notes.say(f"{counts['accepted']} accepted and {counts['rejected']} rejected facts count", "dim")

    def feedback(self) -> Feedback:
        """Return the feedback that prints the library's remarks among the notes."""
        from anyburl.reasoning.opening import Feedback

        def watch(doing: str, done: str) -> AbstractContextManager[object]:
            return Slow(self.notes, doing, done)

        return Feedback(say=lambda note: self.notes.say(note, "yellow"), note=self.notes.say, watch=watch)

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
class Common(Options):
    """The flags of every command, so that scripts can pass them along; a hidden one changes nothing."""

    threads: Threads = None
    quiet: Quiet = False
    json: Json = False
    seed: Annotated[int | None, typer.Option("--seed", hidden=True)] = None

    def notes(self) -> PlainConsole:
        """Return where remarks go."""
        return note_console(quiet=self.quiet)


@dataclass(frozen=True, kw_only=True)
class CommonOneThread(Common):
    """The flags of every command, for one that uses a single thread."""

    threads: Annotated[int | None, typer.Option("--threads", hidden=True)] = None


@dataclass(frozen=True, kw_only=True)
class AskingOptions(Options):
    """The options of a command that asks questions, besides its own arguments."""

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
