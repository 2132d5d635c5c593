"""Rules of one graph applied to another: which carry over, and their tuned model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from anyburl.ruleset.columns import COLUMNS, Holds
from anyburl.ruleset.combine import known_rules
from anyburl.ruleset.files.run_folder import RULES, described_run
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.triples.vocabulary import Vocabulary

MOST = 0.5  # of the rules with constants must carry over: with fewer, a model that counts on them would be misled


@dataclass(frozen=True)
class Carried:
    """Rules with the ids of another graph, and why the others are left out."""

    rules: RuleSet
    rows: NDArray[np.int64]  # of the rules that were given
    n_unknown_relations: int
    n_unknown_entities: int

    @classmethod
    def to(cls, vocabulary: Vocabulary, rules: RuleSet) -> Carried:
        """Match rules with a vocabulary by their labels."""
        matched = rules.with_vocabulary(vocabulary)
        n_left_out = len(rules) - len(matched)
        if not n_left_out:
            return cls(matched, np.arange(len(rules)), 0, 0)
        has_relations = known_rules(rules, vocabulary, Holds.DIRECTED_RELATION, Holds.BODY)
        is_known = has_relations & known_rules(rules, vocabulary, Holds.CONSTANT)
        n_unknown_relations = int((~has_relations).sum())
        return cls(matched, np.flatnonzero(is_known), n_unknown_relations, n_left_out - n_unknown_relations)

    def note(self, dataset: Dataset) -> str:
        """Report which rules were left out, and why; "" if none was."""
        unknown = ((self.n_unknown_entities, "entities"), (self.n_unknown_relations, "relations"))
        reasons = [f"{n:,} with {kind} that it does not have" for n, kind in unknown if n]
        if not reasons:
            return ""
        n_left_out = self.n_unknown_entities + self.n_unknown_relations
        given = len(self.rules) + n_left_out
        return f"{len(self.rules):,} of {given:,} rules carry over to {dataset.name}; left out: {', '.join(reasons)}"


def with_constants(rules: RuleSet) -> NDArray[np.bool_]:
    """Return which rules mention an entity."""
    n_entities = rules.vocabulary.n_entities
    constants = [column for name, column in rules.columns.items() if COLUMNS[name].holds is Holds.CONSTANT]
    return reduce(np.logical_or, ((column >= 0) & (column < n_entities) for column in constants))


def portable_rows(rules: RuleSet, vocabulary: Vocabulary) -> NDArray[np.int64] | None:
    """Return the rules that a model for another graph is trained with: those without constants; None for all, where
    most of the constants are known there, too.
    """
    has_constants = with_constants(rules)
    n_known = int((known_rules(rules, vocabulary, Holds.CONSTANT) & has_constants).sum())
    return np.flatnonzero(~has_constants) if n_known < MOST * has_constants.sum() else None


def may_be_own_data(run: Path, dataset: Dataset) -> bool:
    """Whether the rules of a run folder were learned on this data, as far as the folder tells."""
    return described_run(run)["data"].get("fingerprint") in (None, dataset.fingerprint)


def remembers_its_data(run: Path) -> bool:
    """Whether a run ended, and its folder says where the data is that its rules were learned on."""
    return (run / RULES).is_file() and described_run(run)["data"].get("source") is not None
