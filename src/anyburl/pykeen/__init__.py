"""PyKEEN and anyburl on the same data (extra `pykeen`; the CPU build of torch is enough).

from anyburl.pykeen import compare, dataset_from_pykeen

data = dataset_from_pykeen(training, validation, testing)   # TriplesFactory objects
rules = anyburl.learn(data, seconds=10)
print(compare(rules, data, model="TransE", epochs=20))
"""

from __future__ import annotations

from anyburl.pykeen.comparison import compare
from anyburl.pykeen.evaluator import evaluate_with_pykeen
from anyburl.pykeen.factories import dataset_from_pykeen, triples_factories
from anyburl.pykeen.other_model import PyKEENModel

__all__ = ["PyKEENModel", "compare", "dataset_from_pykeen", "evaluate_with_pykeen", "triples_factories"]
