"""Keep what this version writes in tests/formats/VERSION, so that later versions are tested to open it.

    python scripts/keep_formats.py

Run it once for each release, or when a format changes; folders of earlier versions stay as they are.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import anyburl
from anyburl import Dataset, LearnOptions, RunDirectory

FOLDER = Path(__file__).parents[1] / "tests" / "formats" / anyburl.__version__
PEOPLE = ["ed", "jo", "lisa", "mia"]
TRIPLES = [
    *((name, "lives", "nl") for name in PEOPLE),
    *((name, "speaks", "dutch") for name in PEOPLE[:3]),
    ("nl", "lang", "dutch"),
]


def main() -> None:
    """Write a finished run, one that was killed, an index, and rules in files."""
    FOLDER.mkdir(parents=True)
    train = FOLDER / "train.txt"
    train.write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES), "utf-8")
    data = Dataset.from_triples(TRIPLES, name="speakers")
    options = LearnOptions(paths=200, min_support=1, seed=1, threads=1)
    rules = anyburl.learn(data, out=FOLDER / "finished", **options.to_json() | {"seconds": None})
    killed = RunDirectory.create(FOLDER / "killed", data, options)
    killed.write_part([rules[:4]])
    killed.write_part([rules[4:]])
    shutil.copy(FOLDER / "finished" / "trace.jsonl", FOLDER / "killed")
    anyburl.build_index(train, FOLDER / "index")
    for name in ("rules.txt", "rules.parquet"):
        rules.save(FOLDER / name)
    expected = {"rules": sorted(rules.texts().to_list()), "fingerprint": data.fingerprint, "triples": len(data.train)}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", "utf-8")
    card = FOLDER / "index" / "index.json"
    described = {**json.loads(card.read_text("utf-8")), "source": "train.txt"}
    card.write_text(json.dumps(described, indent=2) + "\n", "utf-8")
    for lock in FOLDER.rglob(".lock"):
        lock.unlink()


if __name__ == "__main__":
    main()
