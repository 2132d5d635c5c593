"""Sample a batch of paths of one profile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays
from anyburl.paths.arrays import HeadTriples, PathArrays, empty_paths
from anyburl.paths.kernel import COMING, sample
from anyburl.paths.profile import PathProfile


def sample_paths(
    graph: GraphArrays,
    heads: HeadTriples,
    profile: PathProfile,
    attempts: int,
    state: NDArray[np.uint64],
    *,
    mixed: bool = False,
) -> PathArrays:
    """Make `attempts` attempts at a straight path of `profile` and return those that succeeded.

    `heads` are the triples that a path may start from (of the target relations). Steps are uniform over edges, as in
    the paper; `mixed`, every other path's are uniform over relations, which finds more bodies where entities have very
    many edges.
    """
    paths = empty_paths(attempts, profile.rule_length)
    visited = np.empty(profile.rule_length + 2, np.int32)
    coming = np.empty(COMING + 1, np.int64)
    n_paths = sample(graph, heads, profile.cyclic, attempts, mixed, state, visited, coming, paths)
    return PathArrays(*(column[:n_paths] for column in paths))
