"""Compile the kernels of an examination before its clock starts."""

from __future__ import annotations

from anyburl.doctor.examine import examine, learn_options
from anyburl.doctor.options import DoctorOptions
from anyburl.learning.engines.warmup import warm_up as warm_up_learning
from anyburl.learning.learn import learn
from anyburl.reasoning.warmup import warm_up as warm_up_answering
from anyburl.triples.table import TripleTable
from anyburl.warmup import on_tiny_table


def warm_up(options: DoctorOptions, n_relations: int, *, learning: bool) -> None:
    """Compile the kernels of judging facts by rules, and of `learning` these, or load them."""
    if learning:
        warm_up_learning(learn_options(options, 0), n_relations)
    warm_up_answering(n_relations)
    on_tiny_table(_examine_tiny, n_relations)


def _examine_tiny(table: TripleTable) -> None:
    examine(table, learn(table, paths=100, threads=1), threads=1)
