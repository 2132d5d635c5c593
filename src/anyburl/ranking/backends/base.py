"""The backend protocol: what answers queries, on this machine or many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import AnswerArrays, FiringArrays, QueryArrays

Progress = Callable[[int], None]
"""Called with how many more queries were answered."""

NO_GROUPS = np.empty(0, np.uint8)
QUERIES_AT_A_TIME = 32
PARTS_AHEAD = 4  # for each worker: those under way, and those that wait for the ones before them


@dataclass(frozen=True)
class Wanted:
    """What the answers are to be: ranks by `aggregation`, and the `top_k` best candidates of each query.

    With `keep_known`, answers that the graph states are not blocked where connected pairs are. If `groups` puts every
    rule into a group, the evidence for each of the best is returned as well.
    """

    aggregation: Aggregation
    top_k: int = 0
    keep_known: bool = False
    groups: NDArray[np.uint8] = field(default_factory=lambda: NO_GROUPS)


class Backend(Protocol):
    """Answers queries with rules that it was made with."""

    threads: int

    def answer(self, queries: QueryArrays, wanted: Wanted, progress: Progress | None = None) -> AnswerArrays:
        """Rank the targets of `queries` and keep the best candidates of each."""
        ...

    def fire(self, entity: int, relation: int, aggregation: Aggregation) -> FiringArrays:
        """Return every firing for the query (entity, directed relation, ?), known answers included, of the rules that
        `aggregation` looks at.
        """
        ...

    def map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        """Yield what `work` makes of each part, in their order; it may run in several places at once.

        Few parts are under way or waiting to be taken at any time.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...
