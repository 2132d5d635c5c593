"""Arguments and options shared by several commands, and how the fields of options become flags (`with_flags`)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeGuard, get_args, get_origin, get_type_hints

import typer

from anyburl.base.checking import OBJECT_IDENTITY, THREADS, Option, Options, options_of
from anyburl.learning.options import ENGINES
from anyburl.ranking.options import PANEL

Complete = Callable[[str], list[str]]


class Command(NamedTuple):
    """A command of the command line; `cli/app.py` lists them."""

    name: str
    example: str  # the end of its help
    run: Callable[..., None]
    takes_long: bool  # its progress is logged


def command(name: str, example: str, *, takes_long: bool = False) -> Callable[[Callable[..., None]], Command]:
    """Make a function a command: NAME_command, in a file that `cli/app.py` names.

    Its parameters become arguments and flags (`with_flags`), its docstring the help.
    """
    return lambda run: Command(name, example, run, takes_long)


def one_of(*values: str) -> Complete:
    """Return a completion by some values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def complete_data(incomplete: str) -> list[str]:
    """Return the names of data sets that can be loaded, in lower case if they are typed so; else the shell offers
    files.
    """
    from anyburl.cli.datasets import loadable_names

    spelled = [name if name.startswith(incomplete) else name.lower() for name in loadable_names()]
    return [name for name in spelled if name.startswith(incomplete)]


Rules = Annotated[
    str,
    typer.Argument(
        metavar="RULES", help="A run folder, a .parquet file, or a text file in AnyBURL's or AMIE's format."
    ),
]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print a single JSON object to standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress, notes and the summary.")]
Threads = Annotated[int | None, typer.Option(min=1, help=THREADS)]
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

WithScores = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Scores of another model, for --aggregation hybrid: Parquet with entity, relation, asked, candidate, "
        "score.",
        rich_help_panel=PANEL,
    ),
]
NamesOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Readable names: lines of label, tab, name; or RDF with rdfs:label."),
]


class Without:
    """Fields of an options class that are no flags of a command: `Annotated[AskingOptions, Without("escaped")]`."""

    def __init__(self, *names: str) -> None:
        self.names = names


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters are flags, for Typer.

    A parameter annotated with an options class stands for the flags of its fields, in its place; those of a field that
    holds options itself are flags, too. The command gets an object of the class, made of the flags that were given. If
    it is annotated with `Annotated[dict[str, Any], CLASS]`, it gets these alone, as keywords.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    made = {parameter.name: taken for parameter in own if (taken := _Taken.by(parameter.annotation))}
    if not made:
        return command
    parameters = [inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for parameter in own:
        parameters += made[parameter.name].flags() if parameter.name in made else [parameter]

    def run(ctx: typer.Context, **values: Any) -> None:
        given = {name for name in values if is_given(ctx, name)}
        command(**{name: taken.make(values, given) for name, taken in made.items()}, **values)

    return with_parameters(run, command, parameters)


def with_parameters(
    run: Callable[..., None], command: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Return `run`, which calls `command`, under its name and with these parameters."""
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    return run


def flag_of(kind: type[Any], name: str) -> Any:
    """Return the flag of one field, for a command that takes it apart from the others."""
    return _flag(options_of(kind)[name])


class _Taken:
    """An options class that a command takes: its flags, and how they become an object."""

    def __init__(self, kind: type[Any], left_out: Sequence[str] = (), *, as_keywords: bool = False) -> None:
        self._kind, self._left_out, self._as_keywords = kind, left_out, as_keywords

    @staticmethod
    def by(annotation: Any) -> _Taken | None:
        """Return what a parameter takes if it is annotated with an options class."""
        kind, *more = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
        if _are_options(kind):
            return _Taken(kind, [name for without in more for name in without.names])
        return _Taken(more[0], as_keywords=True) if more and _are_options(more[0]) else None

    def _fields(self) -> Iterator[tuple[Field[Any], Any]]:
        """Yield the fields that are flags, or options with flags, with their types."""
        hints = get_type_hints(self._kind, include_extras=True)
        for field in fields(self._kind):
            option, hint = field.metadata.get("option"), hints[field.name]
            is_flag = get_origin(hint) is Annotated if option is None else option.flag is not None
            if field.name not in self._left_out and (is_flag or _are_options(hint)):
                yield field, hint

    def flags(self) -> Iterator[inspect.Parameter]:
        """Yield the flags as the parameters of a command."""
        for field, hint in self._fields():
            option, default = field.metadata.get("option"), field.default
            if _are_options(hint):
                yield from _Taken(hint, self._left_out).flags()
                continue
            if option is not None and (option.parse is not None or option.repeated):
                hint, default = (list[str] | None, None) if option.repeated else (str | None, _written(default))
            if option is not None:
                hint = Annotated[hint, _flag(option)]
            yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)

    def make(self, values: dict[str, Any], given: set[str]) -> Any:
        """Return the options, taking the values of their flags; what was not given keeps its default."""
        keywords: dict[str, Any] = {}
        for field, hint in self._fields():
            if _are_options(hint):
                keywords[field.name] = _Taken(hint, self._left_out).make(values, given)
                continue
            value, option = values.pop(field.name), field.metadata.get("option")
            if field.name in given:
                keywords[field.name] = option.parse(value) if option is not None and option.parse else value
        return keywords if self._as_keywords else self._kind(**keywords)


def _are_options(kind: Any) -> TypeGuard[type[Options]]:
    return isinstance(kind, type) and issubclass(kind, Options)


def _flag(option: Option) -> Any:
    names = [option.flag] if option.flag else []
    complete = one_of(*option.choices) if option.choices else None
    about = {"metavar": option.metavar, "rich_help_panel": option.panel, "autocompletion": complete, **option.shown}
    return typer.Option(*names, help=f"{option.help} {option.flag_help}".rstrip(), **about)


def _written(default: Any) -> str | None:
    """Return a default as the text of a flag: several values with commas between them."""
    if isinstance(default, tuple):
        default = ",".join(value if isinstance(value, str) else f"{value:g}" for value in default)
    return default if isinstance(default, str) and default else None


def is_given(ctx: typer.Context, name: str) -> bool:
    """Return whether a flag or an argument was given, on the command line or in the environment."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
