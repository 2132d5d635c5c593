"""Fixtures that every stage's tests share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling

from anyburl.base.jit import is_compiled
from clock import TickingClock, install
from kernels import INTERPRETED, examples

# Interpreted kernels are slow and compiled ones pay their compilation in the first example: no deadlines. Examples are
# the same in every run, so that a failure is due to a change; with ANYBURL_RANDOM=1 they are new ones. Where it is
# enough that a test fails (scripts/mutation.py), nothing is shrunk.
settings.register_profile(
    "anyburl",
    deadline=None,
    max_examples=examples(100),
    derandomize=not os.environ.get("ANYBURL_RANDOM"),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("unshrunk", settings.get_profile("anyburl"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("anyburl")

SLOW_FILES = (
    "learning/test_engines_contract.py",
    "browser/test_browser_access.py",
    "docs/test_examples.py",
    "browser/test_browser_flows.py",
    "ranking/test_backends_contract.py",
    "docs/test_notebooks.py",
    "cli/test_cli_signals.py",
    "cli/test_cli_serve.py",
    "cli/test_cli_files.py",
    "learning/test_learner_complete.py",
    "golden/test_golden.py",
)
"""The files that take longest, most of it waiting for other processes."""


TESTS = Path(__file__).parent
COMPILE_KERNELS = TESTS.parent / "scripts" / "compile_kernels.py"


def pytest_configure(config: pytest.Config) -> None:
    """Compile kernels and test files before all tests are run by several workers: each would compile all of them."""
    starts_workers = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    runs_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
    if not (starts_workers and runs_all):
        return
    for programs in (_compile_kernels(), _compile_tests()):
        running = [subprocess.Popen([sys.executable, *program], stdout=subprocess.DEVNULL) for program in programs]
        for program in running:
            program.wait()


def _compile_kernels() -> list[list[str]]:
    """Return the programs that compile each half of the kernels; none if they are compiled."""
    if INTERPRETED or (is_compiled("kernel.harvest") and is_compiled("kernel.answer")):
        return []
    return [[str(COMPILE_KERNELS), half] for half in ("learning", "reasoning")]


def _compile_tests() -> list[list[str]]:
    """Return the programs that compile each half of the tests, with pytest's assertions; none if they are compiled."""
    if sys.dont_write_bytecode or any((TESTS / "web" / "__pycache__").glob("test_*.pyc")):
        return []
    folders = sorted(str(folder) for folder in TESTS.iterdir() if any(folder.rglob("test_*.py")))
    return [["-m", "pytest", "--collect-only", "-qq", "-n", "0", *folders[half::2]] for half in (0, 1)]


# What is collected stays: to look for garbage among it takes seconds. Later, looking for it as often as Python would by
# default takes a twentieth of the time of the tests.
gc.disable()
gc.set_threshold(50_000)


def pytest_collection_finish() -> None:
    """Look for garbage among what tests make."""
    gc.enable()
    gc.freeze()


class SharedServers(LoadFileScheduling):
    """Gives a file to one worker, and all files that drive a browser to the same one: they share what they look at."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return "tests/browser" if "browser/" in file else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Distribute tests by what they share, unless told otherwise."""
    return SharedServers(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with slow files: a worker has a file to itself, and one that is begun last would be waited for."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(SLOW_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


# Polars warns of what it may change; only `anyburl.base.polars_unstable` may use it (see pyproject.toml).
# Polars keeps the setting in the environment, so that programs which tests start would print the warnings.
pl.Config.warn_unstable(True)
os.environ.setdefault("PYTHONWARNINGS", "ignore:::anyburl.base.polars_unstable")

# Programs that tests start would compile all that they import, each of them, for half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Threads that train trees wait for each other: while they do, other processes may use the core.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


@pytest.fixture(scope="session", autouse=True)
def small_models() -> Iterator[None]:
    """Tune by two folds and small forests: more take several times as long, and are only a little better."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyburl.models.tuned.train.N_FOLDS", 2)
        for module in ("model", "train"):
            patch.setattr(f"anyburl.models.tuned.{module}.ROUNDS", 40)
            patch.setattr(f"anyburl.models.tuned.{module}.FEW_ROUNDS", 30)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_command_line() -> Iterator[None]:
    """Build the commands from their signatures once: Typer's runner would do it for every call, in a twentieth of a
    second.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def ticking_clock(monkeypatch: pytest.MonkeyPatch) -> TickingClock:
    """Let learning in this process go by a clock that ticks when it is looked at, a hundredth of a second at a time."""
    return install(monkeypatch)


def _shared() -> Path | None:
    """Find the folder with benchmark data and reference results, if this machine has it."""
    beside = Path(__file__).parents[2] / "shared"
    folder = Path(os.environ.get("ANYBURL_SHARED", beside))
    return folder if folder.is_dir() else None


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """Return the folder of a benchmark data set by name; the test is skipped where there is none."""

    def find(name: str) -> Path:
        shared = _shared()
        folder = shared / "data" / name if shared else None
        if folder is None or not folder.is_dir():
            pytest.skip(f"benchmark data set {name} is not on this machine (set ANYBURL_SHARED)")
        return folder

    return find


@pytest.fixture(scope="session")
def shared_peers() -> Path:
    """Return the folder with what other tools computed; the test is skipped where there is none."""
    shared = _shared()
    if shared is None or not (shared / "peers").is_dir():
        pytest.skip("results of other tools are not on this machine (set ANYBURL_SHARED)")
    return shared / "peers"
