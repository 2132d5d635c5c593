"""The command line: its commands, which of their versions runs, and its exit codes.

Exit codes: 0 done, 1 internal error, 2 wrong input or usage, 3 a check of `doctor --fail-on` found something, 130
interrupted. Wrong input is reported in one sentence. Commands import what they need when they run, so that `anyburl
--help` appears at once.

A command and its version on facts with times are one command on the command line: it has the flags of both, and calls
the one that its data or its run folder asks for. A flag of the other one is refused.
"""

from __future__ import annotations

import inspect
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from anyburl import __version__
from anyburl.base.errors import AnyburlError, InvalidOptionError, OptionError, UnknownDataError, quoted
from anyburl.base.files import at_home, is_text
from anyburl.cli.arguments import Command, is_given, with_flags, with_parameters
from anyburl.cli.events import exhausted, logged
from anyburl.cli.loading import download_data_argument
from anyburl.cli.notes import (
    STANDARD_OUTPUT,
    forget_interrupt,
    let_go_of_output,
    note_console,
    prepare_streams,
    print_error,
    raise_again,
)
from anyburl.cli.start import handle_signals, leave
from anyburl.cli.temporal_questions import complete_at, evaluate_history, explain_at, predict_at
from anyburl.cli.temporal_runs import (
    calibrate_history,
    examine_history,
    learn_history,
    serve_history,
    show_temporal_rules,
)
from anyburl.data.options import IGNORED, RECOGNISED, ReadOptions

Run = Callable[..., None]

BY_DATA: Mapping[str, Run] = {"learn": learn_history, "doctor": examine_history}
"""The commands whose DATA decides whether there are times."""
BY_RUN: Mapping[str, Run] = {
    "rules": show_temporal_rules,
    "evaluate": evaluate_history,
    "predict": predict_at,
    "explain": explain_at,
    "complete": complete_at,
    "calibrate": calibrate_history,
    "serve": serve_history,
}
"""The commands whose run folder decides that."""


def with_times(name: str, command: Run) -> Run:
    """Return a command that also takes facts with times or temporal rules, if there is such a version of it."""
    timed = BY_DATA.get(name) or BY_RUN.get(name)
    if timed is None:
        return command
    versions = {False: command, True: with_flags(timed)}
    parameters = {
        timed: dict(inspect.signature(version, eval_str=True).parameters) for timed, version in versions.items()
    }
    added = [parameter for key, parameter in parameters[True].items() if key not in parameters[False]]

    def run(ctx: typer.Context, **values: Any) -> None:
        subject = _subject(name, values)
        has_times = _has_times(name, subject, values)
        own, other = parameters[has_times], parameters[not has_times]
        for key in other:
            if key not in own and is_given(ctx, key):
                _refuse(key, subject, has_times=has_times)
        chosen = {key: _value(ctx, key, values, own[key]) for key in own if key != "ctx"}
        versions[has_times](**chosen, **({"ctx": ctx} if "ctx" in own else {}))

    return with_parameters(run, command, [*parameters[False].values(), *added])


def _subject(name: str, values: Mapping[str, Any]) -> str:
    """Return what decides whether there are times: DATA, or the run folder."""
    if name in BY_DATA:
        return str(values["out"] if values.get("resume") else values["data"])
    return str(values["rules"] if "rules" in values else values["run"])


def _value(ctx: typer.Context, key: str, values: Mapping[str, Any], parameter: inspect.Parameter) -> Any:
    """Return the value of a flag: the one given, or the default of the version that is called."""
    default = parameter.default
    return values[key] if is_given(ctx, key) or default is inspect.Parameter.empty else default


def _has_times(name: str, subject: str, values: Mapping[str, Any]) -> bool:
    if name in BY_RUN or (name == "learn" and values.get("resume")):
        from anyburl.rules.run_folder import is_temporal_run

        return is_temporal_run(at_home(subject))
    if values.get("data") is None:
        return False
    from anyburl.data.sources import recognise_times

    with suppress(UnknownDataError):  # reported when it is loaded
        download_data_argument(subject, note_console(quiet=values["quiet"]))
    time = values.get("time")
    reading = ReadOptions(
        time=None if time is None else tuple(time.split(",")),
        columns=None if values.get("columns") is None else tuple(values["columns"].split(",")),
        dump=values.get("dump"),
    )
    return recognise_times(subject, reading)


def _refuse(key: str, subject: str, *, has_times: bool) -> None:
    flag = "TIME" if key == "time" and not has_times else f"--{key.replace('_', '-')}"
    if has_times:
        raise OptionError(
            f"{flag} is for facts without times, and {subject} has times (--time {IGNORED} leaves them out)"
        )
    hint = ": a label with spaces needs quotes" if flag == "TIME" else ""
    raise OptionError(f"{flag} is for facts with times, and {subject} has none{hint}")


FEWEST_FILES = 16
INTERNAL_ERROR, WRONG_INPUT, INTERRUPTED = 1, 2, 130


