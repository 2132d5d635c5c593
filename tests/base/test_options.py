"""An option is one field: flag, check, help, JSON, keys of kept results and documentation follow from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import MISSING, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import pytest
import typer
from typer.testing import CliRunner

from anyburl import InvalidOptionError, LearnOptions, RankOptions, ReadOptions
from anyburl.base.checking import Options, choice, flag, option, options_behind, options_of, parse_numbers, whole
from anyburl.cli.app import AnyburlGroup, app
from anyburl.cli.arguments import Without, with_flags
from anyburl.learning.options import EmbedOptions
from anyburl.ranking.options import MODEL, SCORES
from anyburl.reasoning.completion.options import CompleteOptions
from anyburl.reasoning.opening import tuning_options
from anyburl.tools.options import DoctorOptions, ExportOptions, PublishOptions, ServeOptions
from edited import with_line_added

KINDS: list[type[Any]] = [
    CompleteOptions,
    DoctorOptions,
    EmbedOptions,
    ExportOptions,
    LearnOptions,
    PublishOptions,
    RankOptions,
    ReadOptions,
    ServeOptions,
]
WITH_KEYWORDS = [CompleteOptions, DoctorOptions, EmbedOptions, ExportOptions, LearnOptions, RankOptions]


@dataclass(frozen=True, kw_only=True)
class MoreOptions(RankOptions):
    """Ranking with one more option: this field is everything that is written about it."""

    patience: int = option(3, whole, 1, 9, help="Rules to wait for.", metavar="N", panel="Waiting")


@dataclass(frozen=True, kw_only=True)
class AllOptions(Options):
    """Options that contain others, and one whose flag is written here."""

    ranking: MoreOptions = field(default=MoreOptions())
    colour: str = option("red", choice, ("red", "blue"), help="The colour")
    sizes: tuple[float, ...] = option(
        (1.0, 2.5), lambda name, value: value, help="Sizes.", parse=parse_numbers("sizes", "numbers")
    )
    labels: tuple[str, ...] = option(
        (), lambda name, value: value, help="A label.", flag="--label", parse=tuple, repeated=True
    )
    loud: bool = option(False, flag, help="Say more.", flag="--loud")
    unseen: int = option(1, whole, 0, help="Not for the command line.", flag=None)
    own: Annotated[int, typer.Option(help="Its own flag.")] = 7


def run(command: Any, *arguments: str, code: int = 0, **variables: str) -> Any:
    program = typer.Typer(cls=AnyburlGroup)
    program.callback()(lambda: None)
    program.command(name="ask")(with_flags(command))
    environment = {"COLUMNS": "120", "TERMINAL_WIDTH": "120", **variables}
    result = CliRunner().invoke(program, ["ask", *arguments], env=environment, prog_name="anyburl")
    assert result.exit_code == code, result.output
    return result


def made(kind: Any, *arguments: str, **variables: str) -> Any:
    """Return what a command gets that takes options of this kind."""
    found: list[Any] = []

    def command(options: Any) -> None:
        found.append(options)

    command.__annotations__["options"] = kind
    run(command, *arguments, **variables)
    return found[0]


def test_a_new_field_is_a_flag_with_its_default_and_help() -> None:
    assert made(MoreOptions) == MoreOptions()
    assert made(MoreOptions, "--patience", "4", "--smoothing", "2") == MoreOptions(patience=4, smoothing=2)

    def command(options: MoreOptions) -> None:
        raise AssertionError

    command.__annotations__["options"] = MoreOptions
    page = run(command, "--help").output
    panel = page.partition("─ Waiting ─")[2].partition("╰")[0]
    assert " ".join(panel.replace("│", " ").split()).endswith("--patience N Rules to wait for. [default: 3]")
    refused = run(command, "--patience", "10", code=2)
    assert refused.stderr == "error: --patience must be at most 9, got 10\n"


def test_a_new_field_is_checked_and_becomes_plain() -> None:
    with pytest.raises(InvalidOptionError, match=r"^patience must be at least 1, got 0$"):
        MoreOptions(patience=0)
    with pytest.raises(InvalidOptionError, match=r"^patience must be a whole number, got None$"):
        MoreOptions(patience=None)  # type: ignore[arg-type]
    assert json.loads(json.dumps(MoreOptions(patience=4).to_json())) == {**RankOptions().to_json(), "patience": 4}


def test_kept_results_depend_on_a_new_field_unless_it_says_otherwise() -> None:
    one, other = (tuning_options(MoreOptions(patience=patience), False, 0) for patience in (3, 4))
    assert (one["patience"], other["patience"]) == (3, 4)
    assert "patience" in options_behind(SCORES, MoreOptions())

    @dataclass(frozen=True, kw_only=True)
    class Free(RankOptions):
        patience: int = option(3, whole, 1, help="", no_effect_on=(MODEL,))

    assert "patience" not in tuning_options(Free(), False, 0)
    assert "patience" in options_behind(SCORES, Free())


def test_flags_become_values() -> None:
    assert made(AllOptions) == AllOptions()
    arguments = ["--patience", "5", "--colour", "blue", "--sizes", "3,4.5", "--label", "a", "--label", "b,c"]
    found = made(AllOptions, *arguments, "--loud", "--own", "8")
    ranking = MoreOptions(patience=5)
    assert found == AllOptions(ranking=ranking, colour="blue", sizes=(3.0, 4.5), labels=("a", "b,c"), loud=True, own=8)


def test_a_command_can_take_what_was_given_alone() -> None:
    assert made(Annotated[dict[str, Any], MoreOptions]) == {}
    assert made(Annotated[dict[str, Any], MoreOptions], "--patience", "3") == {"patience": 3}
    assert made(Annotated[dict[str, Any], ServeOptions], ANYBURL_TOKEN="from outside") == {"token": "from outside"}


def test_a_command_can_leave_fields_out() -> None:
    kind = Annotated[AllOptions, Without("patience", "own")]
    assert made(kind, "--smoothing", "1") == AllOptions(ranking=MoreOptions(smoothing=1))
    command = typer.main.get_command(app).commands["tune"]  # type: ignore[attr-defined]
    names = {param.name for param in command.params}
    assert {"smoothing", "threads"} < names
    assert not names & {"names", "aggregation", "escaped", "with_scores", "top_k", "unseen"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_defaults_pass_their_own_checks(kind: Any) -> None:
    for made in fields(kind):
        about = made.metadata.get("option")
        if about is not None and made.default not in (None, MISSING):
            assert about.check(made.name, made.default, *about.limits) == made.default, made.name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.__name__))
def test_every_option_says_what_it_is(kind: Any) -> None:
    assert options_of(kind)
    for name, about in options_of(kind).items():
        assert about.help.endswith("."), name


@pytest.mark.parametrize("kind", WITH_KEYWORDS, ids=lambda kind: str(kind.__name__))
def test_keywords_are_the_fields_of_the_options(kind: Any) -> None:
    """Type checkers need the names of keywords once more; here they are compared, in the same order."""
    keywords: Any = getattr(import_module(kind.__module__), kind.__name__.replace("Options", "Keywords"))
    hints = {name: hint for name, hint in get_type_hints(kind).items() if (kind, name) != (ExportOptions, "to")}
    assert get_type_hints(keywords) == hints
    assert list(keywords.__annotations__) == list(hints)
    assert keywords.__required_keys__ == frozenset()


@pytest.mark.parametrize(
    ("command", "kind"),
    [("learn", LearnOptions), ("learn", ReadOptions), ("evaluate", RankOptions), ("embed", EmbedOptions)],
)
def test_every_option_is_a_flag_with_its_default(command: str, kind: Any) -> None:
    params = {param.name: param for param in typer.main.get_command(app).commands[command].params}  # type: ignore[attr-defined]
    for made in fields(kind):
        shown = params[made.name].default
        if made.metadata["option"].parse is None:
            assert shown == made.default, made.name
        elif isinstance(made.default, tuple) and made.default:
            assert tuple(map(float, shown.split(","))) == made.default, made.name
        else:
            assert shown in (None, ()), made.name


LAST_FIELD = '    seed: int = option(0, whole, 0, help="Seed of all random numbers.", panel=SEARCH)\n'
NEW_FIELD = '    patience: int = option(3, whole, 1, 9, help="Rules to wait for.", panel=SEARCH)\n'
RUN = """
import json
from pathlib import Path
from typer.testing import CliRunner
from anyburl.cli.app import app

