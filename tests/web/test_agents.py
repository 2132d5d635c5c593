"""The door for agents: every tool called by the SDK's own client, in this process, over streams and over HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytest.importorskip("mcp", reason="mcp is not installed: pip install 'anyburl[mcp]'")

from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters

from anyburl.reasoning.reasoner import Reasoner
from anyburl.tools.options import ServeOptions
from anyburl.web.agents import make_server
from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer

ADDRESS = "http://127.0.0.1:8000/"
TOOLS = {"describe_graph", "search", "ask", "explain", "check", "rules", "complete"}


def talk(explorer: Explorer, say: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    """Return what a conversation with a server in this process returns."""

    async def conversation() -> Any:
        async with Client(make_server(explorer, address=ADDRESS, **options)) as client:
            return await say(client)

    return asyncio.run(conversation())


def call(explorer: Explorer, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
    """Return the structured result of one call, which must not be an error."""
    result = talk(explorer, lambda client: client.call_tool(tool, arguments), **options)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refused(explorer: Explorer, tool: str, arguments: dict[str, Any], **options: Any) -> str:
    """Return the sentence of a call that must be refused."""
    result = talk(explorer, lambda client: client.call_tool(tool, arguments), **options)
    assert result.is_error
    return str(result.content[0].text)


def test_schemas_are_valid_and_only_reviews_write(explorer: Explorer) -> None:
    listed = talk(explorer, lambda client: client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    for tool in listed:
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        assert tool.annotations.read_only_hint
        assert len(tool.description) > 40
    with_reviews = talk(explorer, lambda client: client.list_tools(), reviews=True).tools
    assert [tool.name for tool in with_reviews if not tool.annotations.read_only_hint] == ["review"]


def test_the_graph_is_described(explorer: Explorer) -> None:
    told = call(explorer, "describe_graph", {})
    vocabulary = explorer.reasoner.vocabulary
    assert (told["entities"], told["relations"]) == (len(vocabulary.entities), vocabulary.n_relations)
    assert told["rules"] == len(explorer.reasoner.rules)
    assert sum(relation["rules"] for relation in told["most_frequent_relations"]) == told["rules"]
    for relation in told["most_frequent_relations"]:
        assert relation["example"][1] == relation["label"]


def test_labels_are_found_despite_a_typing_error(explorer: Explorer) -> None:
    matches = call(explorer, "search", {"text": "Frensh", "kind": "entity"})["matches"]
    assert "French" in [match["label"] for match in matches]
    assert matches[0]["link"].startswith(f"{ADDRESS}entity?label=")


def question(reasoner: Reasoner) -> tuple[str, str]:
    """A question that rules answer with a new fact."""
    for subject in reasoner.vocabulary.entities:
        for relation in reasoner.vocabulary.relations:
            if len(reasoner.predict(subject, relation, None, top=1)):
                return subject, relation
    raise AssertionError("rules predict nothing")


def test_answers_are_those_of_the_reasoner_with_the_facts_behind_them(explorer: Explorer) -> None:
    subject, relation = question(explorer.reasoner)
    told = call(explorer, "ask", {"subject": subject, "relation": relation, "top": 3})
    expected = explorer.reasoner.predict(subject, relation, None, top=3)
    assert [answer["triple"][2] for answer in told["answers"]] == [answer.entity for answer in expected]
    assert told["candidates"] == expected.n_candidates
    best, reason = told["answers"][0], explorer.reasoner.explain(expected[0].triple, top=1, groundings=1).reasons[0]
    assert best["reason"]["rule"] == str(reason.rule)
    assert best["reason"]["facts"] == [list(fact) for fact in reason.groundings[0]]
    assert best["link"].startswith(f"{ADDRESS}why?subject=")


def test_a_fact_is_explained(explorer: Explorer) -> None:
    subject, relation = question(explorer.reasoner)
    triple = explorer.reasoner.predict(subject, relation, None, top=1)[0].triple
    told = call(explorer, "explain", dict(zip(("subject", "relation", "object"), triple, strict=True)))
    expected = explorer.reasoner.explain(triple, top=3, groundings=1)
    assert told["n_reasons"] == expected.n_reasons
    assert [reason["rule"] for reason in told["reasons"]] == [str(reason.rule) for reason in expected.reasons]


def test_facts_from_elsewhere_are_judged(explorer: Explorer) -> None:
    dataset = explorer.reasoner.dataset
    stated = list(dataset.vocabulary.triple_labels(*dataset.train.triples[0].tolist()))
    told = call(explorer, "check", {"facts": [stated, ["Atlantis", *stated[1:]]]})["checked"]
    assert [row["verdict"] for row in told] == ["stated", "unknown"]
    assert "Atlantis" in told[1]["note"]


def test_the_rules_of_a_relation_are_listed(explorer: Explorer) -> None:
    rules = explorer.reasoner.rules
    relation = rules.vocabulary.relations[int(rules.head[0]) % rules.vocabulary.n_relations]
    told = call(explorer, "rules", {"relation": relation, "top": 5})
    assert told["n_matching"] == len(rules.filter(relation=relation))
    assert all(rule["rule"].startswith(f"{relation}(") for rule in told["rules"])


def test_missing_facts_of_a_relation_are_proposed(explorer: Explorer) -> None:
    _, relation = question(explorer.reasoner)
    told = call(explorer, "complete", {"relation": relation, "top": 4})["facts"]
    frames = list(explorer.reasoner.complete(relations=[relation], top=4))
    expected = {row[:3] for frame in frames for row in frame.select("subject", "relation", "object").iter_rows()}
    assert {tuple(fact["triple"]) for fact in told} == expected


def test_verdicts_are_recorded_if_they_are_let_in(explorer: Explorer) -> None:
    subject, relation = question(explorer.reasoner)
    triple = explorer.reasoner.predict(subject, relation, None, top=1)[0].triple
    arguments = {**dict(zip(("subject", "relation", "object"), triple, strict=True)), "verdict": "rejected"}
    assert "review" in refused(explorer, "review", arguments)
    told = call(explorer, "review", arguments, reviews=True)
    assert (told["rejected"], explorer.reviews.standing()[triple].reader) == (1, "agent")


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("ask", {"subject": "Frence", "relation": "speaks"}, "unknown entity 'Frence'"),
        ("ask", {"relation": "speaks"}, "must ask for either its subject or its object"),
        ("ask", {"subject": "French", "relation": "speaks", "top": 0}, "greater than or equal to 1"),
        ("search", {}, "Field required"),
        ("check", {"facts": [["a", "b"]]}, "at least 3 items"),
        ("check", {"facts": []}, "at least 1 item"),
        ("complete", {"relation": "speeks"}, "unknown relation 'speeks'"),
        ("vanish", {}, "vanish"),
    ],
)
def test_wrong_arguments_are_errors_that_an_agent_can_read(
    explorer: Explorer, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert sentence in refused(explorer, tool, arguments)


def test_rules_can_be_read_as_resources(explorer: Explorer) -> None:
    relation = explorer.common_relations(1)[0][0]
    read = talk(explorer, lambda client: client.read_resource("anyburl://rules"))
    lines = read.contents[0].text.splitlines()
    assert lines[0].startswith("# the best")
    assert len(lines) == 1 + min(100, len(explorer.reasoner.rules))
    one = talk(explorer, lambda client: client.read_resource(f"anyburl://rules/{relation}"))
    assert all(f"\t{relation}(" in line for line in one.contents[0].text.splitlines()[1:])
    report = talk(explorer, lambda client: client.read_resource("anyburl://report"))
    assert "## All relations at a glance" in report.contents[0].text


def test_a_resource_that_is_not_there_is_an_error_of_the_protocol(explorer: Explorer) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(MCPError, match="unknown relation 'nothing'"):
            await client.read_resource("anyburl://rules/nothing")

    talk(explorer, conversation)


def test_many_calls_do_not_make_the_server_grow(explorer: Explorer) -> None:
    subject, relation = question(explorer.reasoner)

    async def conversation(client: Client) -> list[int]:
        sizes = []
        for n_calls in (50, 150):  # the first ones fill caches
            for _ in range(n_calls):
                await client.call_tool("ask", {"subject": subject, "relation": relation, "top": 1})
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        return sizes

    tracemalloc.start()
    try:
        before, after = talk(explorer, conversation)
    finally:
        tracemalloc.stop()
    assert after - before < 150 * 300  # bytes; a call that leaves an object behind leaves more


def test_a_cancelled_call_stops(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    started, stopped = threading.Event(), threading.Event()

    def endless(*_: Any, progress: Callable[[int], None], **__: Any) -> Any:
        started.set()
        try:
            for _ in range(1000):
                time.sleep(0.01)
                progress(1)
        except BaseException:
            stopped.set()
            raise

    monkeypatch.setattr(explorer.reasoner, "complete", endless)

    async def conversation(client: Client) -> None:
        calling = asyncio.create_task(client.call_tool("complete", {"relation": "speaks"}))
        await asyncio.to_thread(started.wait, 10)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        assert await asyncio.to_thread(stopped.wait, 5)

    talk(explorer, conversation)


def test_a_process_talks_over_standard_input_and_output(run_folder: Path) -> None:
    program = "from anyburl.cli.app import main; main()"
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", program, "mcp", str(run_folder)], env=dict(os.environ)
    )

    async def conversation() -> tuple[set[str], Any]:
        async with Client(parameters) as client:
            listed = await client.list_tools()
            return {tool.name for tool in listed.tools}, await client.call_tool("search", {"text": "French"})

    names, told = asyncio.run(conversation())
    assert names == TOOLS
    assert told.structured_content["matches"][0] == {
        "label": "French",
        "name": "French",
        "kind": "entity",
        "link": None,
    }


def test_over_http_the_token_of_the_explorer_is_needed(explorer: Explorer) -> None:
    options = ServeOptions(token="quite secret")
    app = create_app(explorer, options, make_server(explorer, options, address=ADDRESS))
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepted = {"accept": "application/json, text/event-stream"}
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        assert client.post("/mcp", json=asked, headers=accepted).status_code == 401
        told = client.post("/mcp", json=asked, headers={**accepted, "authorization": "Bearer quite secret"})
        assert {tool["name"] for tool in told.json()["result"]["tools"]} == TOOLS
        other_site = {**accepted, "authorization": "Bearer quite secret", "origin": "http://elsewhere.example"}
        assert client.post("/mcp", json=asked, headers=other_site).status_code == 403
