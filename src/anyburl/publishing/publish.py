"""Turns a file of facts into a plan, and the plan into writes."""

from __future__ import annotations

import os

import polars as pl

from anyburl.errors import DataError, quoted
from anyburl.publishing.endpoint import EndpointPlan
from anyburl.publishing.facts import check_facts, read_facts
from anyburl.publishing.options import PublishOptions
from anyburl.publishing.table import TablePlan
from anyburl.reading import at_home
from anyburl.triples.remote.addresses import ENDPOINT, find_address

Plan = EndpointPlan | TablePlan


def publish(
    facts: pl.DataFrame | str | os.PathLike[str], destination: str, options: PublishOptions | None = None
) -> int:
    """Send facts to a SPARQL endpoint or a table, and return how many were written.

    `plan_publishing` shows beforehand what would be sent. A table gets all facts that are not in it, or none; an
    endpoint gets them in batches, which can be sent again without duplicating facts.
    """
    return plan_publishing(facts, destination, options).write()


def plan_publishing(
    facts: pl.DataFrame | str | os.PathLike[str], destination: str, options: PublishOptions | None = None
) -> Plan:
    """Read facts and return a plan of what would be sent where; nothing is sent until its `write` is called.

    `facts` is a frame from `Reasoner.complete` or a file that `anyburl complete` wrote. `destination` is the address of
    a SPARQL endpoint for updates (sparql:http://host/path) or of a table (postgresql://host/db#t, duckdb:path#t,
    sqlite:path#t).
    """
    address = find_address(destination)
    if address is None:
        raise DataError(
            f"expected the address of a SPARQL endpoint (sparql:http://HOST/PATH) or of a table "
            f"(postgresql://HOST/DB#TABLE, duckdb:PATH#TABLE, sqlite:PATH#TABLE), got {quoted(destination)}"
        )
    found = check_facts(facts) if isinstance(facts, pl.DataFrame) else read_facts(at_home(facts))
    kind = EndpointPlan if address.kind == ENDPOINT else TablePlan
    return kind(found, address, options or PublishOptions())
