"""Table 1: the figures of the data sets, as the loader sees them.

python benchmarks/paper/table1.py

Entities, relations and triples are those of the train split, as in the paper. The whole YAGO3-10 is used where it is
there, in data/YAGO3-10 of the shared folder, else the part of it, under its own name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lab import Cell, Lab, arguments, find_data, load

NAMES = ("WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10")


def figures(name: str) -> dict[str, Any]:
    """Return what Table 1 says of a data set, and a little more."""
    data = load(name)
    train = data.train.triples
    return {
        "data": name,
        "fingerprint": data.fingerprint,
        "entities": len(np.unique(train[:, [0, 2]])),
        "relations": len(np.unique(train[:, 1])),
        "triples": len(data.train),
        "validset": len(data.valid),
        "testset": len(data.test),
        "entities_of_all_splits": data.vocabulary.n_entities,
        "reflexive_triples": int((train[:, 0] == train[:, 2]).sum()),
    }


def main(lab: Lab) -> None:
    """Count every data set."""
    for name in NAMES:
        folder = find_data(name)
        cell = Cell("table1", name, {"data": folder})
        if (lab.wants_data(name) or lab.wants_data(folder)) and cell.is_due(lab):
            cell.save(lab, figures(folder))


if __name__ == "__main__":
    main(arguments(__doc__))
