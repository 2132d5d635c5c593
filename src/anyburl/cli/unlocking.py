"""Prompts for a user name and password when a server wants them and the environment has none."""

from __future__ import annotations

import getpass
import sys
from urllib.parse import urlsplit

from anyburl.errors import CredentialsError, OptionError, UnauthorizedError
from anyburl.triples.read_options import ReadOptions


def unlock(data: str, timeout: float = ReadOptions.timeout, *, writing: bool = False) -> None:
    """Ask for what opens the server behind DATA, if it is one; without a terminal, the environment must do."""
    from anyburl.triples.remote.addresses import ENDPOINT, find_address
    from anyburl.triples.remote.credentials import keep_credentials
    from anyburl.triples.remote.read import check_access

    address = find_address(data)
    if address is None or address.file is not None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    try:
        check_access(address, timeout, writing=writing)
    except CredentialsError:
        raise
    except UnauthorizedError:
        host = urlsplit(address.place).netloc
        user = _asked(f"user name for {host}: ") if address.kind == ENDPOINT else ""
        keep_credentials(address.place, user, getpass.getpass(f"password for {user or host}: "))


def _asked(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline().strip()
    if not answer:
        raise OptionError("no user name entered")
    return answer
