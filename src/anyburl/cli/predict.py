"""`anyburl predict` and `explain`: answers of questions, and why a fact is one of them."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.errors import DataError, OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Data, Rules, command
from anyburl.cli.loading import AskingOptions, RulesAndData
from anyburl.cli.notes import Slow, print_json, print_whole, result_console
from anyburl.cli.tables import bold_rule
from anyburl.ranking.options import parse_aggregation

if TYPE_CHECKING:
    import polars as pl

    from anyburl.data.names import Names as NamesByLabel
    from anyburl.reasoning.completion.files import FactFile, FactStream
    from anyburl.reasoning.explanation.explain import Explanation
    from anyburl.reasoning.queries import Answer, Answers, Query, QueryIds
    from anyburl.reasoning.reasoner import Reasoner


N_REASONS = 3
COLUMNS = ("subject", "relation", "object", "rank", "score", "known", "rule", "rules", "query")


@command(
    "predict",
    "Example:  anyburl predict runs/geo France official_language '?' --explain\n\n"
    "Many queries:  anyburl predict runs/geo --queries queries.tsv > answers.tsv\n\n"
    "A value:  anyburl predict runs/debian vlc installed_size '?'",
)
def predict_command(
    rules: Rules,
    subject: Annotated[str | None, typer.Argument(metavar="SUBJECT", help="An entity, or ? to ask for it.")] = None,
    relation: Annotated[str | None, typer.Argument(metavar="RELATION", help="A relation.")] = None,
    object: Annotated[str | None, typer.Argument(metavar="OBJECT", help="An entity, or ? to ask for it.")] = None,
    data: Data = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Answer the queries in a file: tab-separated lines of subject, relation and object, with ? for "
            "the subject or the object. Prints tab-separated answers or, with --json, one object per query.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the answers to --queries to a file: .parquet, .tsv, .csv, .jsonl (also with .gz).",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Number of answers.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show the reasons for each answer.")] = False,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Include answers that the train split states.")
    ] = False,
    *,
    common: AskingOptions,
) -> None:
    """Rank the answers to SUBJECT RELATION ? or ? RELATION OBJECT (some shells need quotes around the ?).

    If RELATION is an attribute, its value is estimated, with a range and the reasons.
    """
    if explain and queries and not common.json:
        raise OptionError("--explain with --queries needs --json")
    target = _answer_file(out, queries, as_json=common.json)
    one = _one_query([subject, relation, object], queries)
    source = common.source(rules, data)
    if one is not None and _asks_for_value(one, source):
        _print_estimate(one, source, as_json=common.json)
        return
    _check_queries(one, queries, source)
    with source.open(common.ranking, explaining=explain, seed=common.seed) as reasoner:
        answering = _Answering(reasoner, top, include_known, explain)
        if queries is not None and target is not None:
            answering.answer_file(_read_queries(queries, reasoner), source, target, as_json=common.json)
            return
        assert one is not None
        answers = reasoner.predict(*one, top=top, include_known=include_known)
        if common.json:
            print_json(answering.to_json(one, answers))
        else:
            _print_answers(one, answers, answering, quiet=common.quiet)


def _answer_file(out: str | None, queries: Path | None, *, as_json: bool) -> FactFile | FactStream | None:
    """Return where tables of answers go to; None for one query, whose answers are shown."""
    if out is None and queries is None:
        return None
    from anyburl.reasoning.completion.files import STANDARD_OUTPUT, TABLES, FactFile, FactStream

    if out in (None, STANDARD_OUTPUT):
        return FactStream()
    if queries is None or as_json:
        raise OptionError("--out takes the answers to --queries, without --json")
    return FactFile(at_home(str(out)), suffixes=TABLES)


def _one_query(words: list[str | None], queries: Path | None) -> Query | None:
    """Return the query on the command line; there is one if there is no file of them."""
    from anyburl.reasoning.queries import make_query

    given = [word for word in words if word is not None]
    if queries is not None:
        if given:
            raise OptionError("pass either one query or a file with --queries, not both")
        return None
    if len(given) < 3:
        raise OptionError(f"a query is SUBJECT RELATION ? or ? RELATION OBJECT, got {' '.join(given) or 'none'}")
    return make_query(*given)


def _asks_for_value(one: Query, source: RulesAndData) -> bool:
    """Return whether a query asks for the value of an attribute, if the data has any."""
    import numpy as np

    if source.data is None and not _may_be_attribute(one.relation, source):
        return False
    dataset, attributes = source.dataset, source.dataset.attributes
    stated = dataset.vocabulary.decode_relations(np.unique(dataset.train.triples[:, 1]))  # names of attributes are not
    if attributes.empty or source.names.label_of(one.relation, stated, "relation") in stated:
        return False
    import polars as pl

    name = source.names.label_of(one.relation, pl.Series(list(attributes)), "attribute")
    if name in attributes and one.subject is None:
        raise OptionError(f"{one.relation} is an attribute: ask for a value of it as ENTITY {one.relation} '?'")
    return name in attributes


def _may_be_attribute(text: str, source: RulesAndData) -> bool:
    """Return whether a run has an attribute of that name: a prepared run answers without its data being read again."""
    from anyburl.base.sealed import scan_parquet
    from anyburl.data.attributes import FILE

    if not (source.path / FILE).is_file():
        return False
    labels = scan_parquet(source.path / FILE).select("attribute").unique().collect().to_series()
    return source.names.label_of(text, labels, "attribute") in labels


def _print_estimate(one: Query, source: RulesAndData, *, as_json: bool) -> None:
    from anyburl.reasoning.estimation import Estimator

    assert one.subject is not None
    estimate = Estimator(source.dataset, names=source.names).estimate(one.subject, one.relation)
    if as_json:
        print_json(estimate.to_json())
        return
    out = result_console()
    subject, attribute = source.names.get(estimate.entity), source.names.get(estimate.attribute)
    stated = f"; stated: {', '.join(map(estimate.text, estimate.stated))}" if estimate.stated else ""
    out.say(
        f"{attribute}({subject}) is about {estimate.text(estimate.value)}, probably from "
        f"{estimate.text(estimate.low)} to {estimate.text(estimate.high)}{stated}",
        "bold",
    )
    if not estimate.reasons:
        out.say(f"it has nothing in common with others that have a value: this is the median of all {attribute}")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("weight", "values", "half of them from", "median", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("of", overflow="fold", ratio=1)
    for reason in estimate.reasons:
        figures = [estimate.text(value) for value in (reason.low, reason.median, reason.high)]
        table.add_row(f"{reason.share:.0%}", f"{reason.n_values:,}", *figures, reason.group)
    print_whole(table)


def _check_queries(one: Query | None, queries: Path | None, source: RulesAndData) -> None:
    """Refuse unknown labels before rules are made ready, where that takes long."""
    from anyburl.reasoning.prepared import PREPARED
    from anyburl.reasoning.queries import encode_query, read_queries

    if (source.path / PREPARED).is_dir():
        return
    if queries is not None:
        read_queries(queries, source.dataset.vocabulary, source.names, source.dataset.train.triples)
    elif one is not None:
        encode_query(one, source.dataset.vocabulary, source.names, source.dataset.train.triples)


def _read_queries(path: Path, reasoner: Reasoner) -> QueryIds:
    from anyburl.reasoning.queries import read_queries

    return read_queries(path, reasoner.vocabulary, reasoner.names, reasoner.dataset.train.triples)


class _Answering:
    """How queries are answered, and what is shown of the answers."""

    def __init__(self, reasoner: Reasoner, top: int, include_known: bool, explains: bool) -> None:
        self.reasoner, self.names = reasoner, reasoner.names
        self.top, self.include_known, self.explains = top, include_known, explains

    def explain(self, answer: Answer) -> Explanation:
        return self.reasoner.explain(answer.triple, top=N_REASONS)

    def rule(self, answer: Answer) -> str:
        if answer.rule is not None:
            return answer.rule.named(self.names)
        from anyburl.reasoning.explanation.render import no_rule_text

        return no_rule_text(by_embedding=parse_aggregation(self.reasoner.options.aggregation).needs_embedding)

    def to_json(self, query: Query, answers: Answers) -> dict[str, Any]:
        return {
            "query": list(query),
            "aggregation": self.reasoner.options.aggregation,
            "candidates": answers.n_candidates,
            "answers": [self._answer_json(answer) for answer in answers],
        }

    def _answer_json(self, answer: Answer) -> dict[str, Any]:
        record: dict[str, Any] = {
            "rank": answer.rank,
            "entity": answer.entity,
            "score": answer.score,
            "known": list(answer.known),
            "triple": list(answer.triple),
            "rule": None if answer.rule is None else str(answer.rule),
            "rules": answer.n_rules,
        }
        if self.names:
            record["name"] = self.names.get(answer.entity)
            record["rule_named"] = self.rule(answer)
        if self.explains:
            record["reasons"] = [reason.to_json() for reason in self.explain(answer).reasons]
        return record

    def answer_file(
        self, questions: QueryIds, source: RulesAndData, target: FactFile | FactStream, *, as_json: bool
    ) -> None:
        """Write the answers to each query: to standard output as soon as they are known, to a file at the end."""
        done = f"answered {counted(len(questions), 'query', 'queries')}"
        with Slow(source.notes, "answering queries", done, total=len(questions)) as bar:
            if as_json:
                for query, answers in self._answered_one_by_one(questions, bar):
                    sys.stdout.write(json_format.dumps(self.to_json(query, answers), ensure_ascii=False) + "\n")
            else:
                frames = self.reasoner.predict_frames(
                    questions, top=self.top, include_known=self.include_known, progress=bar.advance
                )
                with target:
                    for frame in frames:
                        target.add(self._columns(frame))
        sys.stdout.flush()

    def _answered_one_by_one(self, questions: QueryIds, bar: Slow) -> Any:
        from anyburl.reasoning.queries import decode_query

        for entity, relation in zip(questions.entities.tolist(), questions.relations.tolist(), strict=True):
            query = decode_query(entity, relation, self.reasoner.vocabulary)
            yield query, self.reasoner.predict(*query, top=self.top, include_known=self.include_known)
            bar.advance(1)

    def _columns(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return one row for each answer; `query` counts from 1."""
        rows = frame.select(*COLUMNS).with_columns(frame["query"] + 1)
        return rows.with_columns(name=self.names.series(frame["entity"])) if self.names else rows


def _print_answers(query: Query, answers: Answers, answering: _Answering, *, quiet: bool) -> None:
    out = result_console()
    if not answers:
        out.say(f"no rule answers {_query_text(query, answering)}")
    else:
        out.say(_query_text(query, answering), "bold")
        print_whole(_predict_table(answers, answering))
    if not quiet:
        out.say(_remarks(query, answers, answering), "dim")
    if answering.explains:
        from anyburl.reasoning.explanation.render import to_tree

        for answer in answers:
            out.say("")
            print_whole(to_tree(answering.explain(answer), answering.names))


def _query_text(query: Query, answering: _Answering) -> str:
    words = ["?" if label is None else answering.names.get(label) for label in query]
    return f"({', '.join(words)})"


def _predict_table(answers: Answers, answering: _Answering) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("answer", overflow="fold")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("known in", no_wrap=True)
    table.add_column("rules", justify="right", no_wrap=True)
    table.add_column("best rule", overflow="fold", ratio=1)
    for answer in answers:
        name = answering.names.get(answer.entity)
        rule = bold_rule(answering.rule(answer))
        known = ", ".join(answer.known)
        table.add_row(str(answer.rank), name, f"{answer.score:.3f}", known, f"{answer.n_rules:,}", rule)
    return table


def _remarks(query: Query, answers: Answers, answering: _Answering) -> str:
    """Return how many candidates there are, and what was left out."""
    reasoner, given = answering.reasoner, answering.names.get(query.given)
    parts = []
    if answers:
        of = f"{len(answers):,} of {counted(answers.n_candidates, 'candidate')}"
        tuning = getattr(reasoner.ranker.reranker, "tuning", None)
        chosen = f" ({tuning.described()['chosen']})" if tuning else ""
        parts.append(f"{of}, by {reasoner.options.aggregation}{chosen}")
    if answers.n_known:
        verb = "is" if answers.n_known == 1 else "are"
        parts.append(f"{counted(answers.n_known, 'known answer')} {verb} left out (see --include-known)")
    if reasoner.ranker.block_connected:
        parts.append(f"entities connected with {given} are left out (see --block-connected)")
    return "; ".join(parts)


