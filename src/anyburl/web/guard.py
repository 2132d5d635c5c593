"""Access control: the Host header, the token, the origin of writes, the size of bodies, and security headers."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anyburl.web.options import LOOPBACK, ServeOptions

TOKEN_COOKIE = "anyburl_token"
OPEN_PATHS = ("/login", "/static/")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


def token_digest(token: str) -> str:
    """Return what the cookie holds: the token itself never leaves the form."""
    return hashlib.sha256(f"anyburl explorer {token}".encode()).hexdigest()


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, options: ServeOptions) -> None:
        self._app, self._options = app, options
        self._hosts = {*LOOPBACK, options.host.lower()}
        self._is_wide = options.host in ("0.0.0.0", "::")
        if self._is_wide:
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._digest = None if options.token is None else token_digest(options.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on; either way, browsers get the headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        without_body = scope["method"] == "HEAD"
        if without_body:
            scope = {**scope, "method": "GET"}

        async def send_guarded(message: Message) -> None:
            if without_body and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refused = self._refusal(Request(scope))
        if refused is not None:
            await refused(scope, receive, send_guarded)
            return
        await self._app(scope, self._limited(receive), send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        if not self._is_our_host(headers.get("host", "")):
            return PlainTextResponse("This host name is not served here.", 421)
        if request.method not in SAFE_METHODS and not self._is_our_origin(headers):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        if int_or(headers.get("content-length"), 0) > self._options.largest_body:
            return PlainTextResponse(self._too_large(), 413)
        if not self._is_let_in(request):
            return _ask_for_token(request)
        return None

    def _is_our_host(self, host: str) -> bool:
        """Whether a page of this name can be ours: another name that leads here is an attack (DNS rebinding)."""
        name = _host_name(host)
        if name in self._hosts:
            return True
        return self._is_wide and _is_address(name)

    def _is_our_origin(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or urlsplit(origin).netloc == headers.get("host")

    def _is_let_in(self, request: Request) -> bool:
        if self._digest is None or self._options.token is None or request.url.path.startswith(OPEN_PATHS):
            return True
        cookie = request.cookies.get(TOKEN_COOKIE, "")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), self._options.token.encode()):
            return True
        return hmac.compare_digest(cookie.encode(), self._digest.encode())

    def _limited(self, receive: Receive) -> Receive:
        """Count the bytes that come in."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._options.largest_body:
                raise HTTPException(413, self._too_large())
            return message

        return counted

    def _too_large(self) -> str:
        return f"requests are limited to {self._options.largest_body:,} bytes"


def _ask_for_token(request: Request) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": "a token is needed"}, 401, {"WWW-Authenticate": "Bearer"})
    there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return RedirectResponse(f"/login?next={quote(there, safe='')}", 303)


def _host_name(host: str) -> str:
    """Return a Host header without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def int_or(text: str | None, otherwise: int) -> int:
    """Return a whole number; `otherwise` where there is none."""
    return int(text[:18]) if text and text.isascii() and text.isdigit() else otherwise
