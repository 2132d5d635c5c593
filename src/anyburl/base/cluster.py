"""Ray: a session, and workers that may fail or join later. The only file that imports Ray."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Any

from anyburl import __version__
from anyburl.base.errors import MissingExtraError, OptionError, RunError
from anyburl.base.machine import available_cores

SECONDS_TO_ANSWER = 10.0  # for the head of a cluster
SECONDS_TO_START = 300.0  # for the first worker; machines may have to be started
SECONDS_TO_FOLLOW = 60.0  # after the first worker, for the others
STARTS = 3  # of each worker, before giving up if none has ever started
POLL = 0.1  # seconds between two polls of the workers


def import_ray() -> Any:
    """Return Ray with its usage statistics turned off; raise an error that says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError('engine="ray"', "ray") from error
    return ray


def silence() -> None:
    """Turn off Ray's own output; has to be called before Ray is imported."""
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")


def _open_session(ray: Any, address: str | None, cores: int | None) -> bool:
    """Connect to the cluster at `address`, or start Ray on this machine; False if there is a session already."""
    if ray.is_initialized():
        return False
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        own = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            ray.init(address="local", num_cpus=cores or available_cores(), **own, **quiet)
        except Exception as error:  # Ray raises no narrower one where its processes do not come up in time
            raise RunError(f"cannot start Ray on this machine: {_last_line(error)}") from error
        return True
    _check_answers(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OptionError(f"address must be that of a running Ray cluster, got {address!r}: {reason}") from error
    return True


def _check_answers(address: str) -> None:
    """Raise an error if nothing listens at a host and port, which Ray would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal() or host in ("", "localhost", "127.0.0.1"):
        return  # such as `auto`; Ray takes this machine's own names for its address in the network
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS_TO_ANSWER).close()
    except OSError as error:
        reason = error.strerror or error
        raise OptionError(f"address must be that of a running Ray cluster, got {address!r}: {reason}") from error


class Crew:
    """One worker per core of a Ray cluster: objects of a class in processes of their own.

    `size` is their number; by default as many as the cluster has cores, also those that join later. `workers` are those
    ready for work, by number; no number is used twice.
    """

    def __init__(self, address: str | None, size: int | None) -> None:
        self._ray = import_ray()
        self._own_session = _open_session(self._ray, address, size)
        self._size = size
        self._starting: dict[int, tuple[Any, Any]] = {}
        self._make: Callable[[], Any] | None = None
        self._n_made = 0
        self._last_loss: BaseException | None = None
        self.workers: dict[int, Any] = {}

    def put(self, value: Any) -> Any:
        """Put a value into the object store, once per node; return a reference to it."""
        return self._ray.put(value)

    def get(self, reference: Any) -> Any:
        """Return a value of the object store: its arrays are mapped, not copied, and read-only."""
        return self._ray.get(reference)

    def start(self, kind: type, *arguments: Any) -> None:
        """Start the workers, objects of `kind` whose method `ready` returns their version, and wait for them."""
        remote = self._ray.remote(num_cpus=1, max_concurrency=2)(kind)  # 2: so that `stop` gets through
        self._make = lambda: remote.remote(*arguments)
        self.wait_for_workers()

    def wait_for_workers(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait for as many workers as the cluster has cores, but not for long after the first."""
        self.refresh()
        expected, n_before = min(self._target_size(), self._n_cores()), self._n_made
        started, first = time.monotonic(), None
        while (len(self.workers) < expected or not self.workers) and not stopped():
            now = time.monotonic()
            first = first or (now if self.workers else None)
            if first is not None and now - first > SECONDS_TO_FOLLOW:
                return
            if first is None and now - started > SECONDS_TO_START:
                raise RunError(
                    f"no Ray worker has started in {now - started:.0f} s: does the cluster have a free core?"
                )
            if first is None and self._n_made - n_before > STARTS * expected:
                raise RunError(f"cannot start Ray workers: {_last_line(self._last_loss)}")
            time.sleep(POLL)
            self.refresh()

    def refresh(self) -> int:
        """Start workers on free cores; return how many workers have become ready."""
        assert self._make is not None
        for _ in range(self._target_size() - len(self.workers) - len(self._starting)):
            worker = self._make()
            self._starting[self._n_made] = worker, worker.ready.remote()
            self._n_made += 1
        references = {ready: number for number, (_, ready) in self._starting.items()}
        done = self._ray.wait(list(references), num_returns=len(references), timeout=0)[0] if references else []
        return sum(self._take_in(references[reference]) for reference in done)

    def _take_in(self, number: int) -> bool:
        worker, ready = self._starting.pop(number)
        version = self._result(ready)
        if version is None:
            return False
        if version != __version__:
            raise RunError(f"this is anyburl {__version__}, but a node of the Ray cluster has {version}")
        self.workers[number] = worker
        return True

    def collect(self, calls: dict[Any, int], results: dict[int, Any], at_least: int | None = None) -> None:
        """Wait a moment for `calls` (reference to worker), for all or `at_least` this many, and move those that ended
        to `results` (by worker); lost workers are removed from `workers`.
        """
        done, _ = self._ray.wait(list(calls), num_returns=at_least or len(calls), timeout=POLL)
        for reference in done:
            result = self._result(reference)
            if result is None:
                self._ray.kill(self.workers.pop(calls[reference]))
            else:
                results[calls[reference]] = result
            del calls[reference]

    def _result(self, reference: Any) -> Any:
        """Return the result of a call, or None if its worker or node was lost; raise the worker's own errors."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError as loss:
            self._last_loss = loss
            return None

    def _n_cores(self) -> int:
        return int(self._ray.cluster_resources().get("CPU", 0))

    def _target_size(self) -> int:
        return self._size or self._n_cores()

    def close(self) -> None:
        """End the workers, and the session if it was started here."""
        for worker in [*self.workers.values(), *(worker for worker, _ in self._starting.values())]:
            self._ray.kill(worker)
        self.workers, self._starting = {}, {}
        if self._own_session:
            self._ray.shutdown()
            self._own_session = False


def _last_line(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
