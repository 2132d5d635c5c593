"""Addresses of graphs that are no files of triples, without any secret.

sparql:http://host/path, https://host/sparql       a SPARQL endpoint
postgresql://host/database#table                   PostgreSQL, as libpq takes it, and a table
duckdb:path#table, sqlite:path#table               a database in a file, and a table
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from anyburl.errors import DataError
from anyburl.reading import check_utf8
from anyburl.triples.entries import SUFFIXES

ENDPOINT, POSTGRESQL, DUCKDB, SQLITE = "sparql", "postgresql", "duckdb", "sqlite"
SECRETS = {
    ENDPOINT: re.compile(r".*(pass|secret|token|key$)", re.IGNORECASE),
    POSTGRESQL: re.compile(r"(ssl)?password|.*secret"),  # passfile and sslkey name files
}
ADDRESS = re.compile(r"(sparql|https?|postgres|postgresql|duckdb|sqlite):", re.IGNORECASE)
FROM_ENVIRONMENT = {
    ENDPOINT: "set ANYBURL_SPARQL_USER and ANYBURL_SPARQL_PASSWORD, or ANYBURL_SPARQL_TOKEN",
    POSTGRESQL: "set PGPASSWORD or write it to ~/.pgpass",
}


@dataclass(frozen=True)
class Address:
    """Where a graph is: `place` is what a driver or an HTTP client takes, `table` is there for databases only."""

    kind: str
    place: str
    table: str | None = None

    @property
    def text(self) -> str:
        """The address as a run folder remembers it."""
        prefix = "" if self.kind == POSTGRESQL else f"{self.kind}:"
        return f"{prefix}{self.place}{f'#{self.table}' if self.table else ''}"

    @property
    def name(self) -> str:
        """A short name for people."""
        if self.table:
            return self.table
        if self.kind in (DUCKDB, SQLITE):
            return Path(self.place).stem
        parts = urlsplit(self.place)
        return parts.path.strip("/") or "postgresql" if self.kind == POSTGRESQL else parts.netloc

    @property
    def file(self) -> Path | None:
        """The file that holds the database, if it is one."""
        return Path(self.place) if self.kind in (DUCKDB, SQLITE) else None


def find_address(data: str | os.PathLike[str]) -> Address | None:
    """Return what DATA stands for if it is an address; None if it is a name or a path."""
    found = ADDRESS.match(data) if isinstance(data, str) else None
    if not isinstance(data, str) or found is None:
        return None
    kind = found[1].lower()
    if kind in (DUCKDB, SQLITE):
        return _in_file(kind, data[found.end() :])
    if kind in ("postgres", POSTGRESQL):
        return _postgresql(data[found.end() :])
    return _endpoint(data[found.end() :] if kind == ENDPOINT else data)


def _in_file(kind: str, rest: str) -> Address:
    path, _, table = rest.partition("#")
    path = path.removeprefix("///")  # as other tools write it
    if not path or "\0" in path:
        raise DataError(f"expected {kind}:PATH or {kind}:PATH#TABLE, got {rest!r}")
    return Address(kind, str(check_utf8(Path(os.path.abspath(os.path.expanduser(path))), DataError)), table or None)


def _postgresql(rest: str) -> Address:
    place, _, table = rest.partition("#")
    _refuse_secrets(POSTGRESQL, f"postgresql:{place}")
    if not place.startswith("//"):
        raise DataError(f"expected postgresql://HOST/DATABASE#TABLE, got {f'postgresql:{rest}'!r}")
    return Address(POSTGRESQL, f"postgresql:{place}", table or None)


def _endpoint(url: str) -> Address:
    _refuse_secrets(ENDPOINT, url)
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise DataError(f"expected the address of a SPARQL endpoint, such as sparql:http://HOST/PATH, got {url!r}")
    if parts.path.lower().endswith(SUFFIXES):
        raise DataError(
            f"{url} looks like a file: download it and pass the file; for an endpoint, use sparql:http://..."
        )
    return Address(ENDPOINT, url.partition("#")[0])


def _refuse_secrets(kind: str, url: str) -> None:
    """Refuse an address with a password or the like in it, without repeating it."""
    try:
        parts = urlsplit(url)
        has_password = parts.password is not None or (kind == ENDPOINT and parts.username is not None)
    except ValueError:
        raise DataError("invalid address: expected a scheme, a host and a path") from None
    if has_password or any(SECRETS[kind].match(name) for name, _ in parse_qsl(parts.query)):
        raise DataError(
            "an address must not contain a password, since it is kept in run folders and in the shell history: "
            f"remove it and {FROM_ENVIRONMENT[kind]}"
        )
