"""What the system has run out of, told from an error and those that it came from."""

from __future__ import annotations

import errno

import pytest

from anyburl.cli.exhausted import NO_FILES, NO_MEMORY, exhausted
from anyburl.errors import DataError


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
