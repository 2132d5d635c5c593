"""A PostgreSQL of our own, where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from exported import Fact

LABELS = ", ".join(f"encode(convert_to({name}, 'UTF8'), 'hex')" for name in ("subject", "relation", "object"))
FRESH = """
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS kb CASCADE;
DROP TABLE IF EXISTS predictions;
CREATE SCHEMA kb;
CREATE TABLE kb.triples (subject text, relation text, object text);
"""
QUERY = f"SELECT {LABELS}, confidence FROM predictions"
ACCOUNT = "postgres"
"""Whom the server runs as where the tests run as root: it refuses that."""

Rows = list[tuple[str, str, str, float]]


class Server:
    """A server on a Unix socket in a temporary folder; it listens on no port."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        self._as_user = ["runuser", "-u", ACCOUNT, "--"] if os.geteuid() == 0 else []

    def start(self) -> None:
        data = str(self._folder / "data")
        if self._as_user:
            shutil.chown(self._folder, ACCOUNT)
        self._call("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {self._folder} -c listen_addresses='' -c fsync=off"
        self._call("pg_ctl", "-D", data, "-o", options, "-l", str(self._folder / "log"), "-w", "start")

    def stop(self) -> None:
        self._call("pg_ctl", "-D", str(self._folder / "data"), "-m", "immediate", "stop")

    def ask(self, triples: Sequence[Fact], script: str) -> Rows:
        """Run a script on a fresh table kb.triples, and return the rows of the table predictions."""
        rows = ", ".join(f"({', '.join(map(_quoted, triple))})" for triple in triples)
        filled = f"INSERT INTO kb.triples VALUES {rows};\n" if rows else ""
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-A", "-t", "-h", str(self._folder)]
        told = f"{FRESH}{filled}{script}\n{QUERY};\n"
        printed = self._call("psql", *options, "-U", "tester", "-d", "postgres", told=told)
        return [_row(line) for line in printed.splitlines()]

    def _call(self, program: str, *arguments: str, told: str = "") -> str:
        command = [*self._as_user, str(self._programs / program), *arguments]
        # The server must not keep the pipe of its starter open, so its output goes to a file.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                command, input=told.encode(), stdout=output, stderr=subprocess.STDOUT, check=False, cwd="/"
            )
            output.seek(0)
            printed = output.read().decode()
        assert done.returncode == 0, f"{program}: {printed}"
        return printed


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _row(line: str) -> tuple[str, str, str, float]:
    *coded, confidence = line.split("|")
    subject, relation, object = (bytes.fromhex(label).decode() for label in coded)
    return subject, relation, object, float(confidence)


def _programs() -> Path | None:
    """Return the folder of the newest server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[Sequence[Fact], str], Rows]]:
    """Return what runs a script in PostgreSQL and reads the table of predictions."""
    programs = _programs()
    if programs is None or shutil.which("psql") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = Server(programs, Path(folder))
        server.start()
        try:
            yield server.ask
        finally:
            server.stop()
