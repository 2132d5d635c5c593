"""Standard output and standard error, however they are found: closed, on a full disk, on a terminal that is gone."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

OUTPUT, ERROR = 1, 2
STANDARD_OUTPUT = "standard output"


class Results(io.FileIO):
    """Standard output: an error says that this is what cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


class Remarks(io.FileIO):
    """Standard error: remarks that cannot be written end no command, and are dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes, if that is possible."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Let standard output and standard error take any text; a closed one leads nowhere.

    Otherwise a file that is opened later would take its number, and a library's messages would end up in that file.
    """
    _occupy()
    sys.stdout = _prepared(sys.stdout, OUTPUT, Results)
    sys.stderr = _prepared(sys.stderr, ERROR, Remarks)


def let_go_of_output() -> None:
    """Nobody can have our output: what is still buffered must not fail again when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, OUTPUT)
    os.close(nowhere)


def _occupy() -> None:
    """Open what is closed of the first three descriptors."""
    for number in range(ERROR + 1):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _prepared(stream: Any, number: int, kind: type[io.FileIO]) -> TextIO:
    if stream is not None and (sys.platform == "win32" or stream.fileno() != number):
        stream.reconfigure(errors="backslashreplace")
        return stream  # type: ignore[no-any-return]
    file = io.BufferedWriter(kind(number, "w", closefd=False))
    by_line = stream is not None and stream.line_buffering
    encoding = "utf-8" if stream is None else stream.encoding
    return io.TextIOWrapper(file, encoding, "backslashreplace", line_buffering=by_line)
