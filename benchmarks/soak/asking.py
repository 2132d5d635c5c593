"""Many questions to one reasoner, many page views on one server, many calls of agents: does memory grow?"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from anyburl import Reasoner, learn, load_dataset
from soak.processes import own_mb

STEPS = 10
PORT = 8765


def predict(data: Path, n_questions: int) -> dict[str, Any]:
    """Ask for objects and subjects of the test split again and again; return the memory after each tenth."""
    dataset = load_dataset(data)
    rules = learn(dataset, paths=20_000, max_cyclic=2, min_support=5, threads=1, seed=1)
    facts = dataset.test.to_polars().rows()
    memory = list[float]()
    with Reasoner(rules, dataset, threads=1) as reasoner:
        for step in range(STEPS + 1):
            for number in range(n_questions // STEPS if step else 1_000):
                subject, relation, found = facts[number % len(facts)]
                reasoner.predict(*((subject, relation, None) if number % 2 else (None, relation, found)))
            memory.append(round(own_mb(os.getpid()), 1))
    return {"data": data.name, "rules": len(rules), "questions": n_questions, "memory_mb": memory}


def serve(run: Path, n_requests: int) -> dict[str, Any]:
    """Read pages of every kind; return the memory of the server after each tenth."""
    from bench_serve import MIX, addresses, answer, first_page

    command = [sys.executable, "-m", "anyburl", "serve", str(run), "--port", str(PORT), "--threads", "1", "--quiet"]
    pages = [page for kind, found in addresses(run, seed=1).items() for page in found[: 25 * MIX[kind]]]

    async def read(n: int, first: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        for number in range(first, first + n):
            page = pages[number * 7919 % len(pages)]
            writer.write(f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
            assert await answer(reader) == 200, page
        writer.close()

    memory, process = list[float](), subprocess.Popen(command)
    try:
        first_page(PORT, 0.0)
        for step in range(STEPS + 1):
            n = n_requests // STEPS if step else len(pages)  # every page once, before the first look
            asyncio.run(read(n, step * n_requests))
            memory.append(round(own_mb(process.pid), 1))
    finally:
        process.terminate()
        process.wait()
    return {"data": run.name, "requests": n_requests, "pages": len(pages), "memory_mb": memory}


def agents(run: Path, n: int) -> dict[str, Any]:
    """Call the tools of `anyburl mcp` in turn over standard input and output, and watch the memory of its process."""
    from mcp import Client, StdioServerParameters

    with Reasoner.open(run) as reasoner:
        train = reasoner.dataset.train.to_polars().sample(200, seed=1, with_replacement=True).rows()
    program = (
        "import os, pathlib, sys; pathlib.Path(sys.argv.pop(1)).write_text(str(os.getpid())); "
        "from anyburl.cli.app import main; main()"
    )
    memory: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "pid"
        arguments = ["-c", program, str(told), "mcp", str(run), "--quiet"]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))

        async def conversation() -> int:
            failed = 0
            async with Client(server) as client:
                pid = int(told.read_text())
                for number in range(n):
                    subject, relation, object = train[number // 7 % len(train)]
                    fact = {"subject": subject, "relation": relation, "object": object}
                    calls: list[tuple[str, dict[str, Any]]] = [
                        ("describe_graph", {}),
                        ("search", {"text": subject[:6]}),
                        ("ask", {"subject": subject, "relation": relation, "top": 3}),
                        ("explain", fact),
                        ("check", {"facts": [[subject, relation, object]]}),
                        ("rules", {"relation": relation}),
                        ("complete", {"relation": relation, "top": 3}),
                    ]
                    failed += bool((await client.call_tool(*calls[number % 7])).is_error)
                    if number % (n // 10) == n // 20 or number == n - 1:
                        memory.append(round(own_mb(pid)))
            return failed

        failed = asyncio.run(conversation())
    return {"run": run.name, "calls": n, "failed": failed, "memory_mb": memory}
