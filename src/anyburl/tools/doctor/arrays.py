"""Rules as facts are checked against them: by head, the strongest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class CheckedRules(NamedTuple):
    """Rules in groups: those of one head relation without constants (B), or with the same constant (U_c, U_d)."""

    offsets: NDArray[np.int64]  # group -> its rules, those with the highest scores first
    bodies: NDArray[np.int32]  # (rules, longest), from the head's variable, padded with -1
    lengths: NDArray[np.int32]
    ends: NDArray[np.int32]  # the constant at the end of the body, -1 where that is a variable
    scores: NDArray[np.float64]
    rows: NDArray[np.int32]  # of the rule set
