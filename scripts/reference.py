"""The references of the command line and of options, made from commands and fields when the documentation is built.

MkDocs calls `on_page_markdown` for every page; on the page that holds MARKER, the marker is replaced. Griffe, which
reads the sources for the Python reference, calls `OptionTables`.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any

import griffe
import typer

from anyburl.base.checking import Options, options_of
from anyburl.cli.app import app

MARKER = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the reference where the marker is."""
    return markdown.replace(MARKER, commands_markdown()) if MARKER in markdown else markdown


class OptionTables(griffe.Extension):
    """Gives each class of options a table of its fields, and its signature their defaults."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Put the help of all options into the docstring of their class."""
        if "Options" not in map(str, cls.bases) or cls.docstring is None:
            return
        kind: type[Options] = getattr(import_module(cls.module.path), cls.name)
        for field in fields(kind):  # type: ignore[arg-type]
            if field.default is not MISSING:
                cls.members[field.name].value = repr(field.default)  # type: ignore[union-attr]
            elif field.default_factory is not MISSING:
                cls.members[field.name].value = repr(field.default_factory())  # type: ignore[union-attr]
        lines = [f"    {name}: {in_python(about.help)}" for name, about in options_of(kind).items()]
        cls.docstring.value += "\n".join(("\n\nParameters:", *lines))


def in_python(help: str) -> str:
    """Return the help of a flag with the names of other flags as they are in Python."""
    return re.sub("--([a-z-]*[a-z])", lambda flag: f"`{flag[1].replace('-', '_')}`", help)


def commands_markdown() -> str:
    """Return a section for each command."""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return "\n\n".join(command_markdown(name, command) for name, command in commands.items())


def command_markdown(name: str, command: Any) -> str:
    """Return what a command does, its usage, examples and options."""
    shown = [param for param in command.params if not param.hidden]
    arguments = [param for param in shown if not param.opts[0].startswith("-")]
    options = [param for param in shown if param.opts[0].startswith("-")]
    words = " ".join(_usage_word(param) for param in arguments)
    parts = [f"## anyburl {name}", str(command.help), f"```text\nanyburl {name} [OPTIONS] {words}".rstrip() + "\n```"]
    parts += [_example(line) for line in str(command.epilog or "").split("\n\n") if line]
    if arguments:
        parts.append(_table("argument", [(f"`{param.metavar or param.name}`", param) for param in arguments]))
    panels = dict.fromkeys(param.rich_help_panel or "Options" for param in options)
    for panel in panels:
        chosen = [param for param in options if (param.rich_help_panel or "Options") == panel]
        parts.append(_table(panel, [(_flags(param), param) for param in chosen]))
    return "\n\n".join(parts)


def _usage_word(param: Any) -> str:
    word = str(param.metavar or param.name.upper())
    return word if param.required else f"[{word}]"


def _example(line: str) -> str:
    """Return `Example:  anyburl ...` as a sentence and a block."""
    what, _, example = line.partition(":  ")
    return f"{what}:\n\n```text\n{example}\n```"


def _flags(param: Any) -> str:
    flags = ", ".join(f"`{flag}`" for flag in (*param.opts, *param.secondary_opts))
    return flags if param.is_flag else f"{flags} `{_metavar(param)}`"


def _metavar(param: Any) -> str:
    return str(param.metavar or param.name.upper()).replace("|", "\\|")


def _table(heading: str, rows: list[tuple[str, Any]]) -> str:
    lines = [f"| {heading} | | default |", "| --- | --- | --- |"]
    lines += [f"| {name} | {_cell(param.help or '')} | {_default(param)} |" for name, param in rows]
    return "\n".join(lines)


def _default(param: Any) -> str:
    if param.required:
        return "required"
    is_plain_flag = getattr(param, "is_flag", False) and not param.secondary_opts
    if isinstance(getattr(param, "show_default", None), str):
        return f"`{param.show_default}`"
    if is_plain_flag or param.default in (None, ""):
        return ""
    if param.secondary_opts:
        return f"`{(param.opts if param.default else param.secondary_opts)[0]}`"
    return f"`{_cell(param.default)}`"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")
