"""Reads whatever an address refers to, as labels."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from anyburl.triples.gathered import Gathered
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.addresses import ENDPOINT, Address
from anyburl.triples.remote.database import read_database
from anyburl.triples.remote.drivers import connected
from anyburl.triples.remote.endpoint import read_endpoint
from anyburl.triples.remote.protocol import send


def read_remote(address: Address, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the triples behind an address as labels, a piece at a time; what else is found goes to `gathered`."""
    if address.kind == ENDPOINT:
        return read_endpoint(address, options, gathered)
    return read_database(address, options)


def check_access(address: Address, timeout: float, *, writing: bool = False) -> None:
    """Refuse what a server refuses; `UnauthorizedError` if it asks for credentials. Nothing is changed."""
    if address.kind == ENDPOINT:
        field, text = ("update", "INSERT DATA {}") if writing else ("query", "ASK {}")
        send(address, field, text, timeout=timeout, read=lambda answer: None)
    else:
        with connected(address, timeout=timeout):
            pass
