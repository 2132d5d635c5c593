"""The explorer under readers: the first page after starting the command, then many readers at once.

python benchmarks/bench_serve.py RUN [--readers 50] [--seconds 20] [--think 1] [--addresses 4000]

A reader asks for a page or an answer of the API, reads it for `--think` seconds on average, and asks for the next.
There are `--addresses` of each kind: with many, few answers come out of the cache. The readers run beside the server
on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from anyburl.reasoning.prepared import open_prepared
from common import save

MIX = {
    "home": 4,
    "search": 10,
    "entity": 16,
    "relation": 4,
    "ask": 24,
    "why": 12,
    "rules": 6,
    "api/ask": 16,
    "api/why": 8,
}
N_RELATIONS = 40  # of those that rules are listed for


def addresses(run: Path, seed: int) -> dict[str, list[str]]:
    """Return addresses of each kind, about facts of the test split."""
    rng = random.Random(seed)
    facts = [
        row for row in open_prepared(run).dataset.test.to_polars().sample(4000, seed=seed, with_replacement=True).rows()
    ]
    relations = sorted({relation for _, relation, _ in facts})
    rng.shuffle(relations)
    triples = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in facts]
    asked = [{"subject": t["subject"], "relation": t["relation"]} for t in triples[::2]]
    asked += [{"relation": t["relation"], "object": t["object"]} for t in triples[1::2]]
    return {
        "home": ["/"],
        "search": [f"/api/search?{urlencode({'q': t['subject'][: rng.randint(3, 8)]})}" for t in triples],
        "entity": [f"/entity?{urlencode({'label': t['subject']})}" for t in triples],
        "relation": [f"/relation?{urlencode({'label': name})}" for name in relations[:N_RELATIONS]],
        "ask": [f"/ask?{urlencode(question)}" for question in asked],
        "why": [f"/why?{urlencode(t)}" for t in triples],
        "rules": [f"/rules?{urlencode({'relation': name})}" for name in relations[:N_RELATIONS]],
        "api/ask": [f"/api/ask?{urlencode(question)}" for question in asked],
        "api/why": [f"/api/why?{urlencode(t)}" for t in triples],
    }


class Readers:
    """Asks from many connections, and keeps how long each answer took."""

    def __init__(self, port: int, pages: dict[str, list[str]], think: float) -> None:
        self.port, self.pages, self.think = port, pages, think
        self.took: list[tuple[str, float, int]] = []

    async def read(self, number: int, end: float) -> None:
        """Be one reader."""
        rng = random.Random(number)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        kinds, weights = list(MIX), list(MIX.values())
        while time.perf_counter() < end:
            if self.think:
                await asyncio.sleep(rng.expovariate(1 / self.think))
            (kind,) = rng.choices(kinds, weights)
            started = time.perf_counter()
            writer.write(f"GET {rng.choice(self.pages[kind])} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
            status = await answer(reader)
            self.took.append((kind, time.perf_counter() - started, status))
        writer.close()

    async def all(self, n: int, seconds: float) -> None:
        """Be many readers at once."""
        end = time.perf_counter() + seconds
        await asyncio.gather(*(self.read(number, end) for number in range(n)))


async def answer(reader: asyncio.StreamReader) -> int:
    """Read one answer; return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    await reader.readexactly(size)
    return int(head[9:12])


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process that is not mapped from files."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))) / 1000


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def first_page(port: int, started: float) -> float:
    """Ask until there is an answer; return the seconds since the command was started."""

    async def ask() -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        status = await answer(reader)
        writer.close()
        return status

    while True:
        try:
            assert asyncio.run(ask()) == 200
            return time.perf_counter() - started
        except ConnectionError:
            time.sleep(0.02)


def measure(run: Path, readers: int, seconds: float, think: float, n: int, port: int) -> dict[str, Any]:
    """Serve a run, read `n` addresses of each kind, and report."""
    pages = {kind: found[:n] for kind, found in addresses(run, seed=1).items()}
    with tempfile.TemporaryDirectory() as folder:
        reviews = Path(folder) / "reviews.jsonl"
        command = [sys.executable, "-m", "anyburl", "serve", str(run), "--port", str(port), "--reviews", str(reviews)]
        started = time.perf_counter()
        process = subprocess.Popen([*command, "--quiet"])
        try:
            first = first_page(port, started)
            time.sleep(3)
            asking = Readers(port, pages, think)
            asyncio.run(asking.all(readers, 3))
            before, asking.took, used = memory_mb(process.pid), [], cpu_seconds(process.pid)
            asyncio.run(asking.all(readers, seconds))
            after, used = memory_mb(process.pid), cpu_seconds(process.pid) - used
        finally:
            process.terminate()
            process.wait(10)
    return {
        "run": run.name,
        "readers": readers,
        "think_seconds": think,
        "addresses": n,
        "first_page_seconds": round(first, 2),
        **summary(asking.took, seconds),
        "cpu_ms_per_answer": round(1000 * used / max(1, len(asking.took)), 2),
        "memory_mb_before": round(before),
        "memory_mb_after": round(after),
        "by_kind": {kind: summary([one for one in asking.took if one[0] == kind], seconds) for kind in MIX},
    }


def summary(took: list[tuple[str, float, int]], seconds: float) -> dict[str, Any]:
    """Return median and 95th percentile in milliseconds."""
    times = sorted(one[1] for one in took) or [0.0]
    return {
        "answers_per_second": round(len(took) / seconds, 1),
        "median_ms": round(1000 * statistics.median(times), 1),
        "p95_ms": round(1000 * times[int(0.95 * (len(times) - 1))], 1),
        "failed": sum(one[2] != 200 for one in took),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--addresses", type=int, default=4000)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--save", action="store_true", help="keep the result")
    given = parser.parse_args()
    result = measure(given.run, given.readers, given.seconds, given.think, given.addresses, given.port)
    print(json.dumps(result, indent=2))
    if given.save:
        save("serve", result)


if __name__ == "__main__":
    main()
