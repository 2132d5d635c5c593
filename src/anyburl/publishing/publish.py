"""From a file of facts to a plan of what would be sent, and from the plan to the deed."""

from __future__ import annotations

import os
from pathlib import Path

from anyburl.errors import DataError
from anyburl.publishing.endpoint import EndpointPlan
from anyburl.publishing.facts import read_facts
from anyburl.publishing.options import PublishOptions
from anyburl.publishing.table import TablePlan
from anyburl.triples.remote.addresses import ENDPOINT, find_address

Plan = EndpointPlan | TablePlan


def plan_publishing(facts: str | os.PathLike[str], destination: str, options: PublishOptions | None = None) -> Plan:
    """Read facts and say what would be sent where; nothing is before `write` is called.

    `facts` is a file that `anyburl complete` wrote, `destination` a SPARQL endpoint for updates, or a table.
    """
    address = find_address(destination)
    if address is None:
        raise DataError(
            f"expected the address of a SPARQL endpoint (sparql:http://HOST/PATH) or of a table "
            f"(postgresql://HOST/DB#TABLE, duckdb:PATH#TABLE, sqlite:PATH#TABLE), got {destination!r}"
        )
    found = read_facts(Path(facts).expanduser())
    kind = EndpointPlan if address.kind == ENDPOINT else TablePlan
    return kind(found, address, options or PublishOptions())
