"""How to serve the explorer. Imports no web library, so the command line can take its defaults from here."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.base import checking
from anyburl.base.checking import Options, option
from anyburl.base.errors import OptionError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 8
BACKLOG = 2048  # connections that wait to be accepted


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """Where the explorer listens, who may use it, and what one reader may ask of it; checked on creation."""

    port: int = option(
        8000,
        checking.whole,
        0,
        65535,
        help="The port to listen on; 0 picks a free one.",
        shown={"min": 0, "max": 65535},
    )
    host: str = option(
        "127.0.0.1",
        checking.text,
        "the address of a machine",
        help="The address to listen on; any but the local machine needs a token.",
        metavar="ADDRESS",
    )
    token: str | None = option(
        None,
        checking.text,
        "text",
        help="The token that readers need.",
        parse=lambda text: text or None,
        metavar="TEXT",
        shown={"envvar": "ANYBURL_TOKEN", "show_default": False},
    )

    longest_text: int = 20_000
    """Characters of one label or note in a request."""
    largest_body: int = 4_000_000
    """Bytes of a request's body."""
    largest_head: int = 1 << 18
    """Bytes of a request's first lines: its address and headers."""
    seconds_to_send: float = 30.0
    """How long the head of a request may take to arrive, and its body; then the connection is closed."""
    largest_page: int = 200
    """Rows of a page."""
    deepest_row: int = 5_000
    """How far down a list can be paged."""
    largest_batch: int = 1_000
    """Questions in one request."""
    seconds: float = 20.0
    """How long a reader waits for an answer before being told that it takes too long."""
    most_waiting: int = 200
    """Requests that wait for a free thread; those beyond are asked to come back."""
    workers: int = 1
    """Processes that answer, which share cores and waiting requests."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise OptionError(f"--token must have at least {SHORTEST_TOKEN} characters")
        if not self.is_local and self.token is None:
            raise OptionError(
                f"--host {self.host} lets others in: set a --token, or the environment variable ANYBURL_TOKEN"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(self.host, self.host)
        return f"http://{host}:{self.port}/"
