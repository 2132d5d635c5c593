"""A PostgreSQL of our own on loopback, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ACCOUNT = "postgres"
"""Whom the server runs as where the tests run as root: it refuses that."""


PATIENCE = "600"  # seconds: pg_ctl's own 60 are too few where every core has other work


class PostgresServer:
    """A server in a temporary folder; it listens on loopback and on a Unix socket in the folder.

    `tester` needs no password on the socket; over the network, everyone does.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self.folder = programs, folder
        self._as_user = ["runuser", "-u", ACCOUNT, "--"] if os.geteuid() == 0 else []
        self.port = _free_port()

    @property
    def local(self) -> str:
        """The address by which `tester` needs no password."""
        return f"postgresql://tester@/postgres?host={self.folder}&port={self.port}"

    def start(self) -> None:
        data = str(self.folder / "data")
        if self._as_user:
            shutil.chown(self.folder, ACCOUNT)
        ways = ["--auth-local=trust", "--auth-host=scram-sha-256"]
        self.call("initdb", "-D", data, "-U", "tester", *ways, "-E", "UTF8", "--locale=C", "--no-sync")
        options = f"-k {self.folder} -c listen_addresses=127.0.0.1 -c port={self.port} -c fsync=off"
        self.call("pg_ctl", "-D", data, "-o", options, "-l", str(self.folder / "log"), "-w", "-t", PATIENCE, "start")

    def stop(self) -> None:
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def psql(self, script: str) -> str:
        """Run a script and return what it prints."""
        options = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-A", "-t"]
        return self.call("psql", *options, "-d", self.local, told=script)

    def call(self, program: str, *arguments: str, told: str = "") -> str:
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


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server as long as the context lasts; skip the test where there is none."""
    programs = _programs()
    if programs is None or shutil.which("psql") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser")
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        server = PostgresServer(programs, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _programs() -> Path | None:
    """Return the folder of the newest server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
