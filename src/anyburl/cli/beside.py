"""Compiles kernels in another process while this one compiles others."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Any


class CompilingBeside:
    """Compiles the kernels of ranking and explanations in another process.

    Where kernels were compiled before, it does nothing. If the process fails, so does nothing else: what it did not
    compile is compiled here, when it is needed.
    """

    def __init__(self, n_relations: int) -> None:
        from anyburl._jit import is_compiled

        program = f"from anyburl.reasoning.warmup import warm_up; warm_up({n_relations}, explaining=True)"
        self._process: subprocess.Popen[bytes] | None = None
        if not is_compiled("kernel.answer"):
            silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            with suppress(OSError):
                self._process = subprocess.Popen([sys.executable, "-c", program], **silent)

    def __enter__(self) -> CompilingBeside:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self) -> None:
        """Wait until it is done."""
        if self._process is not None:
            self._process.wait()
