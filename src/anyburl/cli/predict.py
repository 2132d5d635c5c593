"""`anyburl predict`: the best answers of a query, or of a file of queries."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.cli.arguments import (
    AGGREGATION,
    BLOCK_CONNECTED,
    SMOOTHING,
    Aggregation,
    BlockConnected,
    Data,
    Escaped,
    Json,
    Names,
    Quiet,
    RankingIdentity,
    Rules,
    Smoothing,
    Threads,
    TuningSeed,
    Weights,
)
from anyburl.cli.consoles import counted, note_console, print_json, print_whole, result_console
from anyburl.cli.loading import read_names_argument
from anyburl.cli.notes import Slow
from anyburl.cli.ranking import Source, rank_options
from anyburl.cli.tables import rule_text
from anyburl.errors import OptionError

if TYPE_CHECKING:
    from anyburl.explanation.explanation import Explanation
    from anyburl.prediction.batch import Answered, Candidate
    from anyburl.prediction.queries import Query
    from anyburl.ranking.ranker import Ranker
    from anyburl.triples.dataset import Dataset
    from anyburl.triples.names import Names as NamesByLabel

NAME = "predict"
EXAMPLE = (
    "Example:  anyburl predict runs/geo France official_language '?' --explain\n\n"
    "Many queries:  anyburl predict runs/geo --queries queries.tsv > answers.tsv"
)
N_REASONS = 3
COLUMNS = ("subject", "relation", "object", "rank", "answer", "score", "known", "rule")


def command(
    rules: Rules,
    subject: Annotated[str | None, typer.Argument(metavar="SUBJECT", help="An entity, or ? for what is asked.")] = None,
    relation: Annotated[str | None, typer.Argument(metavar="RELATION", help="A relation.")] = None,
    object: Annotated[str | None, typer.Argument(metavar="OBJECT", help="An entity, or ? for what is asked.")] = None,
    data: Data = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Answer a file of queries: lines of subject, relation, object, tab-separated, one of them ?. The "
            "answers are lines, too: tab-separated, or with --json an object for each query.",
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many answers.")] = 10,
    explain: Annotated[bool, typer.Option("--explain", help="Show the reasons for each answer.")] = False,
    include_known: Annotated[
        bool, typer.Option("--include-known", help="Keep answers that the train split states already.")
    ] = False,
    names: Names = None,
    aggregation: Aggregation = AGGREGATION,
    smoothing: Smoothing = SMOOTHING,
    weights: Weights = "",
    block_connected: BlockConnected = BLOCK_CONNECTED,
    object_identity: RankingIdentity = True,
    escaped: Escaped = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: TuningSeed = None,
) -> None:
    """Rank the answers of SUBJECT RELATION ? or ? RELATION OBJECT (a ? needs quotes in some shells)."""
    notes = note_console(quiet=quiet)
    options = rank_options(
        aggregation=aggregation,
        smoothing=smoothing,
        weights=weights,
        block_connected=block_connected,
        object_identity=object_identity,
        threads=threads,
    )
    if explain and queries and not json:
        raise OptionError("--explain with --queries needs --json: reasons do not fit into a line")
    one = _one_query([subject, relation, object], queries)
    names_by_label = read_names_argument(names)
    source = Source(rules, data, notes, escaped=escaped)
    asked = _check_queries(one, queries, source.dataset)
    ranker = source.make_ranker(options, explaining=explain, seed=seed)
    answering = _Answering(ranker, source.dataset, top, include_known, explain, names_by_label)
    if queries is not None:
        _answer_file(answering, asked, source, as_json=json)
    elif json:
        print_json(answering.to_json(answering.answer(asked[0])))
    else:
        _print_answers(answering.answer(asked[0]), answering, quiet=quiet)


def _one_query(words: list[str | None], queries: Path | None) -> Query | None:
    """Return the query on the command line; there is one if there is no file of them."""
    from anyburl.prediction.queries import parse_query

    given = [word for word in words if word is not None]
    if queries is not None:
        if given:
            raise OptionError("give one query, or a file of them with --queries, not both")
        return None
    if len(given) < 3:
        raise OptionError(f"a query is SUBJECT RELATION ? or ? RELATION OBJECT, got {' '.join(given) or 'none'}")
    return parse_query(*given)


def _check_queries(one: Query | None, queries: Path | None, dataset: Dataset) -> list[Query]:
    """Return the queries, whose labels the data must have: that is said before rules are loaded."""
    from anyburl.prediction.queries import read_queries

    if queries is not None:
        return read_queries(queries, dataset.vocabulary)
    assert one is not None
    one.ids(dataset.vocabulary)
    return [one]


class _Answering:
    """How queries are answered, and what is told of the answers."""

    def __init__(
        self,
        ranker: Ranker,
        dataset: Dataset,
        top: int,
        include_known: bool,
        explains: bool,
        names: NamesByLabel,
    ) -> None:
        self.ranker, self.dataset, self.names = ranker, dataset, names
        self.top, self.include_known, self.explains = top, include_known, explains

    def answer_all(self, queries: list[Query], progress: Any = None) -> Any:
        from anyburl.prediction.batch import answer_queries

        more = {"top": self.top, "include_known": self.include_known, "progress": progress}
        return answer_queries(self.ranker, self.dataset, queries, **more)

    def answer(self, query: Query) -> Answered:
        answered: Answered = next(self.answer_all([query]))
        return answered

    def explain(self, candidate: Candidate) -> Explanation:
        from anyburl.explanation.explain import explain

        return explain(self.ranker.rules, self.dataset, candidate.triple, ranker=self.ranker, top=N_REASONS)

    def rule(self, candidate: Candidate) -> str:
        from anyburl.explanation.words import rule_text

        return rule_text(candidate.rule, self.names)

    def to_json(self, answered: Answered) -> dict[str, Any]:
        return {
            "query": list(answered.query),
            "aggregation": self.ranker.options.aggregation,
            "candidates": answered.n_candidates,
            "answers": [self._candidate_json(candidate) for candidate in answered.candidates],
        }

    def _candidate_json(self, candidate: Candidate) -> dict[str, Any]:
        told = {
            "rank": candidate.rank,
            "entity": candidate.entity,
            "score": candidate.score,
            "known": list(candidate.known),
            "triple": list(candidate.triple),
            "rule": str(candidate.rule),
        }
        if self.names:
            told["name"] = self.names.get(candidate.entity)
        if self.explains:
            told["reasons"] = [reason.to_json() for reason in self.explain(candidate).reasons]
        return told

    def to_lines(self, answered: Answered) -> str:
        """Return tab-separated lines, one for each answer."""
        asked = [label or "?" for label in answered.query]
        lines = []
        for found in answered.candidates:
            name = [self.names.get(found.entity)] if self.names else []
            known = ",".join(found.known)
            cells = [*asked, str(found.rank), found.entity, f"{found.score!r}", known, str(found.rule), *name]
            lines.append("\t".join(cells) + "\n")
        return "".join(lines)


def _answer_file(answering: _Answering, queries: list[Query], source: Source, *, as_json: bool) -> None:
    """Write the answers of each query as soon as they are there."""
    if not as_json:
        sys.stdout.write("\t".join([*COLUMNS, *(["name"] if answering.names else [])]) + "\n")
    done = f"answered {counted(len(queries), 'query', 'queries')}"
    with Slow(source.notes, "answering queries", done, total=len(queries)) as bar:
        for answered in answering.answer_all(queries, bar.advance):
            if as_json:
                sys.stdout.write(json_format.dumps(answering.to_json(answered), ensure_ascii=False) + "\n")
            else:
                sys.stdout.write(answering.to_lines(answered))
    sys.stdout.flush()


def _print_answers(answered: Answered, answering: _Answering, *, quiet: bool) -> None:
    out = result_console()
    if not answered.candidates:
        out.say(f"no rule gives an answer to {_query_text(answered, answering)}")
    else:
        out.say(_query_text(answered, answering), "bold")
        print_whole(_table(answered, answering))
    if not quiet:
        out.say(_remarks(answered, answering), "dim")
    if answering.explains:
        from anyburl.explanation.render import to_tree

        for candidate in answered.candidates:
            out.say("")
            print_whole(to_tree(answering.explain(candidate), answering.names))


def _query_text(answered: Answered, answering: _Answering) -> str:
    words = ["?" if label is None else answering.names.get(label) for label in answered.query]
    return f"({', '.join(words)})"


def _table(answered: Answered, answering: _Answering) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("answer", overflow="fold")
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("known", no_wrap=True)
    table.add_column("best rule", overflow="fold", ratio=1)
    for found in answered.candidates:
        name = answering.names.get(found.entity)
        rule = rule_text(answering.rule(found))
        table.add_row(str(found.rank), name, f"{found.score:.3f}", ", ".join(found.known), rule)
    return table


def _remarks(answered: Answered, answering: _Answering) -> str:
    """Return what was counted and what was left out."""
    ranker, given = answering.ranker, answering.names.get(answered.query.given)
    parts = []
    if answered.candidates:
        of = f"{len(answered.candidates):,} of {counted(answered.n_candidates, 'candidate')}"
        tuning = getattr(ranker, "tuning", None)
        chosen = f" ({tuning.described()['chosen']})" if tuning else ""
        parts.append(f"{of}, by {ranker.options.aggregation}{chosen}")
    if answered.n_known:
        verb = "is" if answered.n_known == 1 else "are"
        parts.append(f"{counted(answered.n_known, 'known answer')} {verb} left out (see --include-known)")
    if ranker.block_connected:
        known = ", known answers too" if answering.include_known else ""
        parts.append(f"what is connected with {given} is left out{known} (see --block-connected)")
    return "; ".join(parts)
