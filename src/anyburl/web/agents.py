"""`make_server`: the answers of an explorer as tools for agents, over the Model Context Protocol.

Tools return the same facts as the pages, but few of them and short. What takes too long, or comes while too many wait,
is refused as on the pages (`Lane`); a call that the client cancels stops at the next step of its work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from threading import Event
from typing import Any, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import ToolAnnotations

from anyburl import __version__
from anyburl.base.errors import AnyburlError
from anyburl.base.machine import available_cores
from anyburl.tools.options import ServeOptions
from anyburl.web.agent_tools import AgentTools, call_is_over
from anyburl.web.background import BusyError
from anyburl.web.explorer import Explorer
from anyburl.web.site import Lane

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
