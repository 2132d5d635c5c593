"""`serve_from_workers`: several processes answer requests to one port, over one memory-mapped run.

Python runs one thread of a process at a time, so one process uses little more than one core. Workers open the run
themselves: what is mapped is in memory once. They accept connections from one socket, whoever is free first. What takes
long and is needed once (the facts that wait for a verdict, the report) stays in the process that started them, and
workers ask for it. Verdicts are appended to one file under its lock by any of them, and all notice that it grew.
"""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.managers import BaseManager
from threading import Thread
from typing import Any

from anyburl.base.errors import RunError
from anyburl.base.machine import share_heaps
from anyburl.tools.options import ServeOptions
from anyburl.web.app import SECONDS_TO_END, create_app, serve
from anyburl.web.background import Background
from anyburl.web.explorer import Explorer

MOST_RESTARTS, SECONDS_STABLE = 3, 60.0
OpenExplorer = Callable[[Background], AbstractContextManager[Explorer]]
"""Opens the explorer of a worker. It is sent to another process, so it is a function of a module."""


class Shared(BaseManager):
    """What workers ask the process for that started them."""


def serve_from_workers(
    explorer: Explorer, open_explorer: OpenExplorer, options: ServeOptions, listener: socket.socket
) -> None:
    """Answer requests in `options.workers` processes until interrupted; `explorer` does what they share."""
    Shared.register("desk", callable=lambda: explorer.background.desk, exposed=("waiting", "possible_errors"))
    Shared.register("reporter", callable=lambda: explorer.background.reporter, exposed=("theory",))
    key = secrets.token_bytes(32)
    server = Shared(authkey=key).get_server()
    Thread(target=server.serve_forever, name="anyburl-shared", daemon=True).start()
    context = multiprocessing.get_context("spawn")  # a fork would inherit the locks of threads, but not the threads

    def start() -> SpawnProcess:
        given = (open_explorer, options, listener, server.address, key)
        process = context.Process(target=_work, args=given, name="anyburl-worker", daemon=True)
        process.start()
        return process

    workers = [start() for _ in range(options.workers)]
    try:
        _watch(workers, start)
    finally:
        _end(workers)
        explorer.close()


def _watch(workers: list[SpawnProcess], start: Callable[[], SpawnProcess]) -> None:
    """Replace workers that end, unless they keep on ending."""
    ended: list[float] = []
    while True:
        wait([worker.sentinel for worker in workers])
        for number, worker in enumerate(workers):
            if worker.is_alive():
                continue
            now = time.monotonic()
            ended = [*(moment for moment in ended if now - moment < SECONDS_STABLE), now]
            if len(ended) > MOST_RESTARTS:
                raise RunError(f"workers of the explorer keep on ending (the last with code {worker.exitcode})")
            workers[number] = start()


def _end(workers: list[SpawnProcess]) -> None:
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + SECONDS_TO_END + 1
    for worker in workers:
        worker.join(max(0.1, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()


def _work(
    open_explorer: OpenExplorer, options: ServeOptions, listener: socket.socket, address: Any, key: bytes
) -> None:
    """Be a worker, until the process that started it ends it, or is gone."""
    share_heaps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all: who started the workers ends them
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(0)

    Thread(target=follow, daemon=True).start()
    for name in ("desk", "reporter"):
        Shared.register(name)
    shared: Any = Shared(address, authkey=key)
    shared.connect()
    with open_explorer(Background(shared.desk(), shared.reporter())) as explorer:
        serve(create_app(explorer, options), options, listener)