for arguments in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, arguments, prog_name="anyburl")
    options = Path("run/options.json")
    kept = json.loads(options.read_text("utf-8"))["options"]["patience"] if options.exists() else None
    print(json.dumps([done.exit_code, done.stdout, done.stderr, kept]))
"""
EDITED = with_line_added("anyburl.learning.options", LAST_FIELD, NEW_FIELD, RUN)


def test_a_line_in_the_source_is_all_that_a_new_option_takes(tmp_path: Path) -> None:
    """The line is added to `LearnOptions`: the command has the flag, the run remembers it, and resuming changes it."""
    learn = ["learn", "geo", "--paths", "1000", "--out", "run", "--quiet"]
    resume = ["learn", "--out", "run", "--resume", "--quiet", "--paths"]
    commands = [
        ["learn", "--help"],
        [*learn, "--patience", "10"],
        [*learn, "--patience", "4"],
        [*resume, "2000"],
        [*resume, "3000", "--patience", "5"],
    ]
    program = [sys.executable, "-c", EDITED, json.dumps(commands)]
    environment = {**os.environ, "COLUMNS": "120", "TERMINAL_WIDTH": "120"}
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    shown, refused, *learned = map(json.loads, done.stdout.splitlines())
    assert "Rules to wait for. [default: 3]" in " ".join(shown[1].split())
    assert refused[0::2] == [2, "error: --patience must be at most 9, got 10\n"]
    assert [(code, kept) for code, _, _, kept in learned] == [(0, 4), (0, 4), (0, 5)]
