"""`examine`: all checks on one data set."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, Unpack

from anyburl.checking import choose_options
from anyburl.doctor.degrees import check_degrees
from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding
from anyburl.doctor.functional import check_functional, find_functional
from anyburl.doctor.labels import check_labels
from anyburl.doctor.leakage import check_leakage
from anyburl.doctor.options import CHECKS, DoctorKeywords, DoctorOptions
from anyburl.doctor.reflexive import check_reflexive
from anyburl.doctor.report import Report
from anyburl.doctor.similar import check_similar, overlaps
from anyburl.doctor.support import longest_body
from anyburl.doctor.suspects import check_kinds, check_suspects
from anyburl.doctor.suspicion import find_suspicion, n_checked
from anyburl.doctor.types import check_types
from anyburl.doctor.unseen import check_unseen
from anyburl.errors import DataError
from anyburl.learning.learn import run_learner
from anyburl.learning.learner import Learner
from anyburl.learning.options import LearnOptions
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import DataLike, Dataset, load_dataset
from anyburl.triples.table import TripleTable
from anyburl.triples.types import default_types

MOST_RULES = 1_000_000  # of those learned, with the highest support x confidence


class Shown(Protocol):
    """Shows how far something is."""

    def advance(self, n: int) -> None:
        """Take note that `n` more are done."""
        ...


Watch = Callable[[str, str, int | None], AbstractContextManager[Shown | None]]
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
    told = watch or (lambda doing, done, total: nullcontext())
    started, facts = time.monotonic(), Facts(load_dataset(data))
    if not len(facts.train):
        raise DataError(f"{facts.dataset.name} has no train facts to examine")
    types = _types(facts.dataset, chosen.types)
    with told("comparing relations", "compared relations", None):
        findings = _plain_checks(facts, chosen.top)
    known = _rules(facts, rules, chosen, told)
    functional = [find_functional(facts, back=back) for back in (False, True)]
    with told("judging facts", "judged facts", n_checked(len(facts.train))) as shown:
        found = find_suspicion(
            facts,
            functional,
            known,
            seed=chosen.seed,
            threads=chosen.threads,
            progress=shown.advance if shown else None,
        )
    findings += check_functional(facts, functional, chosen.top)
    findings += check_types(facts, types, chosen.top) if types else check_kinds(facts, found, chosen.top)
    findings += check_suspects(facts, functional, found, chosen.top)
    findings.sort(key=lambda finding: list(CHECKS).index(finding.check))
    n_rules = None if known is None else len(known)
    return Report(facts.dataset.name, tuple(findings), found.total, n_rules, time.monotonic() - started, facts)


def _types(dataset: Dataset, given: str | None) -> str | None:
    """Return the relation that states types: the one given, which must be there, or rdf:type if it is."""
    if given is None:
        return default_types(dataset)
    return dataset.vocabulary.relation_label(dataset.names.relation_id(given, dataset.vocabulary))


def _plain_checks(facts: Facts, top: int) -> list[Finding]:
    """Return what is found by counting."""
    shared = overlaps(facts)
    return [
        *check_similar(facts, shared, top),
        *check_leakage(facts, shared, top),
        *check_unseen(facts, top),
        *check_reflexive(facts, top),
        *check_degrees(facts, top),
        *check_labels(facts, top),
    ]


def _rules(facts: Facts, rules: RuleSet | None, options: DoctorOptions, watch: Watch) -> RuleSet | None:
    """Return the rules to judge facts by: those given, or what a short run finds."""
    if rules is not None:
        return rules.with_vocabulary(facts.dataset.vocabulary)
    if options.seconds == 0:
        return None
    with watch(f"learning rules for {options.seconds:g} s", "learned rules", None):
        return learn_briefly(facts.dataset.train, options)


def learn_options(options: DoctorOptions, n_facts: int) -> LearnOptions:
    """Return how rules are learned from `n_facts`."""
    longest = longest_body(n_facts)
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
