"""What the system says about a process."""

from __future__ import annotations

import os
from pathlib import Path


def resident_mb(pid: int) -> float:
    """Return the memory that a process holds."""
    return _status_mb(pid, "VmRSS")


def own_mb(pid: int) -> float:
    """Return the memory that a process holds, without what is mapped from files."""
    return _status_mb(pid, "RssAnon", "RssShmem")


def _status_mb(pid: int, *names: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in names) / 1000


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def open_files(pid: int) -> int:
    """Return how many file descriptors a process holds."""
    return len(os.listdir(f"/proc/{pid}/fd"))
