"""Compile the kernels of `learning`, counting and time, or of `reasoning` and reports.

    python scripts/compile_kernels.py learning

Tests on two cores would compile everything twice; two of these, side by side, compile each half once.
"""

from __future__ import annotations

import sys

from anyburl import LearnOptions, TripleTable, learn, rescore
from anyburl.graph.build import on_tiny_table
from anyburl.learning.threads import warm_up_learning
from anyburl.reasoning.shortcuts import warm_up_distilling
from anyburl.temporal.reasoner import warm_up_temporal
from anyburl.tools.report.theory import warm_up_report
from anyburl.web.explorer import warm_up_explorer

FEW_RELATIONS = 1


def count_rules(table: TripleTable) -> None:
    rescore(learn(table, paths=100, threads=1), table, threads=1)


def main() -> None:
    if "learning" in sys.argv[1:]:
        warm_up_learning(LearnOptions(threads=1), FEW_RELATIONS)
        on_tiny_table(count_rules, FEW_RELATIONS)
        warm_up_temporal()
    if "reasoning" in sys.argv[1:]:
        warm_up_explorer(FEW_RELATIONS)
        warm_up_distilling(FEW_RELATIONS)
        warm_up_report(FEW_RELATIONS)


if __name__ == "__main__":
    main()
