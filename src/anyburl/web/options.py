"""How to serve the explorer. Imports no web library, so the command line can take its defaults from here."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.base.errors import InvalidOptionError, OptionError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 8


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Where the explorer listens, who may use it, and what one reader may ask of it; checked on creation."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None

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

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidOptionError("port", "from 0 to 65535", self.port)
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
