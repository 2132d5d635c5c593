"""Decides whether a command is about facts with times: by DATA, or by what its run folder holds.

A command and its version with times are one command on the command line: it has the flags of both, and calls the one
that its data or its run folder asks for. A flag of the other one is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import typer

from anyburl.base.errors import OptionError, UnknownDataError
from anyburl.base.files import at_home
from anyburl.cli.arguments import is_given, with_flags, with_parameters
from anyburl.cli.loading import download_data_argument
from anyburl.cli.notes import note_console
from anyburl.cli.temporal.asking import complete_at, evaluate_history, explain_at, predict_at
from anyburl.cli.temporal.examining import calibrate_history, examine_history, serve_history
from anyburl.cli.temporal.learning import learn_history, show_temporal_rules
from anyburl.data.options import IGNORED, ReadOptions

Command = Callable[..., None]

BY_DATA: Mapping[str, Command] = {"learn": learn_history, "doctor": examine_history}
"""The commands whose DATA tells."""
BY_RUN: Mapping[str, Command] = {
    "rules": show_temporal_rules,
    "evaluate": evaluate_history,
    "predict": predict_at,
    "explain": explain_at,
    "complete": complete_at,
    "calibrate": calibrate_history,
    "serve": serve_history,
}
"""The commands whose run folder tells."""


def with_times(name: str, command: Command) -> Command:
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
    """Return what tells: DATA, or the run folder."""
    if name in BY_DATA:
        return str(values["out"] if values.get("resume") else values["data"])
    return str(values["rules"] if "rules" in values else values["run"])


def _value(ctx: typer.Context, key: str, values: Mapping[str, Any], parameter: inspect.Parameter) -> Any:
    """Return the value of a flag: the one given, or the default of the version that is called."""
    default = parameter.default
    return values[key] if is_given(ctx, key) or default is inspect.Parameter.empty else default


def _has_times(name: str, subject: str, values: Mapping[str, Any]) -> bool:
    if name in BY_RUN or (name == "learn" and values.get("resume")):
        from anyburl.rules.files.run_folder import is_temporal_run

        return is_temporal_run(at_home(subject))
    if values.get("data") is None:
        return False
    from anyburl.temporal.facts import recognise_times

    with suppress(UnknownDataError):  # who loads it says so
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
