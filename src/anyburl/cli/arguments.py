"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

OBJECT_IDENTITY = "Different terms of a rule stand for different entities."

Rules = Annotated[
    str, typer.Argument(metavar="RULES", help="A run folder, a .parquet file, or a text file in AnyBURL's format.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks, no summary.")]
Threads = Annotated[int | None, typer.Option(min=1, help="How many threads to use; all cores if left out.")]
Escaped = Annotated[
    bool, typer.Option("--escaped", help="Text carries labels that it could not carry otherwise as %28 and the like.")
]
ObjectIdentity = Annotated[bool, typer.Option(help=OBJECT_IDENTITY)]
At = Annotated[float | None, typer.Option(metavar="SECONDS", help="The run's snapshot after so many seconds.")]

# Every command takes these, so that scripts can pass them along; here they change nothing.
UnusedThreads = Annotated[int | None, typer.Option("--threads", hidden=True)]
UnusedSeed = Annotated[int | None, typer.Option("--seed", hidden=True)]
