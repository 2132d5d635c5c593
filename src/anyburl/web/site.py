"""`Site`: renders pages and JSON in threads, and caches them until somebody records a verdict.

Rules and data do not change while they are served. Templates are Jinja's; the pieces of HTML that pages repeat (links
to labels, facts and rules) are made here, all escaped.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Generic, ParamSpec, Protocol, TypeVar, cast
from urllib.parse import quote_plus

from fastapi import Depends
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from anyburl import __version__
from anyburl.base.machine import available_cores
from anyburl.data.names import Names, entity_name, relation_name
from anyburl.reasoning.drawing import shorten
from anyburl.reasoning.explanation.record import Fact, OpenFact
from anyburl.reasoning.explanation.render import contribution_text, no_rule_text
from anyburl.reasoning.search import LabelSearch
from anyburl.rules.rule import SELF, Constant, Part, Rule, Term
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS
from anyburl.tools.options import ServeOptions
from anyburl.tools.review import Edition
from anyburl.web.background import BusyError
from anyburl.web.explorer import Explorer
from anyburl.web.guard import address_of, path_of

FOLDER = Path(__file__).parent
TYPES = {str(kind): f"{kind.form.title}: {kind.form.meaning}" for kind in KINDS}
MOST_CACHED = 1 << 14
LONGEST_CACHED = 300
LONGEST_SHOWN = 80  # characters of a label in a sentence; its title has all of it
BAR = 72
SOMETHING = Markup("<var>something</var>")


class Fragments:
    """Turns labels, facts and rules into HTML.

    The results are cached, which template macros cannot do: a page of answers has hundreds of these pieces.
    """

    def __init__(self, rules: RuleSet | None, names: Names) -> None:
        self._names = names
        self._cached_link = lru_cache(2 * MOST_CACHED)(self._link)
        self._name = lru_cache(MOST_CACHED)(self._relation_name)
        self.rule_row = lru_cache(MOST_CACHED)(lambda row: Markup() if rules is None else self.rule(rules.rule(row)))

    def entity(self, label: str) -> Markup:
        """Return an entity as a link to its page."""
        return (self._cached_link if len(label) <= LONGEST_CACHED else self._link)("entity", label)

    def relation(self, label: str) -> Markup:
        """Return a relation as a link to its page."""
        return (self._cached_link if len(label) <= LONGEST_CACHED else self._link)("relation", label)

    def fact(self, fact: OpenFact) -> Markup:
        """Return subject, relation and object; an end that is None reads "something"."""
        subject, relation, object = fact
        ends = [SOMETHING if label is None else self.entity(label) for label in (subject, object)]
        return Markup(f"{ends[0]} {self.relation(relation)} {ends[1]}")

    def facts(self, facts: Iterable[Fact]) -> Markup:
        """Return facts joined by "and"."""
        return Markup(
            '<span class="glue"> and </span>'.join(f'<span class="fact">{self.fact(fact)}</span>' for fact in facts)
        )

    def rule(self, rule: Rule) -> Markup:
        """Return a rule as a sentence."""
        parts = [self._part(part) for part in rule.parts]
        body = "".join(f' <span class="glue">{"and" if i else "if"}</span> {part}' for i, part in enumerate(parts))
        always = "" if parts else ' <span class="glue">always</span>'
        return Markup(f'<span class="rule"><span class="head">{self._part(rule.head)}</span>{body}{always}</span>')

    def _part(self, part: Part) -> Markup:
        """Return an atom, "X section games", or a condition, "installed_size of X is at least 102400"."""
        subject, *rest = (self._piece(piece, part) for piece in (part.subject, *part.object_words))
        name, object = self._name(part.relation), "".join(rest)
        text = f"{name}of {subject} is {object}" if part.is_value else f"{subject}{name}{object}"
        return Markup(f'<span class="atom">{text}</span>')

    def _piece(self, piece: str | Term, part: Part) -> Markup:
        """Return words, or a term; `self` is written as the other argument, which it stands for."""
        if isinstance(piece, str):
            return escape(piece)
        term = next(other for other in part.terms if other != SELF) if piece == SELF else piece
        return self.entity(term.label) if isinstance(term, Constant) else Markup(f"<var>{escape(str(term))}</var>")

    def _relation_name(self, label: str) -> Markup:
        name = escape(shorten(relation_name(label, self._names), LONGEST_SHOWN))
        return Markup(f' <span class="relation" title="{escape(label)}"><bdi>{name}</bdi></span> ')

    def _link(self, kind: str, label: str) -> Markup:
        text = shorten((entity_name if kind == "entity" else relation_name)(label, self._names), LONGEST_SHOWN)
        address = escape(url(f"/{kind}", label=label))
        return Markup(f'<a class="{kind}" href="{address}" title="{escape(label)}"><bdi>{escape(text)}</bdi></a>')


PAGES = {"/ask": "Ask", "/rules": "Rules", "/run": "Run", "/review": "Review", "/api": "API"}
"""The pages that every page links to."""


def make_environment(
    rules: RuleSet | None, names: Names, *, title: str, has_run: bool, pages: Mapping[str, str] = PAGES
) -> Environment:
    """Return the templates with the filters and functions that they use; `rules` are those that pages name by row."""
    fragments = Fragments(rules, names)
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=lambda n: f"{n:,}",
        score=lambda value: f"{value:.3f}",
        percent=percent,
        entity=lambda label: entity_name(label, names),
        relation=lambda label: relation_name(label, names),
    )
    environment.globals.update(
        url=url,
        bar=bar,
        known_in=known_in,
        link_entity=fragments.entity,
        link_relation=fragments.relation,
        link_fact=fragments.fact,
        link_facts=fragments.facts,
        rule_words=fragments.rule,
        rule_row=fragments.rule_row,
        no_rule=no_rule_text(by_embedding=False),  # explorers do not rank by embeddings
        contribution=contribution_text,
        verdict_on=lambda triple: None,
        type_of=lambda code: str(KINDS[code]),
        rule_types=TYPES,
        title_of_run=title,
        has_run=has_run,
        navigation={path: text for path, text in pages.items() if path != "/run" or has_run},
        version=__version__,
    )
    return environment


def url(path: str, **parameters: Any) -> str:
    """Return an address with those parameters that are not None or empty."""
    given = [
        f"{name}={_quoted(value if isinstance(value, str) else str(value))}"
        for name, value in parameters.items()
        if value is not None and value != ""
    ]
    return f"{path}?{'&'.join(given)}" if given else path


_cached_quoted = lru_cache(MOST_CACHED)(quote_plus)


def _quoted(text: str) -> str:
    """Return text as a value in an address; a page of answers has the same few labels in hundreds of addresses."""
    return (_cached_quoted if len(text) <= LONGEST_CACHED else quote_plus)(text)


@lru_cache(MOST_CACHED)
def bar(value: float) -> Markup:
    """Return a bar that is as full as the value, from 0 to 1."""
    width = round(BAR * min(max(value, 0.0), 1.0), 1)
    return Markup(
        f'<svg class="bar" width="{BAR}" height="6" viewBox="0 0 {BAR} 6" aria-hidden="true"><rect class="track" '
        f'width="{BAR}" height="6" rx="3"/><rect class="fill" width="{width}" height="6" rx="3"/></svg>'
    )


@lru_cache
def known_in(splits: tuple[str, ...]) -> Markup:
    """Return the badge of a fact: the splits that state it, or that it is new."""
    if not splits:
        return Markup('<span class="badge new">new</span>')
    return Markup('<span class="badge">known: {}</span>').format(", ".join(splits))


def percent(value: float) -> str:
    """Return a probability for people: never 0% or 100% where it is not."""
    if 0 < value < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 <= value < 1 else f"{value:.0%}"


HTML, JSON = "text/html; charset=utf-8", "application/json"
MOST_BYTES = 48_000_000
UNFINISHED = "is_unfinished"
"""The name in a context that says that a page shows first results, and asks for itself again."""

P = ParamSpec("P")
R = TypeVar("R")
Context = dict[str, Any]


class Lane:
    """A thread pool with a bounded queue and a time limit per request.

    A thread cannot be stopped, so work counts until its thread is done, also after its request has timed out.
    anyio's `CapacityLimiter` would free the slot at the time-out, and threads would pile up.
    """

    def __init__(self, name: str, threads: int, most_waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"anyburl-{name}")
        self._most, self._seconds, self._under_way = threads + most_waiting, seconds, 0

    async def run(self, work: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Return what `work` returns; raise `BusyError` if the queue is full or the time is up."""
        if self._under_way >= self._most:
            raise BusyError("too many readers are waiting")
        has_gone = Event()
        call = partial(contextvars.copy_context().run, partial(work, *args, **keywords))
        future = self.begin(lambda: None if has_gone.is_set() else call())
        try:
            return cast("R", await asyncio.wait_for(asyncio.shield(future), self._seconds))
        except TimeoutError as error:
            raise BusyError(f"this took longer than {self._seconds:g} seconds") from error
        finally:
            has_gone.set()

    def begin(self, work: Callable[[], R]) -> asyncio.Future[R]:
        """Add work to the queue, however long that is."""
        self._under_way += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(self._count_down)
        return future

    def _count_down(self, future: asyncio.Future[R]) -> None:
        self._under_way -= 1
        if not future.cancelled():
            future.exception()  # marks it as retrieved, though the request may have timed out

    def close(self) -> None:
        """Cancel work that has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class CachedResponse:
    """The body of a response, with its ETag."""

    body: bytes
    media_type: str
    tag: str
    is_whole: bool = True  # a page with the first results is not kept

    def response(self, request: Request) -> Response:
        """Return the response, or 304 if the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def tagged_response(body: bytes, media_type: str) -> CachedResponse:
    """Return a response with its ETag."""
    return CachedResponse(body, media_type, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


class PageCache:
    """The responses used last, up to a number of bytes; two requests for the same address compute it once."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, CachedResponse] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[CachedResponse]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[CachedResponse]]) -> CachedResponse:
        """Return the response of an address, computed if it is not cached."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            task = asyncio.ensure_future(compute())
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(self._under_way[key])

    def clear(self) -> None:
        """Forget all responses."""
        self._kept.clear()
        self._bytes = 0

    def _store(self, key: str, done: asyncio.Future[CachedResponse]) -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None or not done.result().is_whole:
            return
        self._kept[key] = done.result()
        self._bytes += len(key) + len(done.result().body)
        while self._bytes > self._most and len(self._kept) > 1:
            oldest, response = self._kept.popitem(last=False)
            self._bytes -= len(oldest) + len(response.body)


class Changing(Protocol):
    """What readers can change: `edition` differs after every verdict, and `catch_up` lets verdicts count."""

    def edition(self) -> Edition: ...
    def catch_up(self, edition: Edition) -> None: ...


class Explored(Protocol):
    """What a site needs to know of what it shows: labels to search for, and work to do at its start and end."""

    @property
    def search(self) -> LabelSearch: ...
    @property
    def can_search(self) -> bool: ...
    def warm_up(self) -> None: ...
    def close(self) -> None: ...


E = TypeVar("E", bound=Explored)


class Site(Generic[E]):
    """The explorer, its templates, the cache, and threads for work of milliseconds (`quick`) and seconds (`slow`)."""

    def __init__(
        self, explorer: E, options: ServeOptions, environment: Environment, reviewed: Changing | None = None
    ) -> None:
        self.explorer, self.options, self._environment = explorer, options, environment
        cores = -(-available_cores() // options.workers)
        waiting = -(-options.most_waiting // options.workers)
        self.quick = Lane("quick", cores + 2, waiting, options.seconds)
        self.slow = Lane("slow", cores + 1, max(1, waiting // 4), options.seconds)
        self._cache = PageCache()
        self._reviewed, self._edition = reviewed, None if reviewed is None else reviewed.edition()

    def render(self, template: str, context: Context) -> bytes:
        """Return a page."""
        return self._environment.get_template(template).render(context).encode()

    def send(self, template: str, context: Context, status: int = 200) -> Response:
        """Return a page that is rendered on every request."""
        return Response(self.render(template, context), status, media_type=HTML)

    async def page(
        self, request: Request, template: str, make: Callable[[], Context], lane: Lane | None = None
    ) -> Response:
        """Return a page, cached by its address; `make` computes its context in a thread."""

        def compute() -> CachedResponse:
            context = make()
            body = self.render(template, {"path": path_of(request), **context})
            return replace(tagged_response(body, HTML), is_whole=not context.get(UNFINISHED))

        return await self._cached(request, compute, lane)

    async def answer(self, request: Request, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON, cached by its address."""
        return await self._cached(request, lambda: tagged_response(to_json(make()), JSON), lane)

    async def answer_once(self, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is computed on every request."""
        return Response(await (lane or self.quick).run(lambda: to_json(make())), media_type=JSON)

    async def _cached(self, request: Request, compute: Callable[[], CachedResponse], lane: Lane | None) -> Response:
        edition = None if self._reviewed is None else self._reviewed.edition()
        if edition != self._edition:  # another process may have recorded the verdict
            self._cache.clear()
            self._edition = edition

        def caught_up() -> CachedResponse:
            if self._reviewed is not None:
                self._reviewed.catch_up(edition)
            return compute()

        # With its edition in the key, what was computed before a verdict is not kept for after it.
        key = f"{edition} {address_of(request)}"
        cached = await self._cache.get(key, lambda: (lane or self.quick).run(caught_up))
        return cached.response(request)

    def close(self) -> None:
        """End the threads."""
        self.quick.close()
        self.slow.close()
        self.explorer.close()


def to_json(value: Any) -> bytes:
    """Return JSON in UTF-8; NaN and infinities become null."""
    return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


async def current_site(request: Request) -> Any:
    """Return the site of an application."""
    return request.app.state.site


CurrentSite = Annotated[Site[Explorer], Depends(current_site)]
AnySite = Annotated[Site[Explored], Depends(current_site)]
