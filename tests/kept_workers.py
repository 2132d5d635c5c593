"""Ray whose workers outlive the crews that they work for: to start one, with all that it imports, takes seconds."""

from __future__ import annotations

from itertools import count
from threading import Condition
from typing import Any


class KeptRay:
    """Stands for the module `ray` in `anyburl.base.cluster`: `kill` keeps a worker's process for the next worker.

    Tests that lose workers use Ray as it is.
    """

    def __init__(self, ray: Any) -> None:
        class Host:  # inside a function, so that it is sent by value: workers cannot import this file
            """A process that is one worker after the other."""

            def __init__(self) -> None:
                self._changed = Condition()
                self._number, self._worker = -1, None

            def become(self, number: int, kind: type, *arguments: Any) -> None:
                """Be that worker from now on."""
                self._worker = None
                try:
                    self._worker = kind(*arguments)
                finally:
                    with self._changed:
                        self._number = number
                        self._changed.notify_all()

            def call(self, number: int, name: str, *arguments: Any) -> Any:
                """Call a method of the worker of that number, once it is there."""
                with self._changed:
                    self._changed.wait_for(lambda: self._number >= number)
                return getattr(self._worker, name)(*arguments)

        self._ray, self._numbers = ray, count()
        self._idle: list[Any] = []
        self._make = ray.remote(num_cpus=0, max_concurrency=2, scheduling_strategy="SPREAD")(Host).remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ray, name)

    def remote(self, **options: Any) -> Any:
        """Return a decorator of workers, whose `remote` takes a process that is kept, or a new one."""

        def wrap(kind: type) -> Any:
            return _Start(lambda *arguments: _KeptWorker(self._host(), next(self._numbers), kind, arguments))

        return wrap

    def kill(self, worker: Any) -> None:
        """Let the process of a worker be used by others."""
        self._idle.append(worker._host)

    def _host(self) -> Any:
        return self._idle.pop() if self._idle else self._make()


class _Start:
    """Has `remote`, which takes arguments."""

    def __init__(self, call: Any) -> None:
        self.remote = call


class _KeptWorker:
    """A worker in a process that is kept: its methods have `remote`."""

    def __init__(self, host: Any, number: int, kind: type, arguments: tuple[Any, ...]) -> None:
        self._host, self._number = host, number
        host.become.remote(number, kind, *arguments)

    def __getattr__(self, name: str) -> Any:
        return _Start(lambda *arguments: self._host.call.remote(self._number, name, *arguments))
