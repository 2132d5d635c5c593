"""`make_server`: the answers of an explorer as tools for agents, over the Model Context Protocol.

`AgentTools` is what agents can ask. Tools return the same facts as the pages, but few of them and short. What takes too
long, or comes while too many wait, is refused as on the pages (`Lane`); a call that the client cancels stops at the
next step of its work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import partial, wraps
from threading import Event
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import polars as pl
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from anyburl import __version__
from anyburl.base.errors import AnyburlError, counted
from anyburl.base.machine import available_cores
from anyburl.reasoning.explanation.record import Fact, Reason
from anyburl.tools.options import ServeOptions
from anyburl.tools.report.files import theory_markdown
from anyburl.web.background import BusyError
from anyburl.web.explorer import Explorer, RuleChoice
from anyburl.web.facts import answer_question
from anyburl.web.schemas import LabelText, NoteText
from anyburl.web.site import Lane, url

MOST_ANSWERS, MOST_FACTS, MOST_RULES = 50, 200, 100
N_RELATIONS = 50

Triple = Annotated[list[LabelText], Field(min_length=3, max_length=3, description="subject, relation, object")]
Few = Annotated[int, Field(ge=1, le=MOST_ANSWERS)]
Chance = Annotated[float, Field(ge=0, le=1)]


class Label(BaseModel):
    """An entity or a relation."""

    label: str
    name: str
    kind: Literal["entity", "relation"]
    link: str | None = None


class Matches(BaseModel):
    matches: list[Label]


class RelationSummary(BaseModel):
    """A relation, how many facts have it, and one of them."""

    label: str
    name: str
    facts: int
    rules: int
    example: list[str]


class GraphSummary(BaseModel):
    title: str
    entities: int
    relations: int
    facts: dict[str, int]
    rules: int
    aggregation: str
    calibrated: bool
    most_frequent_relations: list[RelationSummary]
    link: str | None = None


class RuleAndFacts(BaseModel):
    """A rule, how often it was right, and the facts that make it fire."""

    rule: str
    confidence: float
    support: int
    predictions: int
    facts: list[list[str]]


class ProposedFact(BaseModel):
    """A fact with its chance of being true, the best reason for it, and a stated fact that contradicts it."""

    triple: list[str]
    names: list[str]
    score: float
    probability: float | None = None
    known: list[str] = []
    conflict: list[str] | None = None
    reason: RuleAndFacts | None = None
    link: str | None = None


class AnswerList(BaseModel):
    """The best answers, of `candidates`; known answers are left out unless they are asked for."""

    candidates: int
    known_left_out: int
    answers: list[ProposedFact]


class FactList(BaseModel):
    facts: list[ProposedFact]


class Explained(BaseModel):
    """Why rules predict a fact; without a reason, the strongest rule that lacks a single fact."""

    triple: list[str]
    names: list[str]
    known: list[str]
    score: float
    probability: float | None
    conflict: list[str] | None
    n_reasons: int
    reasons: list[RuleAndFacts]
    near_miss: dict[str, Any] | None
    link: str | None = None


class CheckedFact(BaseModel):
    """The verdict on a fact from elsewhere, with what speaks for it and against it."""

    triple: list[str]
    verdict: Literal["stated", "contradicted", "supported", "unknown"]
    probability: float | None
    score: float | None
    rule: str | None
    facts: list[list[str]]
    conflict: list[str] | None
    instead: str | None
    note: str | None
    link: str | None = None


class Verdicts(BaseModel):
    checked: list[CheckedFact]


class RuleSummary(BaseModel):
    rule: str
    type: str
    confidence: float
    support: int
    predictions: int
    link: str | None = None


class RuleSummaries(BaseModel):
    n_matching: int
    rules: list[RuleSummary]


class Recorded(BaseModel):
    triple: list[str]
    verdict: str
    accepted: int
    rejected: int


class AgentTools:
    """The tools: methods that answer from an `Explorer`; `address` is that of an explorer which links lead to."""

    def __init__(self, explorer: Explorer, address: str | None = None) -> None:
        self.explorer, self._address = explorer, address

    def describe_graph(self) -> GraphSummary:
        """Describe the graph: how large it is, its most frequent relations with an example each, and its rules."""
        reasoner = self.explorer.reasoner
        dataset, vocabulary = reasoner.dataset, reasoner.vocabulary
        train = dataset.train.triples
        relations = []
        for label, n_facts in self.explorer.common_relations(N_RELATIONS):
            row = int((train[:, 1] == vocabulary.relation_id(label)).argmax())
            _, chosen = self.explorer.choose_rules(RuleChoice(relation=label))
            relations.append(
                RelationSummary(
                    label=label,
                    name=self.explorer.text(label),
                    facts=n_facts,
                    rules=chosen.n_matching,
                    example=list(vocabulary.triple_labels(*train[row].tolist())),
                )
            )
        return GraphSummary(
            title=self.explorer.title,
            entities=len(vocabulary.entities),
            relations=vocabulary.n_relations,
            facts={split: len(dataset.split(split)) for split in ("train", "valid", "test")},
            rules=len(reasoner.rules),
            aggregation=reasoner.options.aggregation,
            calibrated=reasoner.calibration is not None,
            most_frequent_relations=relations,
            link=self._link("/"),
        )

    def search(
        self,
        text: Annotated[str, Field(min_length=1, max_length=500)],
        kind: Literal["entity", "relation"] | None = None,
        top: Few = 10,
    ) -> Matches:
        """Find entities and relations by label or name; small typing errors are understood."""
        hits = self.explorer.search.find(text, kind=kind, top=top)
        return Matches(
            matches=[
                Label(label=m.label, name=m.name, kind=m.kind, link=self._link(f"/{m.kind}", label=m.label))
                for m in hits
            ]
        )

    def ask(
        self,
        relation: LabelText,
        subject: LabelText | None = None,
        object: LabelText | None = None,
        top: Few = 10,
        include_known: bool = False,
    ) -> AnswerList:
        """Answer (subject, relation, ?) or (?, relation, object), with reasons; leave out what is asked for."""
        query = self.explorer.query(subject, relation, object)
        reasoner = self.explorer.reasoner
        ranking = answer_question(reasoner, query, top=top, include_known=include_known)
        answers = [
            self._proposed(
                answer.triple,
                answer.score,
                probability=answer.probability,
                known=list(answer.known),
                conflict=_list(answer.conflict),
            )
            for answer in ranking.candidates
        ]
        return AnswerList(candidates=ranking.n_candidates, known_left_out=ranking.n_known, answers=answers)

    def explain(
        self,
        subject: LabelText,
        relation: LabelText,
        object: LabelText,
        top: Annotated[int, Field(ge=1, le=20)] = 3,
    ) -> Explained:
        """Say why rules predict a fact, which may be stated or new: the rules that fire, and the facts behind them."""
        triple, reasoner = self.explorer.triple(subject, relation, object), self.explorer.reasoner
        explanation, verdict = reasoner.explain(triple, top=top, groundings=1), reasoner.verdict(triple)
        return Explained(
            triple=list(triple),
            names=[self.explorer.text(label) for label in triple],
            known=list(explanation.known),
            score=explanation.score,
            probability=None if explanation.known else verdict.probability,
            conflict=None if explanation.known else _list(verdict.conflict),
            n_reasons=explanation.n_reasons,
            reasons=[_reason(reason) for reason in explanation.reasons],
            near_miss=explanation.near_miss.to_json() if explanation.near_miss else None,
            link=self._why(triple),
        )

    def check(
        self,
        facts: Annotated[list[Triple], Field(min_length=1, max_length=MOST_FACTS)],
        min_probability: Chance = 0.5,
    ) -> Verdicts:
        """Judge facts from elsewhere one by one: stated, contradicted (with the stated fact), supported (with a reason)
        or unknown. If the graph lacks an entity, `note` says so.
        """
        given = pl.DataFrame(facts, schema=["subject", "relation", "object"], orient="row")  # frames keep their order
        frame = self.explorer.reasoner.check(given, min_probability=min_probability, progress=stop_if_cancelled)
        return Verdicts(checked=[self._checked(row) for row in frame.iter_rows(named=True)])

    def rules(
        self,
        relation: LabelText,
        top: Annotated[int, Field(ge=1, le=MOST_RULES)] = 10,
        contains: LabelText | None = None,
    ) -> RuleSummaries:
        """List the best rules that predict a relation, or those of them that name another relation or an entity."""
        _, chosen = self.explorer.choose_rules(RuleChoice(relation=relation, contains=contains))
        rules = self.explorer.reasoner.rules
        best = rules.take(chosen.rows[:top])
        listed = [
            RuleSummary(
                rule=str(rule),
                type=str(rule.type),
                confidence=float(confidence),
                support=int(best.support[row]),
                predictions=int(best.predictions[row]),
                link=self._link(f"/rules/{int(chosen.rows[row])}"),
            )
            for row, (rule, confidence) in enumerate(zip(best, best.confidence(), strict=True))
        ]
        return RuleSummaries(n_matching=chosen.n_matching, rules=listed)

    def complete(self, relation: LabelText, top: Few = 20, min_probability: Chance | None = None) -> FactList:
        """Propose the most likely facts of a relation that the graph does not state, each with a reason."""
        label = self.explorer.relation(relation)
        frames = self.explorer.reasoner.complete(
            relations=[label], top=top, min_probability=min_probability, progress=stop_if_cancelled
        )
        facts = [row for frame in frames for row in frame.iter_rows(named=True)]
        best = sorted(facts, key=lambda row: -(row["probability"] or row["score"]))[:top]
        return FactList(
            facts=[
                self._proposed(
                    (row["subject"], row["relation"], row["object"]), row["score"], probability=row["probability"]
                )
                for row in best
            ]
        )

    def review(
        self,
        subject: LabelText,
        relation: LabelText,
        object: LabelText,
        verdict: Literal["accepted", "rejected", "withdrawn"],
        note: NoteText = "",
    ) -> Recorded:
        """Record a verdict on a proposed fact: people see it, and the fact is not proposed again."""
        triple, log = self.explorer.triple(subject, relation, object), self.explorer.reviews
        log.record(triple, verdict, note, "agent")
        counts = log.counts()
        return Recorded(triple=list(triple), verdict=verdict, accepted=counts["accepted"], rejected=counts["rejected"])

    def report(self) -> str:
        """Return what the graph knows, in plain words, as Markdown."""
        theory = self.explorer.theory()
        if theory is None:
            raise BusyError("the report is being written")
        return theory_markdown(theory)

    def rule_texts(self, relation: str | None = None) -> str:
        """Return the best rules, of a relation or of all, with their counts, one in a line."""
        reasoner = self.explorer.reasoner
        _, chosen = self.explorer.choose_rules(RuleChoice(relation=relation))
        best = reasoner.rules.take(chosen.rows[:MOST_RULES])
        counts = zip(best.predictions.tolist(), best.support.tolist(), best.confidence().tolist(), best, strict=True)
        lines = [f"{predictions}\t{support}\t{share:.4f}\t{rule}" for predictions, support, share, rule in counts]
        head = (
            f"# the best {len(lines)} of {counted(chosen.n_matching, 'rule')}: predictions, support, confidence, rule"
        )
        return "\n".join([head, *lines])

    def _proposed(self, triple: Fact, score: float, **more: Any) -> ProposedFact:
        """Return a fact with the best reason for it."""
        reasons = self.explorer.reasoner.explain(triple, top=1, groundings=1).reasons
        return ProposedFact(
            triple=list(triple),
            names=[self.explorer.text(label) for label in triple],
            score=score,
            reason=_reason(reasons[0]) if reasons else None,
            link=self._why(triple),
            **more,
        )

    def _checked(self, row: dict[str, Any]) -> CheckedFact:
        triple = (row["subject"], row["relation"], row["object"])
        kept = {name: row[name] for name in ("verdict", "probability", "score", "rule", "conflict", "instead", "note")}
        link = None if row["note"] else self._why(triple)
        return CheckedFact(triple=list(triple), facts=row["facts"] or [], link=link, **kept)

    def _why(self, triple: Fact) -> str | None:
        return self._link("/why", **dict(zip(("subject", "relation", "object"), triple, strict=True)))

    def _link(self, path: str, **parameters: str) -> str | None:
        return None if self._address is None else self._address.rstrip("/") + url(path, **parameters)


def _list(fact: Fact | None) -> list[str] | None:
    return None if fact is None else list(fact)


def _reason(reason: Reason) -> RuleAndFacts:
    return RuleAndFacts(
        rule=str(reason.rule),
        confidence=reason.confidence,
        support=reason.support,
        predictions=reason.predictions,
        facts=[list(fact) for fact in reason.groundings[0]] if reason.groundings else [],
    )


class CancelledCallError(Exception):
    """The client has cancelled the call."""


call_is_over: ContextVar[Event] = ContextVar("call_is_over")
"""Set once the client has cancelled the call."""


def stop_if_cancelled(_: int) -> None:
    """End the work of a call that was cancelled; called with the progress of slow work."""
    if call_is_over.get().is_set():
        raise CancelledCallError


INSTRUCTIONS = """\
A knowledge graph and rules learned from it. Facts are (subject, relation, object). Labels are ids; a name does as well,
if only one label has it: find labels with `search`. `ask` ranks the answers to a question, `explain` gives the rules
and facts behind a fact, and `check` judges facts from elsewhere before they are stored. A `probability` is the chance
that a fact which the graph does not state is true. It is null if the run is not calibrated; then only the order of
scores counts. A `conflict` is a stated fact that contradicts a proposed one.
"""

P = ParamSpec("P")
R = TypeVar("R")


class _Calls:
    """Runs the work of calls in threads: of milliseconds (`quick`) and of seconds (`slow`)."""

    def __init__(self, options: ServeOptions) -> None:
        self.quick = Lane("agent", available_cores(), options.most_waiting, options.seconds)
        self.slow = Lane("agent-slow", 1, max(1, options.most_waiting // 4), options.seconds)

    async def run(self, lane: Lane, work: Callable[[], R]) -> R:
        """Return what `work` returns; errors that are the caller's become errors that it can read."""
        call_is_over.set(over := Event())
        try:
            return await lane.run(work)
        except AnyburlError as error:
            raise ToolError(str(error)) from error
        except BusyError as error:
            raise ToolError(f"{error}: try again later, or ask for less") from error
        finally:
            over.set()

    def tool(self, method: Callable[P, R], lane: Lane) -> Callable[P, Awaitable[R]]:
        """Return a method as a tool, with the parameters that its schema is made from."""

        @wraps(method)
        async def call(*args: P.args, **arguments: P.kwargs) -> R:
            return await self.run(lane, partial(method, *args, **arguments))

        return call


