"""One heavy question does not stop the others, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from anyburl.web.site import BusyError, Lane, PageCache, tagged_response


def test_a_lane_refuses_when_too_many_wait() -> None:
    lane, gate = Lane("test", 1, 1, 10), threading.Event()

    async def crowd() -> list[Any]:
        first = [asyncio.ensure_future(lane.run(gate.wait)) for _ in range(2)]
        await asyncio.sleep(0.05)
        try:
            with pytest.raises(BusyError, match="too many readers"):
                await lane.run(gate.wait)
        finally:
            gate.set()
        return await asyncio.gather(*first)

    assert asyncio.run(crowd()) == [True, True]
    lane.close()


def test_a_lane_gives_up_after_its_time_and_goes_on() -> None:
    lane, gate = Lane("test", 2, 1, 0.5), threading.Event()

    async def ask() -> int:
        with pytest.raises(BusyError, match="longer than"):
            await lane.run(gate.wait)
        return await lane.run(lambda: 7)

    assert asyncio.run(ask()) == 7
    gate.set()
    lane.close()


def test_what_takes_too_long_counts_until_its_thread_is_done() -> None:
    lane, gate, ran = Lane("test", 1, 1, 0.05), threading.Event(), []

    async def ask() -> int:
        for work in (gate.wait, lambda: ran.append("though nobody waits")):
            with pytest.raises(BusyError, match="longer than"):
                await lane.run(work)
        for _ in range(5):
            with pytest.raises(BusyError, match="too many readers"):
                await lane.run(gate.wait)
        assert lane._pool._work_queue.qsize() == 1
        gate.set()
        while lane._under_way:
            await asyncio.sleep(0.01)
        lane._seconds = 60.0
        return await lane.run(lambda: 7)

    try:
        assert asyncio.run(ask()) == 7
    finally:
        gate.set()
        lane.close()
    assert not ran


def test_a_slow_question_is_answered_with_a_friendly_page(serve: Any, explorer: Any) -> None:
    client, gate = serve(seconds=1.0), threading.Event()  # on a busy machine, a page takes a while
    explorer.rule_list.choose = lambda choice: gate.wait()
    try:
        answered = client.get("/rules?length=1")
        assert answered.status_code == 503
        assert int(answered.headers["retry-after"]) > 0
        assert "Busy right now" in answered.text
        assert client.get("/api/rules").status_code == 503
        assert client.get("/entity?label=France").status_code == 200
    finally:
        gate.set()


def test_heavy_questions_do_not_stop_the_others(serve: Any, explorer: Any) -> None:
    client, gate, found = serve(), threading.Event(), explorer.rule_list.choose
    client.get("/search?q=France")

    def wait_and_choose(choice: Any) -> Any:
        gate.wait(20)
        return found(choice)

    explorer.rule_list.choose = wait_and_choose
    with ThreadPoolExecutor(8) as readers:
        heavy = [readers.submit(client.get, f"/rules?length={n}") for n in range(6)]
        light = [readers.submit(client.get, path) for path in ("/entity?label=France", "/api/search?q=Fran")]
        try:
            assert [one.result(15).status_code for one in light] == [200, 200]
            assert not any(one.done() for one in heavy)
        finally:
            gate.set()
        assert [one.result(15).status_code for one in heavy] == [200] * 6


def test_a_bug_shows_no_traceback(serve: Any, explorer: Any) -> None:
    client = serve()
    explorer.rule_list.choose = lambda choice: 1 / 0
    answered = client.get("/rules?length=1")
    assert answered.status_code == 500
    assert "Traceback" not in answered.text
    assert "ZeroDivisionError" not in answered.text
    assert client.get("/api/rules?length=1").json()["error"].startswith("this is a bug")


def test_what_two_ask_at_once_is_computed_once_and_what_fails_is_not_kept() -> None:
    calls: list[int] = []

    async def compute() -> Any:
        calls.append(1)
        await asyncio.sleep(0.01)
        if len(calls) == 1:
            raise ValueError
        return tagged_response(b"done", "text/plain")

    async def ask() -> list[Any]:
        cache = PageCache()
        failed = await asyncio.gather(*(cache.get("a", compute) for _ in range(3)), return_exceptions=True)
        kept = await asyncio.gather(*(cache.get("a", compute) for _ in range(3)))
        return [*failed, *(one.body for one in kept)]

    found = asyncio.run(ask())
    assert [type(one) for one in found[:3]] == [ValueError] * 3
    assert found[3:] == [b"done"] * 3
    assert len(calls) == 2


def test_the_cache_holds_no_more_than_it_may() -> None:
    async def fill() -> int:
        cache = PageCache(most_bytes=1000)
        for number in range(50):

            async def compute(number: int = number) -> Any:
                return tagged_response(bytes([number]) * 100, "text/plain")

            await cache.get(str(number), compute)
        return len(cache._kept)

    assert asyncio.run(fill()) == 9
