"""`examine`: all checks on one data set, after their kernels were compiled."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Protocol, Unpack

from anyburl.base.checking import choose_options
from anyburl.base.errors import DataError
from anyburl.data.attributes import attributes_of
from anyburl.data.dataset import DataLike, Dataset, default_types, load_dataset
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import on_tiny_table
from anyburl.learning.learner import Learner
from anyburl.learning.options import LearnOptions
from anyburl.learning.recorder import run_learner
from anyburl.learning.threads import warm_up_learning as warm_up_learning
from anyburl.reasoning.shortcuts import warm_up_reasoning as warm_up_answering
from anyburl.rules.ruleset import RuleSet
from anyburl.tools.doctor.evidence import check_functional, find_functional, longest_judging_body
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Report
from anyburl.tools.doctor.labels import check_ambiguous, check_literals, find_label_faults
from anyburl.tools.doctor.structure import (
    check_degrees,
    check_leakage,
    check_reflexive,
    check_similar,
    check_types,
    check_unseen,
    overlaps,
)
from anyburl.tools.doctor.suspects import (
    Shown,
    check_conflicts,
    check_kinds,
    check_suspects,
    find_suspicion,
    n_checked,
    suspects_frame,
    suspicious_rows,
)
from anyburl.tools.doctor.values import check_values
from anyburl.tools.options import CHECKS, DoctorKeywords, DoctorOptions

MOST_RULES = 1_000_000  # of those learned, with the highest support x confidence


class Shows(Protocol):
    """Shows how far something is."""

    def advance(self, n: int) -> None:
        """Add `n` to the number that are done."""
        ...


Watch = Callable[[str, str, int | None], AbstractContextManager[Shows | None]]
"""Called with what is about to be done, how to report that it was, and how much there is to do, if that is known."""


def examine(
    data: DataLike,
    rules: RuleSet | None = None,
    options: DoctorOptions | None = None,
    *,
    watch: Watch | None = None,
    **keywords: Unpack[DoctorKeywords],
) -> Report:
    """Report what is odd about a data set, which is anything that `load_dataset` takes.

    `options`, or the fields of `DoctorOptions` as keywords, configure the examination. Facts are judged by `rules`;
    without them, rules are learned from train for `seconds`.
    """
    chosen = choose_options(DoctorOptions, options, keywords)
    watching = watch or (lambda doing, done, total: nullcontext())
    started, facts = time.monotonic(), DatasetFacts(load_dataset(data))
    if not len(facts.train):
        raise DataError(f"{facts.dataset.name} has no train facts to examine")
    types = _types(facts.dataset, chosen.types)
    names, vocabulary = facts.dataset.names, facts.dataset.vocabulary
    only = None if chosen.relation is None else names.relation_id(chosen.relation, vocabulary)
    relations = facts.train[:, 1]
    with watching("comparing relations", "compared relations", None):
        findings = _plain_checks(facts, chosen.top)
    known = _rules(facts, rules, chosen, watching)
    functional = [find_functional(facts, back=back) for back in (False, True)]
    with watching("judging facts", "judged facts", n_checked(len(facts.train))) as shown:
        suspicion = find_suspicion(
            facts,
            functional,
            known,
            seed=chosen.seed,
            threads=chosen.threads,
            progress=shown.advance if shown else None,
        )
    findings += check_functional(facts, functional, chosen.top)
    findings += check_types(facts, types, chosen.top) if types else check_kinds(facts, suspicion, chosen.top)
    shown_facts = Shown(chosen.top, chosen.per_relation, only)
    findings += check_conflicts(facts, functional, suspicion, shown_facts)
    findings += check_suspects(facts, functional, suspicion, shown_facts)
    findings.sort(key=lambda finding: list(CHECKS).index(finding.check))
    n_rules = None if known is None else len(known)
    suspects = partial(
        suspects_frame, facts, functional, suspicion, shown_facts.among(suspicious_rows(suspicion), relations)
    )
    seconds = time.monotonic() - started
    return Report(facts.dataset.name, tuple(findings), suspicion.total, n_rules, seconds, facts, every_suspect=suspects)


def _types(dataset: Dataset, given: str | None) -> str | None:
    """Return the relation that states types: the one given, which must be there, or rdf:type if it is."""
    if given is None:
        return default_types(dataset)
    return dataset.vocabulary.relation_label(dataset.names.relation_id(given, dataset.vocabulary))


def _plain_checks(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the findings of the checks that count facts."""
    shared = overlaps(facts)
    return [
        *check_similar(facts, shared, top),
        *check_leakage(facts, shared, top),
        *check_unseen(facts, top),
        *check_reflexive(facts, top),
        *check_values(facts, top),
        *check_degrees(facts, top),
        *check_literals(facts, top),
        *check_ambiguous(facts, top),
        *find_label_faults(facts, top),
    ]


def _rules(facts: DatasetFacts, rules: RuleSet | None, options: DoctorOptions, watch: Watch) -> RuleSet | None:
    """Return the rules to judge facts by: those given, or what a short run finds."""
    if rules is not None:
        return rules.with_vocabulary(facts.dataset.vocabulary)
    if options.seconds == 0:
        return None
    with watch(f"learning rules for {options.seconds:g} s", "learned rules", None):
        return learn_briefly(facts.dataset.train, options)


def learn_options(options: DoctorOptions, n_facts: int) -> LearnOptions:
    """Return how rules are learned from `n_facts`."""
    longest = longest_judging_body(n_facts)
    return LearnOptions(
        seconds=options.seconds,
        snapshots=(),
        max_cyclic=longest,
        max_rules=MOST_RULES,
        seed=options.seed,
        threads=options.threads,
    )


def learn_briefly(train: TripleTable, options: DoctorOptions) -> RuleSet:
    """Learn for a few seconds; an interrupt ends the examination."""
    learner = Learner(train, learn_options(options, len(train)))
    run_learner(learner)
    if learner.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return learner.rules()


def warm_up_doctor(options: DoctorOptions, vocabulary: Vocabulary, *, learning: bool) -> None:
    """Compile the kernels of judging facts by rules, and of `learning` these, or load them."""
    if learning:
        has_values = not attributes_of(vocabulary).empty
        warm_up_learning(learn_options(options, 0), vocabulary.n_relations, has_values=has_values)
    warm_up_answering(vocabulary.n_relations)
    on_tiny_table(_examine_tiny, vocabulary.n_relations)


def _examine_tiny(table: TripleTable) -> None:
    learner = Learner(table, LearnOptions(paths=100, threads=1))
    run_learner(learner)
    examine(table, learner.rules(), threads=1)
