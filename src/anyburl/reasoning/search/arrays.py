"""Folded labels and names in order, and where groups of three characters occur in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BLOCK = 16
"""How many texts the lists of groups count as one: lists are short, and few texts are read in vain."""

GRAM_BITS = 17
"""Groups of three characters are told apart by so many bits."""

SPACE, END_OF_TEXT = 32, 10


class LabelIndex(NamedTuple):
    """Texts, sorted, each ended by a line break, and for each group of characters the blocks of texts that hold it.

    A group at the start of a text begins with a space.
    """

    texts: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # text -> its first place in `texts`; one more for the end
    owners: NDArray[np.int32]  # text -> the row of the label that it is, or that it is a name of
    gram_offsets: NDArray[np.int64]  # group -> its first place in `gram_blocks`
    gram_blocks: NDArray[np.int32]  # blocks, sorted within a group


def index_bytes(index: LabelIndex) -> int:
    """Return how many bytes the arrays take."""
    return sum(array.nbytes for array in index)
