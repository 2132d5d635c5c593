"""Detects a process forked from one that has used Polars: its threads are gone, and it would wait for them forever."""

from __future__ import annotations

import os

from anyburl.errors import AnyburlError

_first_user: int | None = None  # the process that used Polars first


def check_not_forked() -> None:
    """Refuse to work in a forked process instead of waiting forever; called where data and rules are read."""
    global _first_user
    if _first_user is None:
        _first_user = os.getpid()
    elif _first_user != os.getpid():
        raise AnyburlError(
            "this process was forked from one that had used anyburl, and would wait forever: use threads, or start "
            'processes with multiprocessing.get_context("spawn")'
        )
