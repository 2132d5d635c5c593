"""Results that were kept: a change of them is always seen, and is to be explained in the CHANGELOG.

`python scripts/golden.py` renews them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from anyburl import load_dataset
from golden.results import SEEDS, golden_file, results


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["geo", "nations", "umls"])
def test_results_are_those_that_were_kept(name: str, seed: int, shared_data: Callable[[str], Path]) -> None:
    data = load_dataset(name if name == "geo" else shared_data(name))
    kept = json.loads(golden_file(name, seed).read_text("utf-8"))
    if data.fingerprint != kept["data"]:
        pytest.skip(f"another version of {name} is on this machine")
    assert results(data, seed) == kept
