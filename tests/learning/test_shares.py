"""Bodies are divided by hash: every one goes to exactly one worker, and about equally many to each."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from anyburl import LearnOptions, PathProfile
from anyburl.base.rng import batch_state
from anyburl.bodies.arrays import BodyArrays
from anyburl.learning.engine import search_arrays
from anyburl.learning.source import (
    ALL_SHARDS,
    LEAST,
    N_SHARDS,
    WHOLE,
    BodySource,
    Handout,
    Share,
    divide_shards,
    shards_of,
)
from kernels import random_graph, table_of

TABLE = table_of(random_graph(5, 60, 5, 400))


def make_source(profile: PathProfile, share: Share = WHOLE) -> BodySource:
    options = LearnOptions(max_acyclic=2)
    search = search_arrays(TABLE, options)
    return BodySource(search.graph, search.triples, profile, options, share)


def draw(source: BodySource) -> tuple[BodyArrays, int, int]:
    piece, attempts, paths = source.next_bodies(2000, batch_state(1, 2, 3))
    assert piece is not None
    return piece.bodies, attempts, paths


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7, 5000])
def test_shards_are_divided_without_rest_nor_overlap(n_workers: int) -> None:
    masks = divide_shards(ALL_SHARDS, n_workers)
    assert len(masks) == n_workers
    assert (np.sum(masks, axis=0) == 1).all()


def test_some_of_the_shards_can_be_divided() -> None:
    some = np.arange(N_SHARDS) % 5 == 0
    assert (np.sum(divide_shards(some, 3), axis=0) == some).all()


def pieces_of(shards: NDArray[np.bool_], n_workers: int) -> list[list[int]]:
    handout = Handout(shards, n_workers)
    return list(iter(lambda: handout.next_piece().tolist(), []))


@pytest.mark.parametrize("n_workers", [1, 2, 3, 7, 5000])
def test_shards_are_handed_out_without_rest_nor_overlap_in_pieces_that_become_smaller(n_workers: int) -> None:
    some = np.arange(N_SHARDS) % 5 != 0
    pieces = pieces_of(some, n_workers)
    assert np.array_equal(np.concatenate(pieces), np.flatnonzero(some))
    sizes = [len(piece) for piece in pieces]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= max(some.sum() / (2 * n_workers), 1)
    assert sizes[-1] <= max(N_SHARDS / (LEAST * n_workers), 1)


def test_whoever_is_fast_gets_more_pieces_and_nobody_waits_long_at_the_end() -> None:
    handout, busy_until, speeds = Handout(ALL_SHARDS, 2), [0.0, 0.0], (1.0, 3.0)
    while len(piece := handout.next_piece()):
        idle = int(np.argmin(busy_until))
        busy_until[idle] += len(piece) / speeds[idle]
    assert max(busy_until) < 1.05 * N_SHARDS / sum(speeds)


def test_all_that_is_queued_can_be_taken_at_once() -> None:
    source = make_source(PathProfile(True, 2))
    bodies, _, _ = draw(source)
    assert source.take_all() is None
    source.put(bodies)
    taken = source.take_all()
    assert taken is not None
    assert np.array_equal(taken.bodies.keys, bodies.keys)
    assert source.take() is None


def test_bodies_are_spread_evenly() -> None:
    keys = np.arange(400_000, dtype=np.uint64) * np.uint64(7)
    sizes = np.bincount(shards_of(keys), minlength=N_SHARDS)
    assert len(sizes) == N_SHARDS
    assert sizes.min() > 50
    assert sizes.max() < 160


@pytest.mark.parametrize("profile", [PathProfile(True, 2), PathProfile(False, 2), PathProfile(False, 1)])
def test_workers_find_together_what_one_finds_alone(profile: PathProfile) -> None:
    whole, attempts, paths = draw(make_source(profile))
    parts = [draw(make_source(profile, Share(owned))) for owned in divide_shards(ALL_SHARDS, 3)]
    assert np.array_equal(np.sort(np.concatenate([bodies.keys for bodies, _, _ in parts])), np.sort(whole.keys))
    assert all(0 < len(bodies.keys) < len(whole.keys) for bodies, _, _ in parts)
    assert sum(made for _, made, _ in parts) == pytest.approx(attempts, abs=3)
    assert sum(found for _, _, found in parts) == pytest.approx(paths, abs=3)


def test_workers_that_sample_for_themselves_count_their_part_of_the_paths() -> None:
    _, attempts, paths = draw(make_source(PathProfile(True, 2)))
    _, made, found = draw(make_source(PathProfile(True, 2), Share(divide_shards(ALL_SHARDS, 4)[0])))
    assert (made, found) == (attempts // 4, round(paths / 4))


def test_a_sweep_goes_on_where_another_was() -> None:
    profile = PathProfile(False, 2)
    first, second = make_source(profile), make_source(profile)
    first.start_sweep()
    listed = [draw(first)[0] for _ in range(3)]
    second.start_sweep()
    second.skip(len(listed[0].keys) + len(listed[1].keys))
    assert np.array_equal(draw(second)[0].keys, listed[2].keys)
    assert first.n_listed == second.n_listed
