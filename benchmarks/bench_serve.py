"""The explorer under readers: the first page after starting the command, then many readers at once.

python benchmarks/bench_serve.py RUN [--readers 50] [--seconds 20] [--think 1] [--addresses 4000] [--workers 1,2]
    [--before CHECKOUT]
python benchmarks/bench_serve.py RUN --hubs 10

A reader asks for a page or an answer of the API, reads it for `--think` seconds on average, and asks for the next.
There are `--addresses` of each kind: with many, few answers come out of the cache. The readers run beside the server
on the same cores. Each number of `--workers` is measured, after the code of another checkout, `--before`.

With `--hubs`, what is predicted about the entities with the most facts is opened instead: when the first predictions
come, and when all are there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars as pl

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
BEING_WRITTEN = "What the rules say is being written"  # says the page of rules after the start
FIRST_ONES = "These are the first predictions"  # says the page of a hub while others are looked for


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
    return (await whole_answer(reader))[0]


async def whole_answer(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Read one answer; return its status and its text."""
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
    text = await reader.readexactly(size)
    return int(head[9:12]), text.decode()


def largest_hubs(run: Path, n: int) -> list[tuple[str, int]]:
    """Return the entities with the most facts in train, and how many those are."""
    facts = open_prepared(run).dataset.train.to_polars()
    ends = pl.concat([facts.to_series(place).cast(pl.String).alias("entity") for place in (0, 2)])
    return [(str(label), int(count)) for label, count in ends.value_counts(sort=True).head(n).rows()]


async def open_hubs(port: int, hubs: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Open what is predicted about each hub, again until all of it is there."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    opened = []
    for label, n_facts in hubs:
        page = f"/entity?{urlencode({'label': label, 'view': 'predicted'})}"
        times, rows, started = list[float](), list[int](), time.perf_counter()
        while True:
            writer.write(f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            status, text = await whole_answer(reader)
            assert status == 200, page
            times.append(round(time.perf_counter() - started, 2))
            rows.append(text.count('class="row-title"'))
            if FIRST_ONES not in text:
                break
            await asyncio.sleep(0.1)
        opened.append(
            {
                "entity": label,
                "facts": n_facts,
                "first_page_seconds": times[0],
                "first_page_predictions": rows[0],
                "all_seconds": times[-1],
                "all_predictions": rows[-1],
            }
        )
    writer.close()
    return opened


def with_children(pid: int) -> list[int]:
    """Return a process and those that it started."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in map(int, started) for one in with_children(child))]


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process and its workers that is not mapped from files."""
    lines = [line for one in with_children(pid) for line in Path(f"/proc/{one}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))) / 1000


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process and its workers have used."""
    used = 0
    for one in with_children(pid):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


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


def wait_for_report(port: int) -> None:
    """Wait until the server has done what it does once after its start."""

    async def is_written() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /rules HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        _, text = await whole_answer(reader)
        writer.close()
        return BEING_WRITTEN not in text

    while not asyncio.run(is_written()):
        time.sleep(1)


@contextmanager
def served(run: Path, port: int, workers: int = 1, checkout: Path | None = None) -> Iterator[tuple[int, float]]:
    """Serve a run; yield the id of the process and the seconds until its first page."""
    with tempfile.TemporaryDirectory() as folder:
        reviews = Path(folder) / "reviews.jsonl"
        command = [sys.executable, "-m", "anyburl", "serve", str(run), "--port", str(port), "--reviews", str(reviews)]
        command += ["--workers", str(workers)] if workers > 1 else []
        path = {"PYTHONPATH": str(checkout / "src")} if checkout else {}
        started = time.perf_counter()
        process = subprocess.Popen([*command, "--quiet"], env={**os.environ, **path})
        try:
            yield process.pid, first_page(port, started)
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def own_copy(run: Path, checkout: Path | None) -> Iterator[Path]:
    """Yield the run or, for other code, a copy that it may prepare in its own format."""
    if checkout is None:
        yield run
        return
    with tempfile.TemporaryDirectory() as folder:
        yield shutil.copytree(run, Path(folder) / run.name, ignore=shutil.ignore_patterns("prepared"))


def measure(
    run: Path,
    pages: dict[str, list[str]],
    readers: int,
    seconds: float,
    think: float,
    port: int,
    workers: int = 1,
    checkout: Path | None = None,
) -> dict[str, Any]:
    """Serve a run, with this code or that of another checkout, read its pages, and report."""
    with own_copy(run, checkout) as copy, served(copy, port, workers, checkout) as (pid, first):
        wait_for_report(port)
        time.sleep(3 + workers)
        asking = Readers(port, pages, think)
        asyncio.run(asking.all(readers, 3))
        before, asking.took, used = memory_mb(pid), [], cpu_seconds(pid)
        asyncio.run(asking.all(readers, seconds))
        after, used = memory_mb(pid), cpu_seconds(pid) - used
    return {
        "run": run.name,
        "readers": readers,
        "think_seconds": think,
        "addresses": len(pages["ask"]),
        "workers": workers,
        "code": "before" if checkout else "this",
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
    parser.add_argument("--workers", default="1", help="numbers of processes, each measured")
    parser.add_argument("--before", type=Path, help="another checkout to measure first")
    parser.add_argument("--save", action="store_true", help="keep the result")
    parser.add_argument("--hubs", type=int, help="open what is predicted about that many hubs instead")
    given = parser.parse_args()
    if given.hubs:
        with served(given.run, given.port):
            wait_for_report(given.port)
            opened = asyncio.run(open_hubs(given.port, largest_hubs(given.run, given.hubs)))
        print(json.dumps(opened, indent=2))
        if given.save:
            save("serve-hubs", {"run": given.run.name, "hubs": opened})
        return
    pages = {kind: found[: given.addresses] for kind, found in addresses(given.run, seed=1).items()}
    versions: list[tuple[int, Path | None]] = [(1, given.before)] if given.before else []
    versions += [(int(n), None) for n in given.workers.split(",")]
    results = []
    for workers, checkout in versions:
        results.append(
            measure(given.run, pages, given.readers, given.seconds, given.think, given.port, workers, checkout)
        )
        print(json.dumps(results[-1], indent=2), flush=True)
    if given.save:
        save("serve" if given.think else "serve-without-pause", results)


if __name__ == "__main__":
    main()
