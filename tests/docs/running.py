"""Running blocks of code as a reader would, one page after the other in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from anyburl.cli.app import app
from docs.pages import Block

SHELL_SIGNS = {"||", "|", ">", "<", "&&", ";", "2>"}


class Reader:
    """Reads one page: Python blocks share their names, console blocks a folder (the current one)."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""

    def run(self, block: Block) -> None:
        """Run a block and remember what it prints."""
        self.printed = self._run_python(block) if block.language == "python" else self._run_console(block)

    def check_output(self, block: Block) -> None:
        """Check that every line shown was printed, in order; ... stands for anything."""
        rest = [_plain(line) for line in self.printed.splitlines()]
        for line in filter(None, map(_plain, block.code.splitlines())):
            if line == "...":
                continue
            assert line in rest, f"{block.place}: not printed, or not in this order: {line}\n{self.printed}"
            rest = rest[rest.index(line) + 1 :]

    def _run_python(self, block: Block) -> str:
        # on its own line, so that a traceback names the line of the page
        code = compile("\n" * block.line + block.code, block.page, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        return out.getvalue()

    def _run_console(self, block: Block) -> str:
        commands = _commands(block.code)
        return "".join(run_here(words) if (words := _own(command)) else _run_shell(command) for command in commands)


def _plain(line: str) -> str:
    return " ".join(line.split())


def _commands(code: str) -> list[str]:
    """Return the commands of a block; one may go on over several lines, or have a document in it."""
    if "<<" in code:
        return [code]
    lines = code.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _own(command: str) -> list[str]:
    """Return the words of a command of ours that needs no shell; it may end in > FILE."""
    words = shlex.split(command, comments=True) if "<<" not in command else []
    arguments = words[:-2] if words[-2:-1] == [">"] else words
    return words if words[:1] == ["anyburl"] and not SHELL_SIGNS & {*arguments} else []


def run_here(words: list[str]) -> str:
    """Run a command of ours in this process: a new one would spend a second on imports."""
    if words[-2:-1] == [">"]:
        Path(words[-1]).write_text(run_here(words[:-2]), "utf-8")
        return ""
    environment = {"COLUMNS": "120", "NO_COLOR": "1"}
    result = CliRunner().invoke(app, words[1:], env=environment, prog_name="anyburl")
    assert result.exit_code == 0, f"{shlex.join(words)}\n{result.stdout}\n{result.stderr}"
    return str(result.stdout)


def _run_shell(command: str) -> str:
    """Run anything else with bash, where `anyburl` is this package."""
    programs = Path("../bin").resolve()
    programs.mkdir(exist_ok=True)
    ours = programs / "anyburl"
    ours.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m anyburl "$@"\n')
    ours.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "120"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
