"""The server: uvicorn with h11, and limits on the size and duration of requests, which hold without a token as well."""

from __future__ import annotations

import asyncio
import socket

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from anyburl.web.options import ServeOptions

SECONDS_IDLE = 75  # between two requests of one connection
SECONDS_TO_END = 3
TOO_SLOW = b"This request was not sent to its end in time.\n"
TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (
    len(TOO_SLOW),
    TOO_SLOW,
)


def serve(app: ASGIApp, options: ServeOptions, listener: socket.socket) -> None:
    """Answer requests to an application, such as `create_app` returns, until interrupted."""

    class Connection(TimedConnection):
        seconds = options.seconds_to_send

    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=options.largest_head,
        timeout_keep_alive=SECONDS_IDLE,
        timeout_graceful_shutdown=SECONDS_TO_END,
    )
    uvicorn.Server(config).run(sockets=[listener])


class TimedConnection(H11Protocol):
    """A connection that is closed if the client does not finish a request, or does not read the response.

    uvicorn closes connections that are idle after a response, but waits without end for the first byte of a connection,
    for the rest of a request and for a client that reads nothing. The head and the body of a request have `seconds`
    each, counted from their first byte, however slowly the rest arrives.
    """

    seconds = 0.0
    _awaited: tuple[object, ...] | None = None
    _sending: asyncio.TimerHandle | None = None  # when the request has to be complete
    _taking: asyncio.TimerHandle | None = None  # when the client has to have read the response

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def handle_events(self) -> None:
        """Process received bytes; called with every piece, and after each response."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._sending, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        super().resume_writing()

    def _watch(self) -> None:
        """Start a timer when the client has to send something, and cancel it when that has arrived."""
        awaited = None
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            awaited = (self.conn.their_state, self._is_half_sent, self.cycle)
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._sending is not None:
            self._sending.cancel()
        if awaited is not None:
            is_between = self.cycle is not None and not self._is_half_sent
            seconds = self.timeout_keep_alive if is_between else self.seconds
            self._sending = self.loop.call_later(seconds, self._give_up)

    @property
    def _is_half_sent(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])

    def _give_up(self) -> None:
        """Close the connection, with a sentence if the client is in the middle of a request without a response."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        if self._is_half_sent and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(TIMED_OUT)
        self.transport.close()
