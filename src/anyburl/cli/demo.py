"""`anyburl demo`: learn from the built-in data, evaluate, predict and explain, in under a minute.

Some kernels are compiled in another process while this one compiles others.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import RunError
from anyburl.cli.arguments import Json, Quiet, Threads, command
from anyburl.cli.notes import PlainConsole, compile_kernels, note_console, print_json, print_whole, result_console
from anyburl.cli.session import Session, run_session
from anyburl.cli.tables import counts_table, results_table, rule_rows, rules_table, table_width
from anyburl.learning.options import LearnOptions
from anyburl.rules.types import KINDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anyburl.data.dataset import Dataset
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder
    from anyburl.reasoning.explanation.explain import Explanation
    from anyburl.reasoning.explanation.record import Fact
    from anyburl.reasoning.metrics import Metrics
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.rules.ruleset import RuleSet


COMPILE_RANKING = """
from anyburl.reasoning.shortcuts import warm_up_reasoning
warm_up_reasoning({n_relations}, explaining=True)
"""


class CompilingBeside:
    """Compiles the kernels of ranking and explanations in another process.

    Where kernels were compiled before, it does nothing. If the process fails, so does nothing else: what it did not
    compile is compiled here, when it is needed.
    """

    def __init__(self, n_relations: int) -> None:
        from anyburl.base.jit import is_compiled

        program = COMPILE_RANKING.format(n_relations=n_relations)
        self._process: subprocess.Popen[bytes] | None = None
        if not is_compiled("kernel.answer"):
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


AGGREGATIONS = ("max", "noisy-or-top:5")
N_PREDICTIONS = 3
N_REASONS = 2


@dataclass(frozen=True)
class Showcase:
    """The metrics by aggregation, and explained predictions."""

    metrics: dict[str, Metrics]
    predictions: list[Explanation]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "metrics": {name: metrics.to_json()["metrics"] for name, metrics in self.metrics.items()},
            "predictions": [explanation.to_json() for explanation in self.predictions],
        }


def make_showcase(
    rules: RuleSet, dataset: Dataset, threads: int | None, beside: CompilingBeside, notes: PlainConsole
) -> Showcase:
    """Rank the test split, and explain some of its triples that are ranked first."""
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.reasoning.shortcuts import warm_up_reasoning

    def compile_ranking() -> None:
        beside.wait()
        warm_up_reasoning(dataset.vocabulary.n_relations, explaining=True)

    compile_kernels(compile_ranking, notes)
    reasoner = Reasoner(rules, dataset, aggregation=AGGREGATIONS[0], threads=threads)
    metrics = {name: reasoner.with_aggregation(name).evaluate() for name in AGGREGATIONS}
    facts = pick_predictions(reasoner)
    return Showcase(metrics, [reasoner.explain(fact, top=N_REASONS, groundings=1) for fact in facts])


def pick_predictions(reasoner: Reasoner, k: int = N_PREDICTIONS) -> list[Fact]:
    """Return test triples, each of another relation, whose object is ranked first by a B rule of two steps.

    Those with the most confident rules are taken, of equals the first in the alphabet.
    """
    import numpy as np

    rules = reasoner.rules
    if not len(rules):
        return []
    vocabulary, triples = reasoner.vocabulary, reasoner.dataset.test.triples
    best = _first_by(reasoner)
    two_steps = np.append(rules.is_binary & (rules.lengths == 2), False)[best]
    confidences = np.append(rules.confidence(reasoner.options.smoothing), 0.0)[best]
    chosen: dict[int, Fact] = {}
    for row in np.argsort(-confidences, kind="stable"):
        subject, relation, object = triples[row].tolist()
        if len(chosen) < k and two_steps[row] and relation not in chosen:
            labels = vocabulary.entity_label(subject), vocabulary.relation_label(relation)
            chosen[relation] = (*labels, vocabulary.entity_label(object))
    return list(chosen.values())


def _first_by(reasoner: Reasoner) -> NDArray[np.int32]:
    """Return for each test triple the best rule behind its object if that is ranked first, alone, else -1."""
    import numpy as np

    from anyburl.data.dataset import SPLITS
    from anyburl.ranking.queries import make_queries, target_ranks

    dataset, vocabulary = reasoner.dataset, reasoner.vocabulary
    triples = dataset.test.triples
    queries, rows = make_queries(triples, [dataset.split(name).triples for name in SPLITS], vocabulary.n_relations)
    answers = reasoner.ranker.answer(queries)
    ranks = target_ranks(queries, answers, vocabulary.n_entities).at(rows[: len(triples)])
    best = answers.target_rules[rows[: len(triples)]]
    return np.where(ranks.pessimistic == 1, best, np.int32(-1))


def show(showcase: Showcase | None, n_facts: int, out: PlainConsole) -> None:
    """Print the metrics and the predictions, if there are any."""
    from anyburl.reasoning.explanation.render import to_tree

    if showcase is None:
        return
    out.say("")
    out.say("How good are the rules? We ask them for the subject and the object", "bold")
    out.say(f"of {n_facts:,} facts that were not used for learning. hits@1 is the share of right answers at rank 1.")
    print_whole(results_table(list(showcase.metrics.items()), "scores by"))
    out.say(
        "Why? Here are some of these facts, the rules that predict them, and the facts that make the rules fire:",
        "bold",
    )
    for explanation in showcase.predictions:
        out.say("")
        print_whole(to_tree(explanation))


DATA = "geo"
N_SHOWN = 5
N_LOOKED_AT = 5_000
TYPES = {str(kind): kind.form.meaning for kind in KINDS if kind.form.is_learned}


@command("demo", "Example:  anyburl demo --seconds 10 --out runs/demo")
def demo_command(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to learn.")] = 5.0,
    out: Annotated[Path | None, typer.Option(metavar="RUN", help="Keep the run in this folder.")] = None,
    threads: Threads = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = LearnOptions.seed,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn rules from the built-in data set geo, show the best, test them, and explain some predictions."""
    notes = note_console(quiet=quiet)
    if out is not None and (out / "options.json").exists():
        raise RunError(f"{out} already contains a run: choose another folder")
    from anyburl.data.dataset import load_dataset

    dataset = load_dataset(DATA)
    results = result_console(quiet=quiet or json)
    _introduce(dataset, results)
    options = LearnOptions(seconds=seconds, snapshots=(), threads=threads, seed=seed)
    with CompilingBeside(dataset.vocabulary.n_relations) as beside:
        with nullcontext(str(out)) if out else tempfile.TemporaryDirectory(prefix="anyburl-demo-") as folder:
            session = _learn(dataset, options, Path(folder), notes)
        by_type = {name: session.rules.filter(type=name) for name in TYPES}
        best = {name: varied_best(rules) for name, rules in by_type.items() if len(rules)}
        _show_rules(session, best, results)
        showcase = None if session.was_interrupted else make_showcase(session.rules, dataset, threads, beside, notes)
    if json:
        _print_json(session, out, best, showcase)
    elif not quiet:
        show(showcase, len(dataset.test), results)
        _show_next_steps(out, results)
    if session.was_interrupted:
        raise typer.Exit(130)


