"""Compile the kernels of `learning`, or of `reasoning` and searching, or both: python scripts/compile_kernels.py learning

Tests on two cores would compile everything twice; two of these, side by side, compile each half once.
"""

from __future__ import annotations

import sys

from anyburl import LearnOptions
from anyburl.learning.engines.threads import warm_up_learning
from anyburl.web.explorer import warm_up_explorer

FEW_RELATIONS = 1


def main() -> None:
    if "learning" in sys.argv[1:]:
        warm_up_learning(LearnOptions(threads=1), FEW_RELATIONS)
    if "reasoning" in sys.argv[1:]:
        warm_up_explorer(FEW_RELATIONS)


if __name__ == "__main__":
    main()
