"""Renew tests/golden: results for small data sets, per seed. Say in the CHANGELOG why they have changed.

    python scripts/golden.py [FOLDER]

FOLDER holds nations and umls; without it, only the results for geo are renewed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from anyburl import load_dataset
from golden.results import SEEDS, golden_file, results

if __name__ == "__main__":
    folders = {name: Path(sys.argv[1]) / name for name in ("nations", "umls")} if len(sys.argv) > 1 else {}
    for name, place in {"geo": "geo", **folders}.items():
        data = load_dataset(place)
        for seed in SEEDS:
            found = json.dumps(results(data, seed), indent=1, ensure_ascii=False)
            golden_file(name, seed).write_text(found + "\n", "utf-8")
            print(golden_file(name, seed))