def _introduce(dataset: Dataset, out: PlainConsole) -> None:
    """Say what there is to learn from."""
    words, labels = dataset.vocabulary, dataset.train.to_polars()
    out.say(
        f"{dataset.name}: {len(dataset.train):,} facts about the world's countries, cities, languages, currencies and "
        f"time zones ({words.n_entities:,} entities, {words.n_relations} relations), such as"
    )
    some = labels.filter(labels["subject"] == "France").unique("relation", keep="first", maintain_order=True)
    for subject, relation, object in some.head(4).iter_rows():
        out.say(f"    {relation}({subject}, {object})")
    out.say("")


def _learn(dataset: Dataset, options: LearnOptions, folder: Path, notes: PlainConsole) -> Session:
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder
    from anyburl.learning.run import RunDirectory

    def start() -> tuple[Learner, Recorder]:
        learner = Learner(dataset.train, options)
        return learner, Recorder(RunDirectory.create(folder, dataset, options))

    return run_session(dataset, options, start, notes)


def varied_best(rules: RuleSet, k: int = N_SHOWN) -> RuleSet:
    """Return the k best rules with different head relations, as far as there are that many."""
    ranked = rules.top(N_LOOKED_AT)
    relations = [int(head) % rules.vocabulary.n_relations for head in ranked.head]
    seen: Counter[int] = Counter()
    turns = []
    for row, relation in enumerate(relations):
        turns.append((seen[relation], row))
        seen[relation] += 1
    return ranked.take(sorted(row for _, row in sorted(turns)[:k]))


def _show_rules(session: Session, best: dict[str, RuleSet], out: PlainConsole) -> None:
    """Print the best rules of each type."""
    out.print(counts_table(session.rules.counts_by_length()))
    out.say(f"{len(session.rules):,} rules in {session.learner.elapsed:.1f} s. Read the rule")
    out.say("    h(X,Y) <= b(X,A), c(A,Y)")
    out.say("as: h holds between X and Y if b leads from X to some A, and c from A to Y.")
    out.say("Its confidence is the share of what it predicts (predictions) that is known to be true (support).")
    for name, rules in best.items():
        out.say("")
        out.say(f"{name} rules: {TYPES[name]}", "bold")
        result_console(quiet=out.quiet, least_width=table_width(rules)).print(rules_table(rules))


def _show_next_steps(out: Path | None, console: PlainConsole) -> None:
    console.say("")
    run = out or Path("runs/geo")
    if out is None:
        console.say(f"keep a run:        anyburl learn {DATA} --seconds 10 --out {run}")
    console.say(f"see more rules:    anyburl rules {run} --relation official_language")
    console.say(f"ask a question:    anyburl predict {run} France official_language '?' --explain")
    console.say("your own triples:  anyburl learn FOLDER --out RUN")
    console.say(f"in a browser:      anyburl serve {run}")


def _print_json(session: Session, out: Path | None, best: dict[str, RuleSet], showcase: Showcase | None) -> None:
    """Print what `learn --json` would say, and what was shown; a run that was not kept has no folder."""
    run = {**session.to_json(), "run": None if out is None else str(out)}
    rules = {name: rule_rows(rules) for name, rules in best.items()}
    print_json({**run, "best": rules, **(showcase.to_json() if showcase else {})})
