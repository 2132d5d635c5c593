"""Access control: the Host header, tokens, the origin of writes, the size of bodies, and security headers.

Decisions use the ASGI scope, never `request.url`: clients choose that, since it is made from the Host header.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anyburl.tools.options import LOOPBACK, ServeOptions

TOKEN_COOKIE = "anyburl_token"
OPEN_PATH, OPEN_FOLDER = "/login", "/static/"
FOR_PROGRAMS = ("/api/", "/mcp")
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
AUTHORITY = re.compile(r"(?P<name>[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)
"""A host name or address, perhaps with a port; no path, query or user name."""


def token_digest(token: str) -> str:
    """Return the digest of the token for the cookie, which never holds the token itself."""
    return hashlib.sha256(f"anyburl explorer {token}".encode()).hexdigest()


class Guard:
    """ASGI middleware that refuses requests or passes them on, and adds security headers."""

    def __init__(self, app: ASGIApp, options: ServeOptions) -> None:
        self._app, self._options = app, options
        self._hosts = {*LOOPBACK, options.host.lower()}
        self._is_wide = options.host in ("0.0.0.0", "::")
        if self._is_wide:
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self._digest = None if options.token is None else token_digest(options.token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on; the headers are added either way."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": f"{scope['type']}.close"})
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
        if not self._is_our_host(headers):
            return PlainTextResponse("This host name is not served here.", 421)
        if request.method not in SAFE_METHODS and not self._is_our_origin(headers):
            return PlainTextResponse("Requests from other sites are refused.", 403)
        if int_or(headers.get("content-length"), 0) > self._options.largest_body:
            return PlainTextResponse(self._too_large(), 413)
        if not self._is_authorised(request):
            return _ask_for_token(request)
        return None

    def _is_our_host(self, headers: Headers) -> bool:
        """Whether the Host header names this server: another name that resolves to it is an attack (DNS rebinding)."""
        hosts = headers.getlist("host")
        name = host_name(hosts[0]) if len(hosts) == 1 else None
        return name is not None and (name in self._hosts or (self._is_wide and _is_address(name)))

    def _is_our_origin(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or origin_host(origin) == headers["host"].lower()

    def _is_authorised(self, request: Request) -> bool:
        path = path_of(request)
        if self._digest is None or self._options.token is None or path == OPEN_PATH or path.startswith(OPEN_FOLDER):
            return True
        cookie = request.cookies.get(TOKEN_COOKIE, "")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), self._options.token.encode()):
            return True
        return hmac.compare_digest(cookie.encode(), self._digest.encode())

    def _limited(self, receive: Receive) -> Receive:
        """Return `receive` with a limit on the bytes of the body."""
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
    if path_of(request).startswith(FOR_PROGRAMS):
        return JSONResponse({"error": "a token is needed"}, 401, {"WWW-Authenticate": "Bearer"})
    return RedirectResponse(f"{OPEN_PATH}?next={quote(address_of(request), safe='')}", 303)


def path_of(request: Request) -> str:
    """Return the decoded path, by which routes are chosen."""
    path: str = request.scope["path"]
    return path


def address_of(request: Request) -> str:
    """Return the path and the query, encoded as in an address of this site."""
    query = request.scope["query_string"].decode("latin-1")
    return quote(path_of(request)) + (f"?{query}" if query else "")


def host_name(host: str) -> str | None:
    """Return the name or address in a Host header, without brackets and port; None if it is not one."""
    match = AUTHORITY.fullmatch(host)
    return match["name"].strip("[]").lower() if match else None


def origin_host(origin: str) -> str | None:
    """Return the Host header that belongs to an origin; None if it is not the origin of a web page."""
    scheme, separator, authority = origin.lower().partition("://")
    is_web = scheme in ("http", "https") and separator and AUTHORITY.fullmatch(authority)
    return authority if is_web else None


def inside(address: str) -> str:
    """Return the address if it is on this site, otherwise that of the home page."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_path and not any(ord(sign) < 33 or ord(sign) == 127 for sign in address) else "/"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def int_or(text: str | None, otherwise: int) -> int:
    """Parse a whole number; return `otherwise` if it is not one."""
    return int(text[:18]) if text and text.isascii() and text.isdigit() else otherwise


# Forms hold a token that a cookie repeats; requests from other sites cannot know it.
COOKIE, FIELD = "anyburl_form", "form_token"
LONGEST_FORM, MOST_FIELDS = 200_000, 20


def form_token(request: Request) -> str:
    """Return the form token of a browser, a new one if it has none."""
    given = request.cookies.get(COOKIE, "")
    return given if len(given) == 43 and given.isascii() else secrets.token_urlsafe(32)


def set_form_token(response: Response, token: str) -> Response:
    """Set the cookie with the token that the page's forms hold."""
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return response


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise HTTPException(415, "expected a form")
    body = await request.body()
    try:
        pairs = parse_qsl(body[:LONGEST_FORM].decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(422, "cannot read this form") from error
    fields = dict(pairs)
    cookie = request.cookies.get(COOKIE, "")
    if not cookie or not hmac.compare_digest(fields.get(FIELD, "").encode(), cookie.encode()):
        raise HTTPException(403, "this form has expired: go back, reload the page and send it again")
    return fields
