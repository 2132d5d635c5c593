"""What the system has run out of, told from an error and those that it came from."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from anyburl.base.errors import DataError
from anyburl.cli import events as module
from anyburl.cli.events import NO_FILES, NO_MEMORY, exhausted

LIMITED = """
import resource, sys
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + {more} * 1_000_000
resource.setrlimit(resource.RLIMIT_AS, (size, size))
from anyburl.cli.start import main
main()
"""


def caused_by(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.EMFILE, "x"), NO_FILES),
        (caused_by(DataError("damaged"), OSError(errno.ENFILE, "x")), NO_FILES),
        (RuntimeError("can't start new thread"), NO_MEMORY),
        (caused_by(RuntimeError("x"), MemoryError()), NO_MEMORY),
        (caused_by(DataError("refused"), MemoryError()), None),
        (ValueError("x"), None),
    ],
)
def test_what_is_short_is_told_from_the_causes(error: BaseException, expected: str | None) -> None:
    assert exhausted(error) == expected


def test_errors_that_caused_each_other_are_looked_at_once() -> None:
    first, second = ValueError("x"), KeyError("y")
    first.__cause__, second.__context__ = second, first
    assert exhausted(first) is None


def test_an_unexpected_error_where_no_memory_is_left_is_want_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST", 1 << 62)
    assert exhausted(NameError("half a library")) == NO_MEMORY
    for told in (DataError("x"), FileNotFoundError(errno.ENOENT, "x"), KeyboardInterrupt(), SystemExit(2)):
        assert exhausted(told) is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems limit memory in other ways")
@pytest.mark.parametrize("more", [4, 16, 40, 80, 140, 200])
def test_a_command_without_enough_memory_ends_with_a_sentence(more: int) -> None:
    command = [sys.executable, "-c", LIMITED.format(more=more), "rules", "nowhere"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "bug" not in ended.stderr
    by_a_library = "OpenBLAS error: Memory allocation still failed after 10 retries, giving up."
    lines = [line for line in ended.stderr.splitlines() if not line.startswith("<jemalloc>")]  # of Polars
    assert lines[-1] in (f"error: {NO_MEMORY}", by_a_library)
