"""A PyKEEN model for `aggregation="hybrid"`."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import DataError
from anyburl.pykeen.factories import import_pykeen
from anyburl.triples.dataset import Dataset

if TYPE_CHECKING:
    from pykeen.models import Model


class PyKEENModel:
    """Scores of a trained model that has the ids of `triples_factories(data)`.

    `Reasoner(rules, data, aggregation="hybrid", other=PyKEENModel(model, data))`
    """

    def __init__(self, model: Model, data: Dataset) -> None:
        self._torch = import_pykeen("PyKEENModel", "torch")
        self._model, self._n_relations = model, data.vocabulary.n_relations
        expected = data.vocabulary.n_entities, data.vocabulary.n_relations
        found = model.num_entities, getattr(model, "num_real_relations", model.num_relations)
        if found != expected:
            raise DataError(f"expected a model of {expected} entities and relations, as {data.name} has, got {found}")

    @cached_property
    def digest(self) -> str:
        """What tells one model from another: its parameters."""
        told = hashlib.blake2b(digest_size=16)
        for name, values in sorted(self._model.state_dict().items()):
            told.update(name.encode() + values.detach().cpu().numpy().tobytes())
        return told.hexdigest()

    def scores(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return a score for each question (entity, directed relation, ?) and entity."""
        found = np.empty((len(entities), self._model.num_entities), np.float32)
        is_backward = relations >= self._n_relations
        for chosen, first, second, predict in (
            (~is_backward, entities, relations, self._model.predict_t),
            (is_backward, relations - self._n_relations, entities, self._model.predict_h),
        ):
            if chosen.any():
                asked = np.column_stack([first[chosen], second[chosen]]).astype(np.int64)
                found[chosen] = self._numbers(predict(self._torch.from_numpy(asked)))
        return found

    def _numbers(self, scores: Any) -> NDArray[np.float32]:
        numbers: NDArray[np.float32] = scores.detach().cpu().numpy().astype(np.float32)
        return numbers
