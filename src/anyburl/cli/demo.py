"""`anyburl demo`: learn from the built-in data, predict and explain, in under a minute."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.cli.arguments import Json, Quiet, Threads
from anyburl.cli.beside import CompilingBeside
from anyburl.cli.consoles import PlainConsole, note_console, print_json, result_console
from anyburl.cli.session import Session, run_session
from anyburl.cli.showcase import Showcase, make_showcase, show
from anyburl.cli.tables import counts_table, rule_rows, rules_table, table_width
from anyburl.errors import RunError
from anyburl.learning.options import LearnOptions

if TYPE_CHECKING:
    from anyburl.learning.learner import Learner
    from anyburl.learning.recorder import Recorder
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.dataset import Dataset

NAME = "demo"
EXAMPLE = "Example:  anyburl demo --seconds 10 --out runs/demo"
DATA = "geo"
N_SHOWN = 5
N_LOOKED_AT = 5_000
TYPES = {
    "B": "how two entities are connected",
    "Uc": "what follows from a certain fact",
    "Ud": "what follows from any fact of a kind",
}


def command(
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
    from anyburl.triples.dataset import load_dataset

    dataset = load_dataset(DATA)
    results = result_console(quiet=quiet or json)
    _introduce(dataset, results)
    options = LearnOptions(seconds=seconds, snapshots=(), threads=threads, seed=seed)
    with CompilingBeside(dataset.vocabulary.n_relations) as beside:
        with nullcontext(str(out)) if out else tempfile.TemporaryDirectory(prefix="anyburl-demo-") as folder:
            session = _learn(dataset, options, Path(folder), notes)
        best = {name: varied_best(session.rules.filter(type=name)) for name in TYPES}
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
        if not len(rules):
            out.say("    none found")
            continue
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
