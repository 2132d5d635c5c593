"""`evaluate`, `predict`, `explain` and `complete` with temporal rules: a question has a moment."""

from __future__ import annotations

import sys
import time as clocks
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.checking import parse_texts
from anyburl.base.errors import DataError, OptionError, counted
from anyburl.base.files import lines_of
from anyburl.cli.arguments import Data, Rules, one_of
from anyburl.cli.complete import write_table
from anyburl.cli.evaluate import RANKED_IN, check_rankings_file
from anyburl.cli.loading import Common
from anyburl.cli.notes import Slow, print_json, print_whole, result_console
from anyburl.cli.tables import metrics_table, seconds_line
from anyburl.cli.temporal_runs import PANEL, Time, TimedAggregation, apply_reviews, open_history
from anyburl.learning.options import FILTERS, STEPS, TIES

if TYPE_CHECKING:
    from anyburl.temporal.reasoner import TemporalAnswer, TemporalReasoner

N_REASONS = 3
MOST_STATED = 100  # answers that train states and that are left out


def _chosen(words: tuple[str, ...], help: str) -> Any:
    return typer.Option(
        metavar="|".join(words),
        help=f"With temporal rules: {help}",
        autocompletion=one_of(*words),
        rich_help_panel=PANEL,
    )


def evaluate_history(
    rules: Rules,
    data: Data = None,
    split: Annotated[str, typer.Option()] = "test",
    steps: Annotated[
        str, _chosen(STEPS, "single: all facts before a question are known; multi: none of the split.")
    ] = STEPS[0],
    filter: Annotated[
        str, _chosen(FILTERS, "other answers that do not count: those of the same moment, of any moment, or none.")
    ] = FILTERS[0],
    ties: Annotated[str, _chosen(TIES, "the rank among candidates with the same score.")] = TIES[0],
    negatives: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With temporal rules: rank answers against the negatives that FILE has for each question.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    rankings: Annotated[Path | None, typer.Option()] = None,
    top_k: Annotated[int, typer.Option(min=1)] = 100,
    aggregation: TimedAggregation = None,
    *,
    common: Common,
) -> None:
    """Ask temporal rules for the subject and the object of every fact of a split, at its moment."""
    notes, started = common.notes(), clocks.monotonic()
    if rankings is not None:
        check_rankings_file(rankings)
        if negatives is not None:
            raise OptionError("--rankings lists candidates among all entities: leave out --negatives")
    reasoner = open_history(rules, data, notes, aggregation=aggregation, threads=common.threads)
    loaded = round(clocks.monotonic() - started, 3)
    total = 2 * len(reasoner.dataset.split(split))
    with Slow(notes, "answering questions", f"answered {counted(total, 'question')}", total=total) as bar:
        metrics = reasoner.evaluate(
            split, steps=steps, filter=filter, ties=ties, negatives=negatives, progress=bar.advance
        )
    if rankings is not None:
        with Slow(notes, f"writing {rankings}", f"wrote {rankings}", total=total // 2) as bar:
            reasoner.save_rankings(
                rankings, split, steps=steps, filter=filter, ties=ties, top_k=top_k, progress=bar.advance
            )
    seconds = {"load": loaded, **metrics.seconds}
    if common.json:
        print_json({**metrics.to_json(), "seconds": seconds})
        return
    print_whole(metrics_table(metrics))
    out = result_console()
    out.say(metrics.protocol_text)
    if rankings is not None:
        out.say(f"{RANKED_IN} {rankings}", "dim")
    if not common.quiet:
        out.say(seconds_line(seconds, metrics.protocol["queries"]), "dim")


def predict_at(
    rules: Rules,
    subject: Annotated[str | None, typer.Argument()] = None,
    relation: Annotated[str | None, typer.Argument()] = None,
    object: Annotated[str | None, typer.Argument()] = None,
    time: Time = None,
    following: Annotated[
        int | None,
        typer.Option(
            "--next",
            min=1,
            metavar="N",
            help="With temporal rules: ask about each of the N steps after the last fact, or from TIME on.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    look_ahead: Annotated[
        bool,
        typer.Option(
            "--look-ahead",
            help="With temporal rules: let facts after TIME count as well, for what happened and nobody recorded.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    data: Data = None,
    queries: Annotated[Path | None, typer.Option()] = None,
    top: Annotated[int, typer.Option(min=1)] = 10,
    explain: Annotated[bool, typer.Option("--explain")] = False,
    include_known: Annotated[bool, typer.Option("--include-known")] = False,
    aggregation: TimedAggregation = None,
    *,
    common: Common,
) -> None:
    """Rank the answers to SUBJECT RELATION ? TIME or ? RELATION OBJECT TIME."""
    words = [subject, relation, object, time]
    if queries is not None and (following or any(word is not None for word in words)):
        raise OptionError("pass either one query or a file with --queries, not both")
    questions = _read_questions(queries) if queries else [_question(words)]
    if look_ahead and (explain or following or (time is None and queries is None)):
        raise OptionError("--look-ahead is for a moment of the past: pass TIME, without --next and --explain")
    notes = common.notes()
    reasoner = open_history(rules, data, notes, aggregation=aggregation, threads=common.threads)
    apply_reviews(reasoner, notes)
    answering = _Answering(reasoner, top, include_known, explain)
    if look_ahead:
        from anyburl.temporal.interpolation import TemporalInterpolator

        with Slow(notes, "learning from what came after", "learned from what came after"):
            answering.predict = TemporalInterpolator.of(reasoner).predict
    if queries is not None:
        with Slow(notes, "answering queries", f"answered {counted(len(questions), 'query', 'queries')}") as bar:
            answering.write_file(questions, bar, as_json=common.json)
        return
    moments = answering.moments(time, following)
    if time is None and following is None:
        notes.say(f"no moment given: asking about the next one, {moments[0]}")
    answers = [(moment, answering.ask(questions[0][:3], moment)) for moment in moments]
    if common.json:
        print_json(answering.to_json(questions[0][:3], answers))
    else:
        answering.show(questions[0][:3], answers, quiet=common.quiet)


def _question(words: list[str | None]) -> list[str]:
    given = [word for word in words if word is not None]
    if len(given) < 3:
        raise OptionError(
            f"a query is SUBJECT RELATION ? TIME or ? RELATION OBJECT TIME, got {' '.join(given) or 'none'}"
        )
    if (given[0] == "?") == (given[2] == "?"):
        raise OptionError(f"a query has one ?, for its subject or its object, got {' '.join(given)}")
    return given


def _read_questions(path: Path) -> list[list[str]]:
    """Return the queries of a file: lines of subject, relation, object and time, separated by tabs."""
    questions = []
    for number, line in lines_of(path, "queries", DataError).items():
        fields = line.split("\t")
        if len(fields) != 4 or (fields[0] == "?") == (fields[2] == "?"):
            raise DataError(
                f"{path}:{number}: expected subject, relation, object and time, one of them ?, got {line!r}"
            )
        questions.append(fields)
    if not questions:
        raise DataError(f"{path}: expected queries, got an empty file")
    return questions


class _Answering:
    """How questions are answered, and what is shown of the answers."""

    def __init__(self, reasoner: TemporalReasoner, top: int, include_known: bool, explains: bool) -> None:
        self.reasoner, self.top, self.include_known, self.explains = reasoner, top, include_known, explains
        self.predict = reasoner.predict

    def moments(self, time: str | None, following: int | None) -> list[str]:
        """Return the moments to predict for."""
        clock = self.reasoner.dataset.clock
        first = self.reasoner.last + 1 if time is None else clock.step(time)
        return [clock.label(step) for step in range(first, first + (following or 1))]

    def ask(self, question: list[str], moment: str) -> list[TemporalAnswer]:
        """Return the answers to a question at a moment, without those that train states unless they are included."""
        subject, relation, object = question
        given = None if subject == "?" else subject, relation, None if object == "?" else object
        answers = self.predict(*given, moment, top=self.top + MOST_STATED, include_known=True)
        out = set() if self.include_known else {"train", "accepted"}
        kept = [answer for answer in answers if not out.intersection(self.stating(answer))]
        return [replace(answer, rank=rank) for rank, answer in enumerate(kept[: self.top], 1)]

    def stating(self, answer: TemporalAnswer) -> tuple[str, ...]:
        """Return the splits that state an answer at the moment of the question, or that people accepted it."""
        if not answer.known:
            return ()
        dataset, (subject, relation, object, moment) = self.reasoner.dataset, answer.fact
        words, names = dataset.vocabulary, dataset.names
        ids = names.entity_id(subject, words), names.relation_id(relation, words), names.entity_id(object, words)
        return dataset.splits_stating(*ids, dataset.clock.step(moment)) or ("accepted",)

    def answer_json(self, answer: TemporalAnswer) -> dict[str, Any]:
        """Return an answer as plain values."""
        plain: dict[str, Any] = {
            "rank": answer.rank,
            "entity": answer.entity,
            "score": answer.score,
            "probability": answer.probability,
            "known": list(self.stating(answer)),
            "fact": list(answer.fact),
        }
        if self.explains:
            plain["reasons"] = self.reasoner.explain(*answer.fact, top=N_REASONS).to_json()["reasons"]
        return plain

    def to_json(self, question: list[str], answers: list[tuple[str, list[TemporalAnswer]]]) -> dict[str, Any]:
        """Return the answers at each moment as plain values; those at the only one as `answers`."""
        at = [{"time": moment, "answers": [self.answer_json(answer) for answer in own]} for moment, own in answers]
        rest = at[0] if len(at) == 1 else {"moments": at}
        return {"query": question, "aggregation": self.reasoner.aggregation, **rest}

    def show(self, question: list[str], answers: list[tuple[str, list[TemporalAnswer]]], *, quiet: bool) -> None:
        """Print the answers; moments whose answers are the same share a table."""
        out = result_console()
        groups: list[tuple[list[str], list[TemporalAnswer]]] = []
        for moment, own in answers:
            if groups and [a.entity for a in groups[-1][1]] == [a.entity for a in own]:
                groups[-1][0].append(moment)
            else:
                groups.append(([moment], own))
        for moments, own in groups:
            when = moments[0] if len(moments) == 1 else f"{moments[0]} to {moments[-1]}"
            if not quiet:
                out.say(f"{' '.join(question)}  {when}", "bold")
            if not own:
                out.say("no answer: nothing that was known before speaks for any")
                continue
            print_whole(_answers_table(own, [", ".join(self.stating(answer)) for answer in own]))
            for answer in own if self.explains else ():
                out.say(str(self.reasoner.explain(*answer.fact, top=N_REASONS)))

    def write_file(self, questions: list[list[str]], bar: Slow, *, as_json: bool) -> None:
        """Write the answers to each query as soon as they are known, a line per answer."""
        import json as json_format

        if not as_json:
            sys.stdout.write("subject\trelation\tobject\ttime\trank\tscore\tknown\n")
        for *question, moment in questions:
            answers = self.ask(question, moment)
            if as_json:
                plain = self.to_json(question, [(moment, answers)])
                sys.stdout.write(json_format.dumps(plain, ensure_ascii=False) + "\n")
            for answer in () if as_json else answers:
                known = ",".join(self.stating(answer))
                sys.stdout.write("\t".join([*answer.fact, str(answer.rank), f"{answer.score:.6g}", known]) + "\n")
            bar.advance(1)


def _answers_table(answers: list[TemporalAnswer], known: list[str]) -> Table:
    with_chances = any(answer.probability is not None for answer in answers)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right")
    table.add_column("answer", overflow="fold", style="bold")
    table.add_column("score", justify="right", no_wrap=True)
    if with_chances:
        table.add_column("probability", justify="right", no_wrap=True)
    table.add_column("known")
    for answer, splits in zip(answers, known, strict=True):
        chance = [] if not with_chances else ["" if answer.probability is None else f"{answer.probability:.3f}"]
        table.add_row(str(answer.rank), answer.entity, f"{answer.score:.3f}", *chance, splits)
    return table


def explain_at(
    rules: Rules,
    subject: Annotated[str, typer.Argument()],
    relation: Annotated[str, typer.Argument()],
    object: Annotated[str, typer.Argument()],
    time: Time = None,
    data: Data = None,
    top: Annotated[int, typer.Option(min=1)] = 5,
    html: Annotated[Path | None, typer.Option()] = None,
    aggregation: TimedAggregation = None,
    *,
    common: Common,
) -> None:
    """Show the temporal rules that speak for a fact at a moment, with the facts and dates behind them."""
    from anyburl.cli.predict import check_page

    if "?" in (subject, object):
        raise OptionError("explain takes a complete fact; use predict to ask for answers")
    if time is None:
        raise OptionError("explain takes the moment of the fact: SUBJECT RELATION OBJECT TIME")
    check_page(html)
    notes = common.notes()
    reasoner = open_history(rules, data, notes, aggregation=aggregation, threads=common.threads)
    apply_reviews(reasoner, notes)
    explanation = reasoner.explain(subject, relation, object, time, top=top)
    if html is not None:
        from anyburl.temporal.drawing import write_explanation_page

        write_explanation_page(explanation, reasoner.dataset.clock, html)
    if common.json:
        print_json(explanation.to_json())
        return
    out = result_console()
    for line in str(explanation).splitlines():
        out.say(line)
    if html is not None:
        out.say(f"page written to {html}", "dim")


def complete_at(
    rules: Rules,
    out: Annotated[str, typer.Option(metavar="FILE")],
    data: Data = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With temporal rules: the moment of the facts. Defaults to the one after the last fact.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    min_probability: Annotated[float | None, typer.Option()] = None,
    top: Annotated[int | None, typer.Option()] = None,
    relations: Annotated[str | None, typer.Option()] = None,
    *,
    common: Common,
) -> None:
    """Write the facts that are likely at a moment, that no split states for it and that nobody judged."""
    _check_facts_file(out)
    if common.json and out == "-":
        raise OptionError("--json and --out - both write to standard output: write to a file instead")
    notes = common.notes()
    reasoner = open_history(rules, data, notes, threads=common.threads)
    moment = reasoner.dataset.clock.label(reasoner.last + 1) if at is None else at  # before what people accepted
    apply_reviews(reasoner, notes)
    given: dict[str, Any] = {} if top is None else {"top": top}
    given |= {} if min_probability is None else {"min_probability": min_probability}
    chosen = None if not relations else tuple(filter(None, parse_texts(relations)))
    started = clocks.monotonic()
    with Slow(notes, "finding facts", "found facts"):
        facts = reasoner.complete(moment, relations=chosen, **given)
    _write_facts(facts, out)
    seconds = round(clocks.monotonic() - started, 3)
    counts = dict(facts["relation"].value_counts(sort=True).iter_rows())
    if common.json:
        print_json({"facts": facts.height, "seconds": seconds, "out": out, "at": moment, "by_relation": counts})
    elif out != "-" and not common.quiet:
        result_console().say(f"{counted(facts.height, 'fact')} of {moment} written to {out} in {seconds:.1f} s")


def _check_facts_file(out: str) -> None:
    """Refuse, before any work is done, a file that facts with times cannot be written to."""
    if out == "-":
        return
    path = Path(out)
    if not path.name.lower().endswith((".parquet", ".tsv", ".csv", ".jsonl")):
        raise OptionError(
            f"{out}: expected a file that ends in .parquet, .tsv, .csv or .jsonl, or - for standard output"
        )
    if not path.parent.is_dir():
        raise DataError(f"{out}: the folder {path.parent} does not exist")


def _write_facts(facts: Any, out: str) -> None:
    """Write a frame of facts by the suffix of a file; - is standard output, with tabs."""
    if out == "-":
        sys.stdout.write(facts.write_csv(separator="\t"))
    else:
        write_table(facts, Path(out))