@command("explain", "Example:  anyburl explain runs/geo Aalborg time_zone Europe/Copenhagen --html why.html")
def explain_command(
    rules: Rules,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="An entity.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="A relation.")],
    object: Annotated[str, typer.Argument(metavar="OBJECT", help="An entity.")],
    data: Data = None,
    top: Annotated[int, typer.Option(min=1, help="Number of rules to show.")] = 5,
    groundings: Annotated[int, typer.Option(min=0, help="Number of groundings to show per rule.")] = 3,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page with the proofs drawn as graphs.")
    ] = None,
    *,
    common: AskingOptions,
) -> None:
    """Show the rules that predict a triple, true or not, with the facts that make them fire."""
    if "?" in (subject, object):
        raise OptionError("explain takes a complete triple; use predict to ask for answers")
    check_page(html)
    source = common.source(rules, data)
    with source.open(common.ranking, explaining=True, seed=common.seed) as reasoner:
        explanation = reasoner.explain((subject, relation, object), top=top, groundings=groundings)
    if html is not None:
        from anyburl.reasoning.explanation.render import write_html

        write_html(explanation, html, source.names)
    if common.json:
        print_json(explanation.to_json(source.names))
    else:
        _print_tree(explanation, source.names, html)


def check_page(html: Path | None) -> None:
    """Refuse, before any work is done, a file that a page cannot be written to."""
    if html is None:
        return
    if html.is_dir():
        raise DataError(f"{html} is a folder: expected a file for the page")
    if not html.parent.is_dir():
        raise DataError(f"{html}: the folder {html.parent} does not exist")


def _print_tree(explanation: Explanation, names: NamesByLabel, html: Path | None) -> None:
    from anyburl.reasoning.explanation.render import to_tree

    out = result_console()
    print_whole(to_tree(explanation, names))
    if not explanation.n_reasons and explanation.near_miss is None:
        out.say("no rule lacks only one fact, either")
    if html is not None:
        out.say(f"page written to {html}", "dim")