class AnyburlGroup(TyperGroup):
    """The commands; turns what they raise into a sentence and an exit code."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; an output without a name would be taken for the current folder."""
        if "--out=" in args or ("--out", "") in pairwise(args):
            raise OptionError("--out must be a path, got an empty one: is a variable of the shell not set?")
        for argument in args:
            if not is_text(argument):
                raise OptionError(f"arguments must be UTF-8, got {argument!r}")
        return super().resolve_command(ctx, _with_column_of_times(args))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn exceptions into a sentence and an exit code."""
        try:
            if (sentence := _lacks_descriptors()) is not None:
                _fail(sentence, INTERNAL_ERROR, None)
            return super().invoke(ctx)
        except InvalidOptionError as error:
            _fail(error.worded(_flag), WRONG_INPUT, error)
        except AnyburlError as error:
            _fail_if_exhausted(error)
            _fail(str(error), WRONG_INPUT, error)
        except KeyboardInterrupt as interrupt:
            _fail("interrupted", INTERRUPTED, interrupt)
        except OSError as error:
            raise typer.Exit(_report(error)) from error
        except Exception as error:
            if _is_control(error):
                raise
            _fail_if_exhausted(error)
            if isinstance(error, UnicodeEncodeError) and not is_text(error.object):
                _fail(f"paths must be UTF-8, got {quoted(error.object)}", WRONG_INPUT, error)
            traceback.print_exc()
            _fail("this is a bug in anyburl: please report it with the traceback above", INTERNAL_ERROR, error)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            _fail_if_exhausted(error)
            _fail(f"Polars failed: {' '.join(str(error).split())[:300]}", INTERNAL_ERROR, error)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Parse the command line and run it; wrong usage is reported in one sentence, too."""
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except typer.Abort:
            print_error("interrupted")
            code = INTERRUPTED
        except OSError as error:  # of --help, for one, which is no command
            code = _report(error)
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            message = error.format_message().strip()
            if "unexpected extra argument" in message:
                message += ": a label with spaces needs quotes"
            print_error(f"{message}{'' if message.endswith(('.', '?')) else '.'} See `{_help_of(error)}`.")
            code = WRONG_INPUT
        if standalone_mode:
            sys.exit(code if isinstance(code, int) else 0)
        return code


def _lacks_descriptors() -> str | None:
    """Return a sentence if this process may open so few files that libraries would fail in ways of their own."""
    try:
        import resource
    except ImportError:  # the system has no such limit
        return None
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < FEWEST_FILES:
        return f"this process may open {allowed} files: allow it at least {FEWEST_FILES} (ulimit -n)"
    return None


COMMANDS = {
    "demo": "demo",
    "learn": "learn",
    "rules": "rules",
    "report": "export",
    "evaluate": "evaluate",
    "predict": "predict",
    "explain": "predict",
    "complete": "complete",
    "publish": "export",
    "serve": "serve",
    "mcp": "serve",
    "prepare": "models",
    "distil": "rule_sets",
    "tune": "models",
    "embed": "models",
    "calibrate": "models",
    "check": "complete",
    "rescore": "rule_sets",
    "diff": "rule_sets",
    "convert": "rule_sets",
    "export": "export",
    "datasets": "datasets",
    "doctor": "datasets",
    "index": "datasets",
    "plot": "learn",
}
"""The commands in the order of `--help`, and the file of `cli` that has each."""


def command_line(names: Collection[str] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands."""
    made = typer.Typer(
        name="anyburl",
        cls=AnyburlGroup,
        help="Learn rules from a knowledge graph, then predict and explain facts with them.",
        epilog="Start here:  anyburl demo\n\nYour own data:  anyburl learn DATA --out RUN, then anyburl evaluate RUN",
        context_settings={"help_option_names": ["--help", "-h"]},
        pretty_exceptions_enable=False,
    )
    made.callback(invoke_without_command=True)(_start)
    for name in names:
        command: Command = getattr(import_module(f"anyburl.cli.{COMMANDS[name]}"), f"{name}_command")
        run = with_times(name, with_flags(command.run))
        run = logged(name, run) if command.takes_long else run
        made.command(name=name, epilog=command.example)(run)
    return made


@cache
def __getattr__(name: str) -> typer.Typer:
    """Return `app`, which has all commands. It is made when it is used: to run one command, no other is needed."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return command_line()


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"anyburl {__version__}")
        raise typer.Exit


def _start(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())
        raise typer.Exit


def main() -> None:
    """Run the command line: the entry point `anyburl`."""
    prepare_streams()
    handle_signals(leave)
    warnings.filterwarnings("ignore", "Polars binary is missing")  # out of memory: reported in one sentence
    named = sys.argv[1:2]
    command = typer.main.get_command(command_line(named) if COMMANDS.keys() & named else __getattr__("app"))
    sys.unraisablehook = raise_again
    handle_signals(signal.default_int_handler)
    try:
        command(prog_name="anyburl")
    except KeyboardInterrupt:  # before Typer has come to the point where it would catch it
        leave(signal.SIGINT, None)
    finally:  # the command has ended: what is left to do is to free memory
        handle_signals(leave)
        forget_interrupt()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()


def _with_column_of_times(args: list[str]) -> list[str]:
    """Return arguments in which --time without a column says that the column is to be found."""
    following = [*args[1:], "--"]
    completed = [
        [argument, RECOGNISED] if argument == "--time" and next_one.startswith("-") else [argument]
        for argument, next_one in zip(args, following, strict=True)
    ]
    return [argument for part in completed for argument in part]


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _fail(sentence: str, code: int, cause: BaseException | None) -> None:
    print_error(sentence)
    raise typer.Exit(code) from cause


def _fail_if_exhausted(error: BaseException) -> None:
    if (sentence := exhausted(error)) is not None:
        _fail(sentence, INTERNAL_ERROR, error)


def _report(error: OSError) -> int:
    """Say what the system refused, and return the exit code; a reader of our output that left early is no error."""
    if isinstance(error, BrokenPipeError):
        let_go_of_output()
        return 0
    if (sentence := exhausted(error)) is not None:
        print_error(sentence)
        return INTERNAL_ERROR
    if error.filename == STANDARD_OUTPUT:
        let_go_of_output()
    print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return WRONG_INPUT


def _is_control(error: Exception) -> bool:
    """Return whether Typer raised it to end the command, or for wrong usage."""
    return isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message")


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path if context else 'anyburl'} --help"
