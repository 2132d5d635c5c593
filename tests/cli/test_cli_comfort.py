"""What makes the shell comfortable: completion, suggestions, colours, widths, extras that are named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anyburl.data import write_triples


def asked_by_bash(text: str) -> dict[str, str]:
    """What bash puts into the environment to ask what may follow this text."""
    place = len(text.split(" ")) - 1
    return {"_ANYBURL_COMPLETE": "complete_bash", "COMP_WORDS": text, "COMP_CWORD": str(place)}


def complete(run: Any, text: str, **variables: str) -> list[str]:
    """What bash offers after this text and a Tab."""
    found = run(env={**asked_by_bash(text), **variables})
    assert found.stderr == ""
    return str(found.stdout).split()


def test_the_program_answers_the_shell() -> None:
    program = [sys.executable, "-c", "from anyburl.cli.app import main; main()"]
    environment = {**os.environ, **asked_by_bash("anyburl ev")}
    found = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, encoding="utf-8")
    assert (found.stdout.split(), found.stderr) == (["evaluate"], "")


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("anyburl ev", ["evaluate"]),
        ("anyburl learn geo --max-r", ["--max-rules"]),
        ("anyburl learn geo --policy w", ["weighted"]),
        ("anyburl evaluate runs/geo --aggregation noisy", ["noisy-or", "noisy-or-top:5"]),
        ("anyburl datasets g", ["get"]),
        ("anyburl learn ge", ["geo"]),
        ("anyburl learn ./ge", []),
    ],
)
def test_the_shell_completes_commands_options_and_choices(run: Any, text: str, offered: list[str]) -> None:
    assert complete(run, text) == offered


def test_the_shell_completes_data_sets_of_ones_own(run: Any, tmp_path: Path) -> None:
    (tmp_path / "UMLS").mkdir()
    write_triples([("ed", "speaks", "dutch")], tmp_path / "UMLS" / "train.txt")
    assert complete(run, "anyburl evaluate runs/x --data u", ANYBURL_DATA=str(tmp_path)) == ["umls"]


SIGNS = {"bash": "complete -o default -F", "zsh": "#compdef anyburl", "fish": "complete --command anyburl"}


@pytest.mark.parametrize("shell", SIGNS)
def test_completion_can_be_installed(run: Any, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may be started by a program that is no shell."""
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    assert SIGNS[shell] in run("--show-completion").stdout


def test_a_mistyped_run_folder_is_answered_with_one_like_it(run: Any, geo_run: Path) -> None:
    for command in ("rules", "evaluate"):
        wrong = run(command, geo_run.with_name("goe"), code=2)
        assert wrong.stderr.endswith(f"did you mean {str(geo_run)!r}?\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "France", "offical_language", "?"], "did you mean 'official_language'"),
        (["predict", "Frnace", "official_language", "?"], "did you mean 'France'"),
        (["explain", "France", "capital", "Pariss"], "did you mean 'Paris'"),
        (["rules", "--relation", "capitol"], "did you mean 'capital'"),
    ],
)
def test_a_mistyped_label_is_answered_with_those_like_it(
    run: Any, geo_run: Path, arguments: list[str], sentence: str
) -> None:
    command, *rest = arguments
    assert sentence in run(command, geo_run, *rest, code=2).stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("no_color", "is_coloured"), [("", True), ("1", False)])
def test_colours_respect_no_color(no_color: str, is_coloured: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm-256color"}
    for name in ("FORCE_COLOR", "COLORTERM"):
        environment.pop(name, None)
    subprocess.run([sys.executable, "-m", "anyburl", "lern"], stderr=theirs, env=environment, check=False)
    os.close(theirs)
    shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "No such command" in shown
    assert ("\x1b[1;31m" in shown) == is_coloured


def test_piped_tables_are_as_wide_as_they_need_and_have_no_colours(run: Any, geo_run: Path) -> None:
    lines = run("rules", geo_run, "--type", "Uc", "--top", 50).stdout.splitlines()
    assert max(map(len, lines)) > 80
    assert not any("\x1b" in line for line in lines)
    assert sum(" <= " in line for line in lines) == 50
