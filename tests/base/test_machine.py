"""What a process may use."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT = """
import ctypes, pathlib, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from anyburl.base.machine import share_heaps

if sys.argv[1] == "shared":
    share_heaps()
for _ in range(3):
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda n: [np.ones(n + size) for size in range(300)], range(48)))
libc, path = ctypes.CDLL(None), pathlib.Path(tempfile.mkdtemp()) / "heaps.xml"
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(bytes(path), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
print(path.read_text().count("<heap nr="))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other heaps")
def test_threads_that_come_and_go_share_few_heaps() -> None:
    def heaps(how: str) -> int:
        return int(
            subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, check=True, text=True).stdout
        )

    assert heaps("shared") < heaps("own")
