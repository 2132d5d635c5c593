"""The kernels of the search for labels, against one text after the other."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyburl.reasoning.kernel_search import (
    BLOCK,
    TYPO,
    LabelIndex,
    count_blocks,
    find_starts,
    fold_texts,
    match_blocks,
    near_blocks,
    write_grams,
)
from anyburl.reasoning.search import SYMBOLS, index_labels
from kernels import examples
from reference import label_search as reference

pytestmark = pytest.mark.kernel

any_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=12)
words = st.text("ab ", max_size=9).map(lambda text: " ".join(text.split()))
queries = st.text("ab ", min_size=1, max_size=7).map(lambda text: " ".join(text.split())).filter(bool)
texts_given = st.lists(words, max_size=40)


def as_bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("ascii"), np.uint8)


def index_of(texts: list[str]) -> tuple[LabelIndex, list[str]]:
    """An index of texts that are folded already, and the texts in its order."""
    return index_labels(pl.Series(texts, dtype=pl.String), None), sorted(texts)


@given(st.lists(any_text, max_size=5))
@example(["é東𝄞", " _A--b_ ", ""])
def test_texts_are_folded(texts: list[str]) -> None:
    given_bytes = np.frombuffer("".join(f"{text}\n" for text in texts).encode(), np.uint8)
    out = np.empty(len(given_bytes), np.uint8)
    n = fold_texts(given_bytes, SYMBOLS, out)
    expected = [reference.fold_ascii(text, SYMBOLS.tolist()) for text in texts]
    assert out[:n].tobytes() == b"".join(text + b"\n" for text in expected)


@given(texts_given, queries)
def test_texts_that_start_with_the_query_stand_together(texts: list[str], query: str) -> None:
    index, ordered = index_of(texts)
    first, last = find_starts(index, as_bytes(query))
    assert ordered[first:last] == [text for text in ordered if text.startswith(query)]


@given(texts_given, queries, st.booleans())
def test_blocks_are_counted_by_the_groups_that_they_hold(texts: list[str], query: str, anchored: bool) -> None:
    index, ordered = index_of(texts)
    out = np.empty(len(query), np.int64)
    grams = out[: write_grams(as_bytes(query), anchored, out)]
    spaced = f" {query}" if anchored else query
    expected = {spaced[i : i + 3] for i in range(len(spaced) - 2)}
    counts = np.zeros(-(-len(texts) // BLOCK), np.uint8)
    count_blocks(index, np.unique(grams), counts)
    assert len(set(grams.tolist())) == len(expected)
    for block, count in enumerate(counts):
        held = [f" {text}" for text in ordered[block * BLOCK : (block + 1) * BLOCK]]
        assert count == sum(any(gram in text for text in held) for gram in expected)


@given(texts_given, queries)
def test_texts_that_hold_the_query_are_found_with_how_they_do(texts: list[str], query: str) -> None:
    index, ordered = index_of(texts)
    blocks = np.arange(-(-len(texts) // BLOCK))
    out, ranks = np.empty(len(blocks) * BLOCK, np.int64), np.empty(len(blocks) * BLOCK, np.int64)
    n = match_blocks(index, blocks, as_bytes(query), out, ranks)
    found = {i: reference.holds(text, query) for i, text in enumerate(ordered)}
    expected = {i: rank for i, rank in found.items() if rank is not None}
    assert dict(zip(out[:n].tolist(), ranks[:n].tolist(), strict=True)) == expected
    assert TYPO not in ranks[:n]


@settings(max_examples=examples(60))
@given(st.lists(words, max_size=8), queries, st.integers(0, 2))
@example(["ab"], "ba", 1)
@example(["b ab aab"], "aba", 2)
def test_texts_that_start_like_the_query_are_found_with_their_edits(texts: list[str], query: str, most: int) -> None:
    index, ordered = index_of(texts)
    blocks = np.arange(-(-len(texts) // BLOCK))
    out, edits = np.empty(len(blocks) * BLOCK, np.int64), np.empty(len(blocks) * BLOCK, np.int64)
    rows = np.empty((3, len(query) + 2), np.int64)
    n = near_blocks(index, blocks, as_bytes(query), most, rows, out, edits)
    expected = {i: reference.edits_to_a_start(text, query) for i, text in enumerate(ordered) if text}
    assert dict(zip(out[:n].tolist(), edits[:n].tolist(), strict=True)) == {
        i: distance for i, distance in expected.items() if distance <= most
    }
