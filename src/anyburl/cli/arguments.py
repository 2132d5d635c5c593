"""Arguments and options shared by several commands.

Options that several commands share, as the fields of a dataclass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from anyburl.cli.shell_completion import complete_data, one_of
from anyburl.learning.options import ENGINES
from anyburl.ranking.options import AGGREGATIONS, BLOCK_CHOICES

OBJECT_IDENTITY = "Require different terms of a rule to stand for different entities."

Rules = Annotated[
    str,
    typer.Argument(
        metavar="RULES", help="A run folder, a .parquet file, or a text file in AnyBURL's or AMIE's format."
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print a single JSON object to standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress, notes and the summary.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Number of threads. Defaults to one per core.")]
Escaped = Annotated[
    bool, typer.Option("--escaped", help="Escape special characters in the labels of text files, for example as %28.")
]
ObjectIdentity = Annotated[bool, typer.Option(help=OBJECT_IDENTITY)]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="A data set name (see `anyburl datasets`), a folder with train, valid and test, a file, an index, or "
        "an address (see `anyburl learn --help`). Defaults to the data of the run folder.",
        autocompletion=complete_data,
    ),
]
At = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Use the run's snapshot taken after this many seconds.")
]

# Every command takes these, so that scripts can pass them along; here they change nothing.
UnusedThreads = Annotated[int | None, typer.Option("--threads", hidden=True)]
UnusedSeed = Annotated[int | None, typer.Option("--seed", hidden=True)]

Engine = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"The engine that answers questions: {' or '.join(ENGINES)}.",
        autocompletion=one_of(*ENGINES),
    ),
]
Address = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster to run on. Defaults to this machine.")
]

# How answers are ranked: the fields of RankOptions.
RANKING = "How answers are ranked"
Aggregation = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="How the rules behind an answer are combined: "
        + "; ".join(f"{kind.written} ({kind.help})" for kind in AGGREGATIONS)
        + ".",
        rich_help_panel=RANKING,
        autocompletion=one_of(*(kind.example for kind in AGGREGATIONS)),
    ),
]
Smoothing = Annotated[
    float,
    typer.Option(help="Count a rule as support / (predictions + SMOOTHING).", rich_help_panel=RANKING),
]
Weights = Annotated[
    str,
    typer.Option(
        metavar="TYPE=FACTOR,...",
        help="Factors on confidences, by rule type. AnyBURL-23 and PyClause use Ud=0.1,Z=0.01.",
        rich_help_panel=RANKING,
    ),
]
BlockConnected = Annotated[
    str,
    typer.Option(
        metavar="|".join(BLOCK_CHOICES),
        help="Leave out answers that any fact connects with the query's entity. auto does so if no valid triple "
        "joins connected entities.",
        rich_help_panel=RANKING,
        autocompletion=one_of(*BLOCK_CHOICES),
    ),
]
RankingIdentity = Annotated[bool, typer.Option(help=OBJECT_IDENTITY, rich_help_panel=RANKING)]
Fallback = Annotated[
    bool,
    typer.Option(
        "--fallback",
        help="Also rank answers that no rule predicts, by how well they fit the question. tuned always does.",
        rich_help_panel=RANKING,
    ),
]
WithScores = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Scores of another model, for --aggregation hybrid: Parquet with entity, relation, asked, candidate, "
        "score.",
        rich_help_panel=RANKING,
    ),
]
NamesOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Readable names: lines of label, tab, name; or RDF with rdfs:label."),
]


def with_flags(
    kind: type[Any], argument: str, left_out: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of `kind` as flags to a command, but for some; it takes them together as one argument."""
    hints = get_type_hints(kind, include_extras=True)
    flags = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(kind)
        if field.name not in left_out
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [*(parameter for parameter in own if parameter.name != argument), *flags]

        def run(**given: Any) -> None:
            together = kind(**{flag.name: given.pop(flag.name) for flag in flags})
            command(**{argument: together}, **given)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorate
