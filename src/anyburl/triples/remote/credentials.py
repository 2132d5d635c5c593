"""User names and passwords, from the environment or a prompt, kept in memory only."""

from __future__ import annotations

import base64
import os
from urllib.parse import urlsplit

from anyburl.errors import DataError

USER, PASSWORD, TOKEN = (f"ANYBURL_SPARQL_{name}" for name in ("USER", "PASSWORD", "TOKEN"))

_given: dict[str, tuple[str, str]] = {}
_asking: set[str] = set()


def keep_credentials(place: str, user: str, password: str) -> None:
    """Remember what someone was asked for, as long as this process lasts."""
    _given[_server(place)] = user, password


def note_asking(url: str) -> None:
    """Remember that a server has asked for credentials: from now on it gets them at once."""
    _asking.add(_server(url))


def authorization(url: str) -> str | None:
    """Return the header that opens an endpoint, if it has asked and there is anything to open it with."""
    if _server(url) not in _asking:
        return None
    if _server(url) in _given:
        return _basic(*_given[_server(url)])
    if token := os.environ.get(TOKEN, "").strip():
        if not (token.isascii() and token.isprintable()):
            raise DataError(f"{TOKEN} is no token: expected one line of ASCII characters")
        return f"Bearer {token}"
    user = os.environ.get(USER)
    return _basic(user, os.environ.get(PASSWORD, "")) if user else None


def postgresql_password(place: str) -> dict[str, str]:
    """Return what someone was asked for; the environment and ~/.pgpass are libpq's business."""
    return {"password": _given[_server(place)][1]} if _server(place) in _given else {}


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _server(place: str) -> str:
    parts = urlsplit(place)
    return f"{parts.scheme}://{parts.netloc}"
