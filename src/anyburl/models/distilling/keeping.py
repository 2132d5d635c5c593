"""Which rules a run keeps at its end, and a distilled set of rules as a run folder with what became of the others.

A rule matters if it is among the best rules of a known answer, of all that are looked at; B rules always do, since they
are few and say most. Learning itself knows nothing of this: `Recorder.finish` is given a function that chooses.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import callback, from_keywords
from anyburl.base.errors import InvalidOptionError, RunError
from anyburl.base.files import at_home
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replace_text, replacing
from anyburl.data.dataset import DataLike, Dataset, load_dataset
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.learning.learner import Learner, Span
from anyburl.learning.options import ALL, DISTILLED, DistilOptions, LearnKeywords, LearnOptions
from anyburl.learning.recorder import KeepRules, Recorder, Reduced, run_learner
from anyburl.learning.run import RunDirectory, claim_run
from anyburl.models.distilling.distil import MANY_RULES, Distilled, Watch, distil_ranker, unwatched
from anyburl.models.distilling.known import KnownAnswers, KnownFacts, Observer
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import blocks_connected, take_queries
from anyburl.ranking.ranker import make_ranker
from anyburl.rules.ruleset import RuleSet

LEFT_OUT = "left-out.parquet"
"""The rules that were left out and resemble a kept one: the columns of rules.parquet, `kept` and `overlap`."""
ABOUT = "distilled.json"
"""How the rules were chosen: what `distil --json` prints."""


def save_distilled(
    path: str | os.PathLike[str], distilled: Distilled, dataset: Dataset, options: LearnOptions, source: str | None
) -> None:
    """Write a new run folder with the kept rules; `options` are those that all rules were learned with."""
    run = RunDirectory.create(path, dataset, options)
    with claim_run(run.path):
        save_about(run.path, distilled, source)
        run.finish(distilled.rules, {})


def save_about(folder: Path, distilled: Distilled, source: str | None = None) -> None:
    """Write how the rules were chosen, and those that were left out and resemble a kept one, with that one's row."""
    about = {"from": source, **distilled.to_json()}
    replace_text(folder / ABOUT, json.dumps(about, indent=2) + "\n", RunError)
    frame = distilled.left_out.to_polars().with_columns(
        pl.Series("kept", distilled.representation.kept, pl.UInt32),
        pl.Series("overlap", distilled.representation.overlaps, pl.Float32),
    )
    with replacing(folder / LEFT_OUT, RunError) as unfinished:
        frame.write_parquet(unfinished, compression="zstd", compression_level=1)
        seal(unfinished)


@dataclass(frozen=True)
class LeftOut:
    """Rules that were left out, the nearest to its representative first: its `kept` rule is row so-and-so of the run,
    and `overlaps` is the share of its known answers that this one predicts as well.
    """

    rules: RuleSet
    kept: NDArray[np.int64]
    overlaps: NDArray[np.float64]


def left_out_rules(run: str | os.PathLike[str], row: int | None = None) -> LeftOut:
    """Return the rules that a distilled run left out and that a kept rule stands for: of the rule at `row`, or all."""
    path = at_home(run) / LEFT_OUT
    if not path.is_file():
        raise RunError(f"{os.fspath(run)} has no {LEFT_OUT}: it is not a distilled run")
    try:
        frame = scan_parquet(path)
        chosen = (frame if row is None else frame.filter(pl.col("kept") == row)).collect()
    except UNREADABLE as error:
        raise RunError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return LeftOut(
        RuleSet.from_polars(chosen),
        chosen["kept"].to_numpy().astype(np.int64),
        chosen["overlap"].to_numpy().astype(np.float64),
    )


def check_out(run: Path, out: Path) -> None:
    """Refuse an output that holds a run already."""
    if out.resolve() == run.resolve():
        raise InvalidOptionError("out", "another folder than the run itself", str(out))
    if (out / "options.json").exists():
        raise RunError(f"{out} already contains a run: choose another folder")


Mask = NDArray[np.bool_]

BEST_RULES = 12  # of each known answer
FACTS = 60_000  # that are looked at: with half as many, FB15k-237 loses 0.004 of its MRR on valid
SHARE_TO_STOP_AT = 0.9  # of the rules: if more are among the best of their parts, to look again would gain little
RULES_AT_A_TIME = 4_000_000  # in an index: some hundred MB


def learn(
    dataset: DataLike,
    *,
    out: str | os.PathLike[str] | None = None,
    on_span: Callable[[Span], None] | None = None,
    **options: Unpack[LearnKeywords],
) -> RuleSet:
    """Learn rules from the train split of `dataset`, which is anything that `load_dataset` takes.

    `options` are the fields of `LearnOptions`. With `out`, the run is recorded in that folder. `on_span` is called at
    the end of each time span. Of more than 200,000 rules, those are kept that matter, unless `keep="all"`.
    """
    callback("on_span", on_span)
    chosen = from_keywords(LearnOptions, options)
    data = load_dataset(dataset)
    recorder = Recorder(RunDirectory.create(out, data, chosen)) if out is not None else None
    learner, keep = Learner(data.train, chosen), rules_to_keep(data, chosen)
    if recorder is None:
        run_learner(learner, None, on_span)
        rules = learner.rules()
        reduced = keep(rules) if keep else None
        return rules if reduced is None else reduced.rules
    with closing(recorder):
        run_learner(learner, recorder, on_span)
        return recorder.finish(learner, keep)