def make_server(
    explorer: Explorer,
    options: ServeOptions | None = None,
    *,
    address: str | None = None,
    reviews: bool = False,
) -> MCPServer[Any]:
    """Return the server; without `reviews`, nothing can be written. Links lead to the explorer at `address`."""
    tools, calls = AgentTools(explorer, address), _Calls(options or ServeOptions())
    server: MCPServer[Any] = MCPServer(
        "anyburl",
        title=f"Rules of {explorer.title}",
        instructions=INSTRUCTIONS,
        version=__version__,
        log_level="WARNING",
    )
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    quick: list[Callable[..., Any]] = [tools.search, tools.ask, tools.explain, tools.rules]
    slow: list[Callable[..., Any]] = [tools.describe_graph, tools.check, tools.complete]
    for method in quick:
        server.add_tool(calls.tool(method, calls.quick), annotations=reads)
    for method in slow:
        server.add_tool(calls.tool(method, calls.slow), annotations=reads)
    if reviews:
        writes = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
        server.add_tool(calls.tool(tools.review, calls.quick), annotations=writes)

    @server.resource("anyburl://rules", mime_type="text/tab-separated-values", description=tools.rule_texts.__doc__)
    async def all_rules() -> str:
        return await calls.run(calls.slow, tools.rule_texts)

    @server.resource("anyburl://rules/{relation}", mime_type="text/tab-separated-values")
    async def rules_of(relation: str) -> str:
        """Return the best rules of a relation, with their counts, one in a line."""
        try:
            return await calls.run(calls.slow, lambda: tools.rule_texts(relation))
        except ToolError as error:
            raise ResourceNotFoundError(str(error)) from error

    @server.resource("anyburl://report", mime_type="text/markdown")
    async def theory() -> str:
        """Return what the graph knows, relation by relation, for people."""
        return await calls.run(calls.slow, tools.report)

    return server
