"""Sends facts to a SPARQL endpoint, in batches of updates."""

from __future__ import annotations

import polars as pl

from anyburl.errors import DataError
from anyburl.publishing.options import Progress, PublishOptions
from anyburl.rdf_terms import is_blank_node, rdf_term
from anyburl.triples.frames import COLUMNS
from anyburl.triples.remote.addresses import Address
from anyburl.triples.remote.protocol import send

N_SHOWN = 5


class EndpointPlan:
    """What would be sent to an endpoint. An update is done or not, and to send it again changes nothing."""

    def __init__(self, facts: pl.DataFrame, address: Address, options: PublishOptions) -> None:
        self.address, self._options = address, options
        terms = [_terms(facts[name], is_object=name == "object") for name in COLUMNS]
        self._statements = [f"{' '.join(fact)} ." for fact in zip(*terms, strict=True) if "" not in fact]
        self.n_facts = len(self._statements)
        self.n_left_out = facts.height - self.n_facts
        if not self.n_facts:
            raise DataError("nothing to send: every fact has a blank node, which an update cannot name")
        self._updates = [
            _update(self._statements[start : start + options.batch_size], options.graph)
            for start in range(0, self.n_facts, options.batch_size)
        ]

    @property
    def told(self) -> list[str]:
        """What would be done, in lines for people."""
        place = f"the graph <{self._options.graph}>" if self._options.graph else "the default graph"
        n_bytes = sum(len(update.encode()) for update in self._updates)
        lines = [f"{self.n_facts:,} facts into {place} of {self.address.shown}"]
        lines.append(f"in {len(self._updates):,} updates, {n_bytes / 1e6:,.2f} MB, which begin with")
        lines += [f"    {statement}" for statement in self._statements[:N_SHOWN]]
        if self.n_left_out:
            lines.append(f"left out: {self.n_left_out:,} facts with a blank node, which an update cannot name")
        return lines

    def write(self, progress: Progress = lambda n_facts: None) -> int:
        """Send everything; return how many facts are in. A failure says how many updates were done before."""
        for number, update in enumerate(self._updates):
            try:
                send(self.address, "update", update, timeout=self._options.timeout, read=lambda answer: None)
            except DataError as error:
                n_in = number * self._options.batch_size
                raise type(error)(
                    f"{error}; {number:,} of {len(self._updates):,} updates went through ({n_in:,} facts): send the "
                    "file again, no fact is written twice"
                ) from error
            progress(min(self._options.batch_size, self.n_facts - number * self._options.batch_size))
        return self.n_facts


def _terms(labels: pl.Series, *, is_object: bool) -> list[str]:
    """Return labels as terms, blank nodes as nothing: in an update they would be new ones."""
    known = {label: "" if is_blank_node(label) else rdf_term(label, is_object=is_object) for label in labels.unique()}
    return [known[label] for label in labels]


def _update(statements: list[str], graph: str | None) -> str:
    lines = "\n".join(statements)
    return f"INSERT DATA {{ GRAPH <{graph}> {{\n{lines}\n}} }}" if graph else f"INSERT DATA {{\n{lines}\n}}"