def rules_to_keep(dataset: Dataset, options: LearnOptions, watch: Watch = unwatched) -> KeepRules | None:
    """Return the function that chooses the rules that a run with `options` keeps; None if it keeps all."""
    if options.keep == ALL:
        return None
    ranking = RankOptions(threads=options.threads, object_identity=options.object_identity)

    def keep(rules: RuleSet) -> Reduced | None:
        if options.keep == DISTILLED and len(rules):
            return _distilled(rules, dataset, ranking, watch)
        return _needed(rules, dataset, ranking, watch) if len(rules) > MANY_RULES else None

    return keep


def _distilled(rules: RuleSet, dataset: Dataset, ranking: RankOptions, watch: Watch) -> Reduced:
    blocked = blocks_connected(ranking.block_connected, dataset)
    ranker = make_ranker(graph_of(dataset.train), rules, ranking, block_connected=blocked)
    distilled = distil_ranker(ranker, dataset, DistilOptions(), watch)
    remark = f"those that rank {distilled.judged_by} with {distilled.quality:.1%} of the MRR of all rules"
    return Reduced(distilled.rules, np.sort(distilled.rows), remark, lambda folder: save_about(folder, distilled))


def _needed(rules: RuleSet, dataset: Dataset, ranking: RankOptions, watch: Watch) -> Reduced | None:
    blocked = blocks_connected(ranking.block_connected, dataset)
    facts = KnownFacts.draw(dataset, most=FACTS, most_judged=0, blocked=blocked, seed=0)
    known = facts.to_choose_by()
    if not known:
        return None
    with watch(f"looking for the rules that matter among {len(rules):,}", f"looked through {len(rules):,} rules"):
        is_needed = find_needed(rules, graph_of(dataset.train), known, ranking, blocked=blocked)
    rows = np.flatnonzero(is_needed)
    n_facts = len(facts.valid) + len(facts.train)
    remark = f"B rules, and those among the {BEST_RULES} best of any of {n_facts:,} known facts"
    return Reduced(rules.take(rows), rows, remark)


def find_needed(
    rules: RuleSet, graph: GraphArrays, known: list[KnownAnswers], ranking: RankOptions, *, blocked: bool
) -> Mask:
    """Mark the B rules, and those that are among the best of a known answer.

    Rules are indexed in parts, so that memory does not grow with their number. The best of each part are more than the
    best of all, and are looked at again.
    """
    least_support = int(rules.support.min())
    n_relations, marked = graph.n_relations, np.ones(len(rules), np.bool_)
    relation_of = (rules.head % n_relations).astype(np.int32)
    while True:
        needed, is_split = rules.is_binary, False
        for part in _parts(rules, relation_of, marked, n_relations):
            is_split |= part.constants is not None
            ranker = make_ranker(graph, rules.take(part.rows), ranking, block_connected=blocked)
            observer = Observer(ranker, least_support)
            for some in known:
                listed = observer.best_rules(part.questions(some), BEST_RULES).rules
                needed[part.rows[listed[listed >= 0]]] = True
        if not is_split or int(needed.sum()) >= SHARE_TO_STOP_AT * int(marked.sum()):
            return needed
        marked = needed


@dataclass(frozen=True)
class _Part:
    """Rules that are indexed together: those of some relations or, of one large relation, those with some `constants`
    in their heads.
    """

    rows: NDArray[np.int64]
    relations: Mask
    constants: Mask | None = None

    def questions(self, known: KnownAnswers) -> KnownAnswers:
        """Return the questions whose answers these rules might predict."""
        queries = known.queries
        is_answerable = self.relations[queries.relations % len(self.relations)]
        if self.constants is not None:
            sizes = np.diff(queries.target_offsets)
            entities, n_entities = np.repeat(queries.entities, sizes), len(self.constants) - 1
            is_predicted = self.constants[queries.targets] | self.constants[entities]
            if self.constants[n_entities]:  # the token `self` stands for both
                is_predicted |= queries.targets == entities
            question = np.repeat(np.arange(len(sizes)), sizes)
            is_answerable &= np.bincount(question[is_predicted], minlength=len(sizes)) > 0
        return KnownAnswers(take_queries(queries, np.flatnonzero(is_answerable)), known.from_train)


def _parts(rules: RuleSet, relation_of: NDArray[np.int32], marked: Mask, n_relations: int) -> Iterator[_Part]:
    """Yield marked rules in parts: of several small relations or, of a large one, without its B rules, by the constants
    of their heads, since each answer has two of them only.
    """
    counts = np.bincount(relation_of[marked], minlength=n_relations)
    many = counts > RULES_AT_A_TIME
    numbers = np.cumsum(np.where(many, 0, counts)) // RULES_AT_A_TIME
    for number in np.unique(numbers[~many & (counts > 0)]):
        relations = ~many & (numbers == number)  # a look-up: ten times as fast as np.isin on a hundred million
        yield _Part(np.flatnonzero(marked & relations[relation_of]), relations)
    for relation in np.flatnonzero(many):
        rows = np.flatnonzero(marked & (relation_of == relation) & (rules.head_constant >= 0))
        heads = rules.head_constant[rows]
        n_of = np.bincount(heads, minlength=rules.vocabulary.n_entities + 1)
        numbers = np.cumsum(n_of) // RULES_AT_A_TIME
        number_of = numbers[heads]
        for number in np.unique(numbers[n_of > 0]):
            some = rows[number_of == number]
            for piece in np.array_split(some, -(-len(some) // (2 * RULES_AT_A_TIME))):
                yield _Part(piece, np.arange(n_relations) == relation, (numbers == number) & (n_of > 0))
