"""Missing values are estimated from those of entities with something in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import DataError, ReadOptions, load_dataset
from anyburl.data.dataset import Dataset
from anyburl.reasoning.estimation import Estimator, weighted_quantiles
from kernels import examples


def packages(folder: Path, values: dict[str, str], held_out: dict[str, str] | None = None) -> Dataset:
    """Games are large, libraries are small; g9 and l9 have no values unless they are given."""
    facts = [f"{kind[0]}{n}\tsection\t{kind}\n" for kind in ("games", "libs") for n in range(10)]
    facts += [f"g{n}\tneeds\tl{n}\n" for n in range(10)]
    (folder / "train.txt").write_text("".join(facts))
    for split, given_values in (("train", values), ("test", held_out or {})):
        if given_values:
            lines = "".join(f"{entity}\tsize\t{value}\n" for entity, value in given_values.items())
            (folder / f"attributes_{split}.tsv").write_text(lines)
    return load_dataset(folder)


SIZES = {f"g{n}": str(1000 + n) for n in range(9)} | {f"l{n}": str(10 + n) for n in range(9)}


def test_an_estimate_has_a_range_and_its_reasons(tmp_path: Path) -> None:
    estimate = Estimator(packages(tmp_path, SIZES)).estimate("g9", "size")
    assert 1000 <= estimate.value <= 1008
    assert 1000 <= estimate.low <= estimate.value <= estimate.high <= 1008
    assert estimate.stated == ()
    reason = next(reason for reason in estimate.reasons if reason.group == "section(X,games)")
    assert (reason.n_values, reason.low, reason.median, reason.high) == (9, 1002, 1004, 1006)
    assert sum(reason.share for reason in estimate.reasons) < 1


def test_a_stated_value_is_not_used_for_its_own_estimate(tmp_path: Path) -> None:
    found = Estimator(packages(tmp_path, {**SIZES, "g9": "7"})).estimate("g9", "size")
    assert found.stated == (7.0,)
    assert 1000 <= found.value <= 1008


def test_dates_and_what_has_nothing_in_common(tmp_path: Path) -> None:
    data = packages(tmp_path, {f"l{n}": f"1960-01-0{n + 1}" for n in range(9)} | {"libs": "1980-05-05"})
    estimator = Estimator(data)
    assert estimator.estimate("l9", "size").text(estimator.estimate("l9", "size").value) == "1960-01-05"
    alone = Estimator(packages(tmp_path, {"g1": "5"}))
    assert alone.estimate("l9", "size").value == 5
    with pytest.raises(DataError, match="no other entity has a value of size"):
        alone.estimate("g1", "size")
    with pytest.raises(DataError, match=r"attribute 'sizes'.*size"):
        alone.estimate("l9", "sizes")


def test_a_boolean_is_a_reason_where_it_is_equal(tmp_path: Path) -> None:
    data = packages(tmp_path, SIZES)
    free = "".join(f"{kind}{n}\tfree\t{str(kind == 'g' and n < 4).lower()}\n" for kind in "gl" for n in range(10))
    (tmp_path / "free.tsv").write_text(free + "libs\tfree\ttrue\n")
    data = load_dataset(tmp_path, ReadOptions(attribute_file=str(tmp_path / "free.tsv")))
    reasons = Estimator(data).estimate("libs", "size").reasons
    (reason,) = [reason for reason in reasons if reason.group.startswith("free")]
    assert (reason.group, reason.n_values, reason.low, reason.high) == ("free(X) = true", 4, 1000.75, 1002.25)


def test_errors_are_compared_with_those_of_the_median(tmp_path: Path) -> None:
    row = Estimator(packages(tmp_path, SIZES, {"g9": "1005", "l9": "15"})).evaluate("test").row(0, named=True)
    assert (row["attribute"], row["kind"], row["values"], row["covered"]) == ("size", "number", 2, 1.0)
    assert row["mean_absolute_error"] <= 3
    assert row["median_error"] == np.mean([abs(1005 - 509), abs(15 - 509)])
    with pytest.raises(DataError, match="has no values held out for valid"):
        Estimator(packages(tmp_path, SIZES)).evaluate("valid")


VALUES = st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4)), min_size=1, max_size=8)


@settings(max_examples=examples(60))
@given(VALUES, st.sampled_from([0.1, 0.5, 0.9]))
def test_a_weighted_quantile_is_that_of_values_written_out(pairs: list[tuple[int, int]], share: float) -> None:
    values, weights = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    written = sorted(value for value, weight in pairs for _ in range(weight))
    expected = written[int(np.ceil(share * len(written) - 1e-9)) - 1]
    assert weighted_quantiles(values, weights, (share,))[0] == expected


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1.0, 2.0, 2.0, -5.0])), min_size=2, max_size=15))
def test_an_estimate_is_among_the_values(rows: list[tuple[int, float]]) -> None:
    facts = [(f"e{n}", "knows", f"e{(n * n + 1) % 10}") for n in range(10)] + [("e1", "knows", "e1")]
    values = [(f"e{entity}", "size", str(value)) for entity, value in rows]
    data = load_dataset([*facts, *values], ReadOptions(attribute={"size": "number"}))
    for entity in data.vocabulary.entities:
        if {f"e{row[0]}" for row in rows} != {entity}:
            found = Estimator(data).estimate(entity, "size")
            assert min(v for _, v in rows) <= found.low <= found.value <= found.high <= max(v for _, v in rows)
