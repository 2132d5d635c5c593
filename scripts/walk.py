"""Print the modules that a command passes, in the order in which they are first entered: python scripts/walk.py

`learn` and `predict` run on the built-in data set, once to import what they need and once traced. Compiled kernels are
called by the modules that are listed; they are not listed themselves.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from typer.main import get_command

from anyburl.cli.app import app

COMMANDS = get_command(app)  # made once: that passes the modules of all commands


def run(arguments: Sequence[str]) -> None:
    """Run a command without showing what it prints."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        COMMANDS(list(arguments), standalone_mode=False)


def walk(arguments: Sequence[str]) -> list[str]:
    """Return the modules of anyburl whose functions a command calls, in the order of their first call."""
    entered: dict[str, None] = {}

    def trace(frame: FrameType, event: str, _: object) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("anyburl."):
            entered.setdefault(name.removeprefix("anyburl."))

    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        run(arguments)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        learn = ["learn", "geo", "--paths", "20000", "--quiet", "--out"]
        predict = ["predict", str(Path(folder) / "1"), "France", "official_language", "?"]
        run([*learn, str(Path(folder) / "1")])
        run(predict)
        for name, modules in (("learn", walk([*learn, str(Path(folder) / "2")])), ("predict", walk(predict))):
            print(f"{name} passes {len(modules)} modules:\n  {' -> '.join(modules)}\n")


if __name__ == "__main__":
    main()
