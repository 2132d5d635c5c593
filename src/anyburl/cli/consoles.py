"""Where commands write: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.text import Text

from anyburl.cli.events import tell


class PlainConsole(Console):
    """A console that takes text as it is (labels may look like markup), and leaves a closed pipe to the caller."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, quiet=quiet, width=width, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Rich would end the program with code 1."""
        raise BrokenPipeError

    def say(self, text: str, style: str = "") -> None:
        """Print a line; only the terminal breaks it. Remarks go to the log of the command, too."""
        if self.stderr:
            tell("warning" if style == "yellow" else "note", message=text)
        self.print(Text(text, style=style), soft_wrap=True)


def result_console(*, quiet: bool = False, least_width: int | None = None) -> PlainConsole:
    """Return the console of standard output; where that is no terminal, lines may be as long as they need."""
    console = PlainConsole(quiet=quiet)
    if least_width is not None and not console.is_terminal:
        return PlainConsole(quiet=quiet, width=max(least_width, 80))
    return console


def print_whole(renderable: RenderableType) -> None:
    """Print a result; where standard output is no terminal, no line is broken."""
    console = PlainConsole()
    if not console.is_terminal:
        wide = PlainConsole(width=100_000)
        console.width = max(80, Measurement.get(wide, wide.options, renderable).maximum)
    console.print(renderable)


def note_console(*, quiet: bool = False) -> PlainConsole:
    """Return the console of standard error: progress and remarks."""
    return PlainConsole(stderr=True, quiet=quiet)


def print_error(sentence: str) -> None:
    """Say what was wrong."""
    PlainConsole(stderr=True).print(Text.assemble(("error: ", "bold red"), sentence), soft_wrap=True)


def print_json(result: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Print one JSON object, or a list of them, on standard output."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()
