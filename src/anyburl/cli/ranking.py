"""Rules made ready to answer queries: what `evaluate`, `predict` and `explain` share."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anyburl.cli.consoles import PlainConsole, counted
from anyburl.cli.loading import data_of_rules, existing_rules, load_data_argument, load_rules_argument
from anyburl.cli.notes import Slow
from anyburl.cli.session import compile_kernels
from anyburl.errors import DataError, MissingExtraError, OptionError

if TYPE_CHECKING:
    from anyburl.ranking.options import RankOptions
    from anyburl.ranking.ranker import Ranker
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.dataset import Dataset
    from anyburl.triples.vocabulary import Vocabulary


def rank_options(*, weights: str, **options: Any) -> RankOptions:
    """Return the options of ranking; what is wrong with them is said in terms of the command line."""
    from anyburl.ranking.options import RankOptions

    if options.get("aggregation") == "tuned" and find_spec("lightgbm") is None:
        raise MissingExtraError("--aggregation tuned", "tuned")
    try:
        return RankOptions(weights=parse_weights(weights), **options)
    except OptionError as error:
        names = "|".join(field.name for field in fields(RankOptions))
        raise OptionError(re.sub(rf"^(?:RankOptions\.)?({names})\b", _flag, str(error))) from error


def _flag(match: re.Match[str]) -> str:
    return "--" + match[1].replace("_", "-")


def parse_weights(text: str) -> dict[str, float]:
    """Return the factors by rule type behind a text such as Ud=0.1,Z=0.01."""
    weights: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, factor = part.partition("=")
        try:
            weights[name.strip()] = float(factor)
        except ValueError:
            sign = ""
        if not sign:
            raise OptionError(f"--weights takes factors such as Ud=0.1,Z=0.01, got {text!r}")
    return weights


class Source:
    """RULES and DATA of a command, loaded when they are asked for."""

    def __init__(self, rules: str, data: str | None, notes: PlainConsole, *, escaped: bool = False) -> None:
        self.path, self.notes, self.escaped = rules, notes, escaped
        self.seconds_loading = 0.0
        existing_rules(rules)
        started = time.monotonic()
        self.dataset: Dataset = load_data_argument(data_of_rules(rules, data), notes)
        if data is None:
            self._remark_changed_data()
        self.seconds_loading_data = time.monotonic() - started

    def load_rules(self, at: float | None = None) -> RuleSet:
        """Load RULES, or the run's snapshot `at` some seconds."""
        started = time.monotonic()
        rules = load_rules_argument(self.path, self.notes, at=at, escaped=self.escaped)
        self.seconds_loading = self.seconds_loading_data + time.monotonic() - started
        return rules

    def make_ranker(
        self,
        options: RankOptions,
        at: float | None = None,
        *,
        explaining: bool = False,
        seed: int | None = None,
        spread: Callable[[Ranker], Ranker] | None = None,
    ) -> Ranker:
        """Load RULES and make them ready, and tune them if asked to; with kernels of explanations, if `explaining`.

        `spread` may put another ranker in the place of the one on this machine.
        """
        from anyburl.ranking.ranker import fixed_ranker

        if options.aggregation == "tuned" and not len(self.dataset.valid):
            raise DataError(f"--aggregation tuned learns from the valid split, and {self.dataset.name} has none")
        rules = self.load_rules(at)
        n_relations = self.dataset.vocabulary.n_relations
        compile_kernels(lambda: warm_up(n_relations, explaining=explaining), self.notes)
        n_rules = counted(len(rules), "rule")
        with Slow(self.notes, f"indexing {n_rules}", f"indexed {n_rules}"):
            ranker = fixed_ranker(rules, self.dataset, options)
        if n_unknown := len(rules) - len(ranker.rules):
            n_rules = counted(n_unknown, "rule")
            self.notes.say(f"{n_rules} with labels that the data has not: left out", "yellow")
        if spread:
            ranker = spread(ranker)
        if options.aggregation != "tuned":
            return ranker
        from anyburl.tuning.ranker import tuned

        with Slow(self.notes, "tuning on the valid split", "tuned on the valid split"):
            return tuned(ranker, self.dataset, seed=seed or 0)

    def _remark_changed_data(self) -> None:
        from anyburl.learning.run import RunDirectory

        learned_on = RunDirectory.open(Path(self.path).expanduser()).described()["data"].get("fingerprint")
        if learned_on not in (None, self.dataset.fingerprint):
            self.notes.say(f"{self.dataset.name} has changed since the rules of {self.path} were learned", "yellow")


class CompilingBeside:
    """Compiles the kernels of ranking and explanations in another process, while this one has other ones to compile.

    Where kernels were compiled before, it does nothing. If the process fails, so does nothing else: what it did not
    compile is compiled here, when it is needed.
    """

    def __init__(self, n_relations: int) -> None:
        from anyburl._jit import is_compiled

        program = f"from anyburl.cli.ranking import warm_up; warm_up({n_relations}, explaining=True)"
        self._process: subprocess.Popen[bytes] | None = None
        if not is_compiled():
            silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            with suppress(OSError):
                self._process = subprocess.Popen([sys.executable, "-c", program], **silent)

    def __enter__(self) -> CompilingBeside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        """Wait until it is done."""
        if self._process is not None:
            self._process.wait()


def warm_up(n_relations: int, *, explaining: bool = False) -> None:
    """Rank with one rule on two triples; `n_relations` is that of the data to come, which kernels depend on."""
    import numpy as np

    from anyburl.explanation.explain import explain
    from anyburl.ranking.options import RankOptions
    from anyburl.ranking.queries import single_query
    from anyburl.ranking.ranker import fixed_ranker
    from anyburl.triples.dataset import Dataset
    from anyburl.triples.table import TripleTable
    from anyburl.triples.vocabulary import Vocabulary

    relations = [f"r{number:08d}" for number in range(n_relations)]
    vocabulary = Vocabulary.from_labels(["a", "b", "c"], relations)
    table = TripleTable.from_ids(np.array([[0, 0, 1], [0, 0, 2]], np.int32), vocabulary)
    nothing = TripleTable.from_ids(np.empty((0, 3), np.int32), vocabulary)
    dataset = Dataset("warm-up", table, nothing, nothing)
    ranker = fixed_ranker(_one_rule(vocabulary), dataset, RankOptions(threads=1))
    query = single_query(0, 0, np.empty(0, np.int32))
    ranker.answer(query, top_k=1)
    if explaining:
        for object in ("a", "c"):  # the rule predicts b r a, and lacks a fact for b r c
            explain(ranker.rules, dataset, ("b", relations[0], object), ranker=ranker)


def _one_rule(vocabulary: Vocabulary) -> RuleSet:
    """Return r(X,Y) <= r(Y,X)."""
    import numpy as np

    from anyburl.ruleset.ruleset import RuleSet

    one = np.ones(1, np.int32)
    return RuleSet(
        vocabulary=vocabulary,
        bodies=np.full((1, 1), vocabulary.n_relations, np.int32),
        type=np.zeros(1, np.uint8),
        head=0 * one,
        body=0 * one,
        head_constant=-one,
        body_constant=-one,
        predictions=np.full(1, 2, np.int64),
        support=one,
        exact=np.ones(1, np.bool_),
    )
