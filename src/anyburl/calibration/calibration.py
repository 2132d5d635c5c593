"""`Calibration`: what the score of a fact means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.calibration.fit import bins_of
from anyburl.errors import InvalidOptionError

Floats = NDArray[np.float64]
Ids = NDArray[np.int32] | NDArray[np.int64]


@dataclass(frozen=True)
class Calibration:
    """Turns scores into probabilities, by two tables of (relations, bins of scores).

    `probability` is the chance that an answer is stated if the question has an answer in the held-out split. `closed`
    is the share of all facts outside train with such a score that the held-out split states; nan where facts were not
    counted. Within a relation, neither falls as the score rises.
    """

    edges: Floats
    probability: Floats
    closed: Floats

    def probabilities(self, relations: Ids, scores: Floats) -> Floats:
        """Return the probability of facts with these relations and scores."""
        return self.probability[relations, bins_of(self.edges, scores)]

    def closed_world(self, relations: Ids, scores: Floats) -> Floats:
        """Return the closed-world probability, a lower bound; nan where it is unknown."""
        return self.closed[relations, bins_of(self.edges, scores)]

    def least_scores(self, probability: float) -> Floats:
        """Return, for each relation, the lowest score from which the probability is at least this; inf if there is
        none.
        """
        if not 0 <= probability <= 1:
            raise InvalidOptionError("probability", "from 0 to 1", probability)
        enough = self.probability >= probability
        starts = np.concatenate([[0.0], self.edges])
        return np.where(enough.any(axis=1), starts[enough.argmax(axis=1)], np.inf)
