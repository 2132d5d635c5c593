"""Addresses of SPARQL endpoints and databases, without any secret; credentials are kept in memory only.

sparql:http://host/path, https://host/sparql       a SPARQL endpoint
postgresql://host/database#table                   PostgreSQL, as libpq takes it, and a table
duckdb:path#table, sqlite:path#table               a database in a file, and a table
"""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from anyburl.base.errors import ADDRESS, MASK, DataError, has_secret, redacted_address, without_values
from anyburl.base.files import check_utf8
from anyburl.data.files import TRIPLE_SUFFIXES

ENDPOINT, POSTGRESQL, DUCKDB, SQLITE = "sparql", "postgresql", "duckdb", "sqlite"
FROM_ENVIRONMENT = {
    ENDPOINT: "set ANYBURL_SPARQL_USER and ANYBURL_SPARQL_PASSWORD, or ANYBURL_SPARQL_TOKEN",
    POSTGRESQL: "set PGPASSWORD or write it to ~/.pgpass",
}


@dataclass(frozen=True)
class Address:
    """An address: `location` for the driver or HTTP client, and the `table` of a database.

    Parameters of `location` may be secret: `text` (for files) and `shown` (for people) have them masked.
    """

    kind: str
    location: str
    table: str | None = None

    @property
    def text(self) -> str:
        """The address for files, with everything masked that may be a secret."""
        prefix = "" if self.kind == POSTGRESQL else f"{self.kind}:"
        return f"{prefix}{self.shown}{f'#{self.table}' if self.table else ''}"

    @property
    def shown(self) -> str:
        """The location for messages, with everything masked that may be a secret."""
        return self.location if self.file is not None else redacted_address(self.location)

    def hide(self, message: str) -> str:
        """Return a message with everything of the address masked that may be a secret."""
        return message if self.file is not None else without_values(message, self.location)

    @property
    def name(self) -> str:
        """A short name for people."""
        if self.table:
            return self.table
        if self.kind in (DUCKDB, SQLITE):
            return Path(self.location).stem
        parts = urlsplit(self.location)
        return parts.path.strip("/") or "postgresql" if self.kind == POSTGRESQL else parts.netloc

    @property
    def file(self) -> Path | None:
        """The file that holds the database, if it is one."""
        return Path(self.location) if self.kind in (DUCKDB, SQLITE) else None


def find_address(data: str | os.PathLike[str]) -> Address | None:
    """Return DATA as an address; None if it is a name or a path."""
    if not isinstance(data, str):
        return None
    match = ADDRESS.match(data)
    if match is None:
        if "://" in data:
            _refuse_secrets(data)
        return None
    kind = match[1].lower()
    if kind in (DUCKDB, SQLITE):
        return _in_file(kind, data[match.end() :])
    if kind in ("postgres", POSTGRESQL):
        return _postgresql(data[match.end() :])
    return _endpoint(data[match.end() :] if kind == ENDPOINT else data)


def _in_file(kind: str, rest: str) -> Address:
    _refuse_secrets(rest)
    path, _, table = rest.partition("#")
    path = path.removeprefix("///")  # as other tools write it
    if not path or "\0" in path:
        raise DataError(f"expected {kind}:PATH or {kind}:PATH#TABLE, got {rest!r}")
    return Address(kind, str(check_utf8(Path(os.path.abspath(os.path.expanduser(path))), DataError)), table or None)


def _postgresql(rest: str) -> Address:
    _refuse_secrets(f"postgresql:{rest}", POSTGRESQL)
    location, _, table = rest.partition("#")
    _check_host(f"postgresql:{location}")
    if not location.startswith("//"):
        raise DataError(f"expected postgresql://HOST/DATABASE#TABLE, got {redacted_address(f'postgresql:{rest}')!r}")
    return Address(POSTGRESQL, f"postgresql:{location}", table or None)


def _endpoint(url: str) -> Address:
    _refuse_secrets(url, ENDPOINT)
    _check_host(url)
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        shown = redacted_address(url)
        raise DataError(f"expected the address of a SPARQL endpoint, such as sparql:http://HOST/PATH, got {shown!r}")
    if parts.path.lower().endswith(TRIPLE_SUFFIXES):
        raise DataError(
            f"{redacted_address(url)} looks like a file: download it and pass the file; for an endpoint, use sparql:http://..."
        )
    return Address(ENDPOINT, url.partition("#")[0])


def _refuse_secrets(url: str, kind: str = "") -> None:
    """Raise an error for an address with a password or another secret, without repeating it."""
    if has_secret(url) or (kind == ENDPOINT and _has_user(url)):
        instead = f"remove it and {FROM_ENVIRONMENT[kind]}" if kind in FROM_ENVIRONMENT else "remove it"
        raise DataError(
            "an address must not contain a password, since it is kept in run folders and in the shell history: "
            f"{instead} (an @ in a path is written %40)"
        )


def _check_host(url: str) -> None:
    """Raise an error for an address without a valid host, or with masked parameters, without repeating it."""
    if MASK in url:
        raise DataError("this address was kept without its parameters, which may be secret: pass the whole address")
    try:
        hosts = urlsplit(url).netloc.rpartition("@")[2]
        for host in hosts.split(","):  # PostgreSQL takes several
            _ = urlsplit(f"//{host}").port
    except ValueError:
        raise DataError("invalid address: expected a scheme, a host and a path") from None


def _has_user(url: str) -> bool:
    with suppress(ValueError):
        return urlsplit(url).username is not None
    return False


USER, PASSWORD, TOKEN = (f"ANYBURL_SPARQL_{name}" for name in ("USER", "PASSWORD", "TOKEN"))

_given: dict[str, tuple[str, str]] = {}
_asking: set[str] = set()


def keep_credentials(location: str, user: str, password: str) -> None:
    """Remember a user name and a password until this process ends."""
    _given[_server(location)] = user, password


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


def postgresql_password(location: str) -> dict[str, str]:
    """Return the password that was kept; libpq reads the environment and ~/.pgpass itself."""
    return {"password": _given[_server(location)][1]} if _server(location) in _given else {}


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _server(location: str) -> str:
    parts = urlsplit(location)
    return f"{parts.scheme}://{parts.netloc}"
