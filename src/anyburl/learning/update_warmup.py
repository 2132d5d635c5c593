"""Compile the kernels of an update before it starts."""

from __future__ import annotations

from anyburl.learning.changes import change_between
from anyburl.learning.engines.warmup import warm_up
from anyburl.learning.options import LearnOptions
from anyburl.learning.update import update_rules
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.table import TripleTable
from anyburl.warmup import on_tiny_table


def warm_up_update(options: LearnOptions, n_relations: int) -> None:
    """Compile every kernel of an update with `options`, and of learning on after it."""
    warm_up(options, n_relations)
    on_tiny_table(tiny_update, n_relations)


def tiny_update(table: TripleTable) -> None:
    """Find all rules of length 1 that are new if one triple is."""
    options = LearnOptions(paths=1, threads=1, max_cyclic=1)
    change = change_between(TripleTable(table.vocabulary, table.triples[1:].copy()), table)
    update_rules(RuleSet.empty(table.vocabulary), change, options, frozenset(options.profiles))
