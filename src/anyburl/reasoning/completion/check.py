"""Judges facts from elsewhere: are they stated, supported by rules, contradicted by stated facts, or unknown?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.data.dataset import SPLITS
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.lookup import held_by, split_bits
from anyburl.models.calibration import Calibration
from anyburl.reasoning.completion.conflicts import ITSELF, NOTHING
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.reasoning.completion.judging import Judge
from anyburl.reasoning.completion.reasons import TRIPLES, reasons_of
from anyburl.rules.labels import RuleTexts

VERDICTS = ("stated", "contradicted", "supported", "unknown")
COLUMNS = ("subject", "relation", "object")
FACTS_AT_A_TIME = 4096
TRIPLE = pl.List(pl.String)


def check_frames(
    judge: Judge,
    facts: pl.DataFrame,
    *,
    calibration: Calibration | None,
    names: Names,
    min_probability: float,
    splits: Sequence[str] = SPLITS,
) -> Iterator[pl.DataFrame]:
    """Yield a row for each fact, in order, some at a time; only facts of `splits` count as stated.

    A fact is `stated` by a split; or `contradicted` by a stated one; or `supported`, if its probability (without a
    calibration, its score) is at least `min_probability`; else `unknown`. `facts` are the reasons for it; `conflict`
    and `instead` those against it: a stated fact, and the value that rules prefer where there can be only one.
    """
    texts = RuleTexts(judge.ranker.rules)
    for start in range(0, len(facts), FACTS_AT_A_TIME):
        part = facts[start : start + FACTS_AT_A_TIME].select(pl.col(COLUMNS).cast(pl.String))
        yield _checked(judge, part, calibration, names, min_probability, texts, split_bits(splits))


def _checked(
    judge: Judge,
    facts: pl.DataFrame,
    calibration: Calibration | None,
    names: Names,
    min_probability: float,
    texts: RuleTexts,
    stating: np.uint8,
) -> pl.DataFrame:
    vocabulary, n = judge.dataset.vocabulary, len(facts)
    triples, unseen = encode_facts(facts, vocabulary, names)
    known = np.flatnonzero((triples >= 0).all(axis=1))
    held, conflicts = np.zeros(n, np.uint8), np.full(n, NOTHING)
    held[known] = held_by(judge.dataset, triples[known]) & stating
    conflicts[known] = judge.conflicts.find(triples[known])
    found, instead = judge.look_up(triples[known])
    scores, rules, likely = np.zeros(n), np.full(n, -1), np.full(n, np.nan)
    scores[known], rules[known] = found.scores, found.rules
    if calibration is not None:
        likely[known] = calibration.probabilities(triples[known, 1], found.contexts, found.scores)
    likely[(scores == 0) | (held > 0) | (conflicts != NOTHING)] = np.nan
    sure = scores if calibration is None else np.nan_to_num(likely)
    verdicts = np.select(
        [held > 0, conflicts != NOTHING, (scores > 0) & (sure >= min_probability)], VERDICTS[:3], VERDICTS[3]
    )
    others = np.full(n, -1)
    others[known] = np.where(held[known] > 0, -1, instead)
    return facts.with_columns(
        verdict=pl.Series(verdicts.tolist(), dtype=pl.String),
        probability=pl.Series(likely).fill_nan(None),
        score=pl.Series(scores),
        rule=_rule_texts(texts, rules),
        facts=_reasons(judge, triples, rules),
        conflict=pl.Series(judge.stated_facts(triples, np.where(held > 0, NOTHING, conflicts)), dtype=TRIPLE),
        instead=vocabulary.decode_entities(others),
        note=pl.Series(_notes(unseen, scores, conflicts, held), dtype=pl.String),
    )


def encode_facts(facts: pl.DataFrame, vocabulary: Vocabulary, names: Names) -> tuple[NDArray[np.int32], list[str]]:
    """Return the ids of facts given by labels or names, -1 for what is not in the data, and a note on what is not."""
    triples = np.column_stack(vocabulary.encode_triples(facts)).astype(np.int32)
    unseen = [""] * len(facts)
    for row in np.flatnonzero((triples < 0).any(axis=1)).tolist():
        lacking = []
        for place, label in enumerate(facts.row(row)):
            if triples[row, place] >= 0:
                continue
            find = names.relation_id if place == 1 else names.entity_id
            with suppress(DataError):
                triples[row, place] = find(label or "", vocabulary) if names else -1
            if triples[row, place] < 0:
                lacking.append(f"the {'relation' if place == 1 else 'entity'} {label!r}")
        if lacking:
            unseen[row] = f"{' and '.join(lacking)} {'are' if len(lacking) > 1 else 'is'} not in the data"
    return triples, unseen


def _rule_texts(texts: RuleTexts, rules: NDArray[np.int64]) -> pl.Series:
    """Return the text of each rule, null where there is none."""
    chosen = np.flatnonzero(rules >= 0)
    column: list[str | None] = [None] * len(rules)
    for row, text in zip(chosen.tolist(), texts.of_rows(rules[chosen]).to_list(), strict=True):
        column[row] = text
    return pl.Series(column, dtype=pl.String)


def _reasons(judge: Judge, triples: NDArray[np.int32], rules: NDArray[np.int64]) -> pl.Series:
    """Return the facts that make the best rule predict each fact."""
    chosen = np.flatnonzero(rules >= 0)
    column: list[list[list[str]]] = [[] for _ in rules]
    if len(chosen):
        narrow = rules[chosen].astype(np.int32)
        facts = FactColumns(triples[chosen], np.zeros(len(chosen)), narrow, np.ones_like(narrow))
        for row, reasons in zip(chosen.tolist(), reasons_of(judge.ranker, facts).to_list(), strict=True):
            column[row] = reasons
    return pl.Series(column, dtype=TRIPLES)


def _notes(
    unseen: list[str], scores: NDArray[np.float64], conflicts: NDArray[np.int64], held: NDArray[np.uint8]
) -> list[str]:
    """Return what else there is to say."""
    notes = []
    for lacking, score, conflict, splits in zip(unseen, scores, conflicts.tolist(), held.tolist(), strict=True):
        if lacking:
            notes.append(lacking)
        elif splits:
            notes.append("")
        elif conflict == ITSELF:
            notes.append("nothing stands in this relation to itself")
        else:
            notes.append("" if score else "no rule predicts it")
    return notes
