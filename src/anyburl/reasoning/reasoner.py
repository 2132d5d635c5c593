"""`Reasoner`: rules and data, loaded once, then ready for any question.

What few programs ask for is imported by the method that needs it: that is a third of what one `predict` would import
of this package otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import callback, choose_options, flag, share, texts, whole
from anyburl.base.errors import DataError, OptionError, RunError
from anyburl.base.files import at_home
from anyburl.base.machine import check_not_forked
from anyburl.data.dataset import SPLITS, Dataset, facts_in_order, load_dataset, load_recorded
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import held_by, split_bits, split_names
from anyburl.learning.options import DistilKeywords, DistilOptions
from anyburl.models.calibration import Calibration, save_calibration
from anyburl.ranking.options import RankKeywords, RankOptions
from anyburl.ranking.ranker import Progress, Ranker
from anyburl.reasoning.completion.options import CompleteKeywords, CompleteOptions, check_missing
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.opening import (
    BackendChoice,
    Feedback,
    Opened,
    answering_options,
    kept_calibration,
    make_calibration_key,
    open_rules,
    open_run,
    with_fallback,
)
from anyburl.reasoning.queries import (
    Answer,
    AnswerFrames,
    Answers,
    QueryIds,
    answer_columns,
    encode_entity,
    encode_queries,
    encode_query,
    make_query,
)
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import described_run

if TYPE_CHECKING:
    from anyburl.models.distilling.distil import Distilled, Watch
    from anyburl.models.tuned.listing import OtherModel
    from anyburl.reasoning.completion.judging import Judge, Verdict
    from anyburl.reasoning.completion.promises import CalibrationReport
    from anyburl.reasoning.estimation import Estimate, Estimator
    from anyburl.reasoning.explanation.explain import Explanation
    from anyburl.reasoning.metrics import Metrics

PathLike = str | os.PathLike[str]


class Reasoner:
    """Applies rules to data: predicts, ranks, evaluates, explains and completes.

    `rules` is a `RuleSet`, a rule file or a run folder; `data` is anything that `load_dataset` takes. `options`, or the
    fields of `RankOptions` as keywords, define how candidates are ranked. Rules with another vocabulary are matched by
    label; rules that do not match are left out, with a warning. With `names`, questions may use readable names. With
    `engine="ray"`, questions are answered on the Ray cluster at `address`, or on this machine. `seed` is used only by
    `aggregation="tuned"`. `other` is the model that `aggregation="hybrid"` combines with the rules, by default the
    embedding of the run folder. A reasoner is a context manager: `close` stops what the engine started.
    """

    def __init__(
        self,
        rules: RuleSet | PathLike,
        data: Any,
        options: RankOptions | None = None,
        *,
        names: Names | None = None,
        engine: str = "threads",
        address: str | None = None,
        seed: int = 0,
        other: OtherModel | None = None,
        **keywords: Unpack[RankKeywords],
    ) -> None:
        chosen, seed = choose_options(RankOptions, options, keywords), whole("seed", seed, 0)
        check_not_forked()
        rule_set = rules if isinstance(rules, RuleSet) else RuleSet.load(rules)
        dataset = data if isinstance(data, Dataset) else load_dataset(data)
        engine_chosen = BackendChoice(name=engine, address=address)
        run = _run_folder(rules)
        self._set(
            open_rules(rule_set, dataset, chosen, engine_chosen, Feedback(), seed=seed, other=other, run=run), names
        )
        self.given_rules = rule_set  # before they were matched with the data

    @classmethod
    def open(
        cls,
        run: PathLike,
        data: Any = None,
        options: RankOptions | None = None,
        *,
        names: Names | None = None,
        prepare: bool = True,
        engine: str = "threads",
        address: str | None = None,
        seed: int = 0,
        other: OtherModel | None = None,
        feedback: Feedback | None = None,
        **keywords: Unpack[RankKeywords],
    ) -> Self:
        """Open a run folder on its own data; a prepared run opens at once.

        Otherwise the run is prepared now, unless `prepare` is false. With other `data`, only the tuned model is kept,
        which is trained on the run's own data.
        """
        folder, chosen = at_home(run), choose_options(RankOptions, options, keywords)
        feedback = feedback or Feedback()
        engine_chosen, seed = BackendChoice(name=engine, address=address), whole("seed", seed, 0)
        prepare = flag("prepare", prepare)
        described = described_run(folder)["data"]

        def load() -> tuple[RuleSet, Dataset]:
            with feedback.watch(f"reading {run}", f"read {run}"):
                return RuleSet.load(folder), load_recorded(described)

        if data is None:
            if described.get("source") is None:
                raise RunError(f"{run} does not record where its data came from: pass data")
            opened = open_run(folder, load, chosen, engine_chosen, feedback, seed=seed, prepare=prepare, other=other)
        else:
            dataset = data if isinstance(data, Dataset) else load_dataset(data)
            rules = RuleSet.load(folder)
            opened = open_rules(rules, dataset, chosen, engine_chosen, feedback, seed=seed, other=other, run=folder)
        return cls.of(opened, names)

    @classmethod
    def of(cls, opened: Opened, names: Names | None = None) -> Self:
        """Return a reasoner made of ready parts."""
        made = cls.__new__(cls)
        made._set(opened, names)
        return made

    def _set(self, opened: Opened, names: Names | None) -> None:
        if names is not None and not isinstance(names, Names):
            raise OptionError(f"expected names as Names, got {type(names).__name__}")
        self.ranker: Ranker = opened.ranker
        self.dataset: Dataset = opened.dataset
        self.seconds: dict[str, float] = opened.seconds
        self.given_rules = opened.ranker.rules
        self.names = names or opened.dataset.names
        self.calibration: Calibration | None = opened.calibration
        self._seed, self._run = opened.seed, opened.run

    @property
    def rules(self) -> RuleSet:
        """The rules in use, with the ids of the data."""
        return self.ranker.rules

    @property
    def options(self) -> RankOptions:
        return self.ranker.options

    @property
    def vocabulary(self) -> Vocabulary:
        return self.dataset.vocabulary

    @overload
    def predict(
        self, subject: str | None, relation: str, object: str | None, *, top: int = 10, include_known: bool = False
    ) -> Answers: ...

    @overload
    def predict(self, subject: Any, *, top: int = 10, include_known: bool = False) -> pl.DataFrame: ...

    def predict(
        self,
        subject: Any,
        relation: str | None = None,
        object: str | None = None,
        *,
        top: int = 10,
        include_known: bool = False,
    ) -> Answers | pl.DataFrame:
        """Return the `top` best answers to (subject, relation, ?) or (?, relation, object), with None for the ?.

        Many queries, as tuples or a frame with these columns, return a frame with one row per answer. Answers that the
        train split states are left out unless `include_known` is true.
        """
        if relation is None:
            frames = list(self.predict_frames(subject, top=top, include_known=include_known))
            return pl.concat(frames)
        return self._predict_one(subject, relation, object, top, include_known)

    def predict_frames(
        self,
        queries: Any,
        *,
        top: int = 10,
        include_known: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the answers to many queries in frames like those of `predict`, so that memory does not grow with the
        output.

        `progress` is called with the number of queries answered. There is always at least one frame.
        """
        if not isinstance(queries, QueryIds):
            queries = encode_queries(queries, self.vocabulary, self.names, self.dataset.train.triples)
        parts = answer_columns(
            self.ranker,
            self.dataset,
            queries,
            top=top,
            include_known=include_known,
            only_best=True,
            progress=progress,
        )
        for columns in parts:
            yield self._frames.frame(columns)
        if not len(queries):
            yield self._frames.empty()

    def _predict_one(
        self, subject: str | None, relation: str, object: str | None, top: int, include_known: bool
    ) -> Answers:
        query = make_query(subject, relation, object)
        entity, directed = encode_query(query, self.vocabulary, self.names, self.dataset.train.triples)
        questions = QueryIds.one(entity, directed)
        (columns,) = answer_columns(self.ranker, self.dataset, questions, top=top, include_known=include_known)
        answers, vocabulary = Answers(), self.vocabulary
        for row, triple in enumerate(columns.triples.tolist()):
            answers.append(
                Answer(
                    entity=vocabulary.entity_label(int(columns.entities[row])),
                    score=float(columns.scores[row]),
                    rank=int(columns.ranks[row]),
                    triple=vocabulary.triple_labels(*triple),
                    known=split_names(int(columns.known[row])),
                    rule=self.rules.rule_behind(int(columns.rules[row])),
                    n_rules=int(columns.n_rules[row]),
                    _explain=self.explain,
                )
            )
        answers.n_candidates, answers.n_known = int(columns.n_candidates[0]), int(columns.n_known[0])
        return answers

    def rank(self, split: str = "test", *, top_k: int | None = None) -> pl.DataFrame:
        """Return the `top_k` best candidates, filtered, of both queries of every triple of a split, one row each."""
        return pl.concat(list(self.rank_frames(split, top_k=top_k)))

    def rank_frames(
        self, split: str = "test", *, top_k: int | None = None, progress: Progress | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield what `rank` returns in frames; `progress` is called with the number of triples ranked."""
        from anyburl.reasoning.evaluation import ranking_frames

        chosen = self.options.top_k if top_k is None else top_k
        yield from ranking_frames(self.ranker, self.dataset, split, chosen, progress)

    def save_rankings(
        self, path: PathLike, split: str = "test", *, top_k: int | None = None, progress: Progress | None = None
    ) -> None:
        """Write what `rank` returns: as Parquet with the suffix .parquet, else as AnyBURL's text, also with .gz."""
        from anyburl.reasoning.evaluation import write_rankings

        write_rankings(path, self.ranker, self.dataset, split=split, top_k=top_k, progress=progress)

    def evaluate(
        self,
        split: str = "test",
        *,
        relations: Sequence[str] | None = None,
        sample: int | None = None,
        protocol: str = "all",
        progress: Progress | None = None,
    ) -> Metrics:
        """Rank both queries of every triple of `split` and return the filtered metrics.

        `relations` are all by default or, if the run was learned for some relations only, these. With `sample`, so many
        triples are drawn at random. `protocol` says what answers are ranked against: "all" entities, 49 "sampled" at
        random as in GraIL, or "estimated", which ranks against all and computes the average sampled figures from that.
        `progress` is called with the number of questions answered.
        """
        from anyburl.reasoning.evaluation import evaluate_split

        return evaluate_split(
            self.ranker,
            self.dataset,
            split,
            self.seconds,
            progress,
            protocol=protocol,
            seed=self._seed,
            relations=self.evaluated_relations(relations),
            sample=sample,
        )

    def evaluated_relations(self, relations: Sequence[str] | None = None) -> list[int] | None:
        """Return the ids of relations; by default, of those that the run was learned for, None if that is all."""
        if relations is None:
            learned = described_run(self._run)["options"].get("relations") if self._run is not None else None
            return learned and np.flatnonzero(self.vocabulary.relations.is_in(learned)).tolist()
        return sorted(
            {
                self.names.relation_id(label, self.vocabulary)
                for label in texts("relations", relations, "a list of relations")
            }
        )

    def calibrate(
        self, *, missing: float | Mapping[str, float] | None = None, progress: Progress | None = None
    ) -> CalibrationReport:
        """Find out how likely proposed facts are to be true, and return the report.

        Facts of the valid split, or of train if there is none, are hidden, everything is proposed from the rest, and
        what comes back tells. What no data tells is an assumption: `missing`, the share of the true facts that no split
        states, overall or by relation. By default, as many facts are missing as the valid split has.

        From then on, facts have a `probability`. If the reasoner was opened from a run folder, the calibration is kept
        there. `progress` is called with the number of entities asked about.
        """
        from anyburl.reasoning.completion.complete import missing_by_id
        from anyburl.reasoning.completion.promises import calibrate_ranker

        shares = (
            None if missing is None else missing_by_id(check_missing("missing", missing), self.vocabulary, self.names)
        )
        report = calibrate_ranker(
            self.judge.ranker,
            self.dataset,
            self._seed,
            properties=self.judge.conflicts.properties,
            missing=shares,
            protocol=answering_options(self.ranker, self._seed),
            progress=progress,
        )
        self.calibration = report.calibration
        if self._run is not None:
            key = make_calibration_key(self.ranker, self.dataset, self._seed, self._run)
            save_calibration(self._run, report.calibration, report.to_json(), key)
        return report

    @cached_property
    def judge(self) -> Judge:
        """The judge of facts: which of them stated facts contradict, and how likely the others are."""
        return self._data_judge

    @cached_property
    def _data_judge(self) -> Judge:
        """The same without the verdicts of people."""
        from anyburl.reasoning.completion.judging import Judge, known_properties

        return Judge.of(self.ranker, self.dataset, known_properties(self.dataset))

    def check(
        self,
        facts: Any,
        *,
        min_probability: float = 0.5,
        known_false: Any = None,
        known_true: Any = None,
        as_if_unstated: bool = False,
        progress: Progress | None = None,
    ) -> pl.DataFrame:
        """Judge facts from elsewhere, one row each: `verdict` is "stated", "supported", "contradicted" or "unknown".

        `facts` is anything that `load_dataset` takes, such as a list of (subject, relation, object); rows are in its
        order. They are supported if their `probability` (before `calibrate`, their `score`) is at least
        `min_probability`. `rule` and `facts` are the reasons for a fact; `conflict`, a stated fact, and `instead`, the
        value that rules prefer where there can be only one, those against it. `note` says what is not in the data.

        With `known_false`, facts that somebody found to be false, the probability is learned from these and from
        `known_true` (by default, the valid split): it holds if as many of `facts` are true as of them. With
        `as_if_unstated`, facts of valid and test are judged by train alone, as if nobody had stated them: so
        probabilities can be compared with what is known. `progress` is called with the number of facts.
        """
        from anyburl.models.classifier import fit_classifier
        from anyburl.reasoning.completion.judging import Checker, Judge

        share("min_probability", min_probability)
        callback("progress", progress)
        splits = ("train",) if flag("as_if_unstated", as_if_unstated) else SPLITS
        judge = self.judge
        if as_if_unstated:
            judge = Judge.of(self.ranker, self.dataset, judge.conflicts.properties, splits)
        classifier = None
        if known_false is not None:
            true = self.dataset.valid.triples if known_true is None else self._unstated(known_true)
            classifier = fit_classifier(self.ranker, true, self._unstated(known_false), self._seed)
        elif known_true is not None:
            raise OptionError("known_true needs known_false: facts that are known to be false")
        checker = Checker(judge, self.names, min_probability, self.calibration, classifier, splits)
        parts = []
        for part in checker.frames(_labelled(facts)):
            parts.append(part)
            if progress:
                progress(len(part))
        if not parts:
            raise DataError("expected facts to check, got none")
        return pl.concat(parts)

    def _unstated(self, facts: Any) -> NDArray[np.int32]:
        """Return the ids of facts, each once, without those that train states or that have labels of other data."""
        from anyburl.reasoning.completion.judging import CHECKED, encode_facts

        triples, _ = encode_facts(_labelled(facts).select(CHECKED), self.vocabulary, self.names)
        triples = np.unique(triples[(triples >= 0).all(axis=1)], axis=0)
        return np.ascontiguousarray(triples[held_by(self.dataset, triples) & split_bits(("train",)) == 0])

    def verdict(self, triple: Fact) -> Verdict:
        """Return how likely a fact is, if that is known, and the stated fact that contradicts it, if there is one."""
        return self.verdicts([triple])[0]

    def verdicts(self, triples: Sequence[Fact]) -> list[Verdict]:
        """Return the same for many facts."""
        words = self.vocabulary
        ids = [(words.entity_id(s), words.relation_id(r), words.entity_id(o)) for s, r, o in triples]
        return self.judge.verdicts(self.calibration, np.array(ids, np.int32).reshape(-1, 3))

    def apply_verdicts(self, accepted: Sequence[Fact], rejected: Sequence[Fact]) -> None:
        """Treat facts that people found true as stated, propose none that they judged, and correct probabilities
        accordingly.

        Facts with labels that are not in the data are left out. What was applied before is replaced.
        """
        triples = [self.ids_of(facts) for facts in (accepted, rejected)]
        judge = self._data_judge
        self.judge = judge.with_verdicts(*triples) if any(map(len, triples)) else judge
        if self.calibration is None:
            return
        both = np.concatenate(triples)
        calibration = replace(self.calibration, shift=np.zeros_like(self.calibration.shift))
        likely, _ = judge.probabilities(calibration, both)
        is_true = np.arange(len(both)) < len(triples[0])
        known = ~np.isnan(likely)
        self.calibration = calibration.with_verdicts(both[known, 1], likely[known], is_true[known])

    def ids_of(self, facts: Sequence[Fact]) -> NDArray[np.int32]:
        """Return the ids of facts, without those that have labels of other data."""
        from anyburl.reasoning.completion.judging import CHECKED, encode_facts

        labels = pl.DataFrame(list(facts), schema=dict.fromkeys(CHECKED, pl.String), orient="row")
        triples, _ = encode_facts(labels, self.vocabulary, self.names)
        return triples[(triples >= 0).all(axis=1)]

    def properties(self) -> pl.DataFrame:
        """Return what train and valid show about relations: whether they have one object or one subject, are
        asymmetric or irreflexive, which share of those that should have a value has one, and how many pairs of their
        values are disjoint. Relations without any of these are left out.
        """
        return self.judge.conflicts.properties.to_frame(self.vocabulary)

    def explain(self, triple: Fact, *, top: int = 5, groundings: int = 3) -> Explanation:
        """Return the rules that predict `triple` (subject, relation, object), which may be known or new, true or false.

        The `top` best rules are returned, each with up to `groundings` ways in which train facts make it fire. If none
        fires, `near_miss` is the strongest rule that lacks one fact.
        """
        from anyburl.reasoning.explanation.explain import explain_triple

        if not isinstance(triple, tuple | list) or len(triple) != 3:
            raise DataError(f"expected a triple (subject, relation, object), got {triple!r}")
        vocabulary, (subject, relation, object) = self.vocabulary, triple
        relation_id, facts = self.names.relation_id(relation, vocabulary), self.dataset.train.triples
        labels = vocabulary.triple_labels(
            encode_entity(subject, vocabulary, self.names, relation_id, 0, facts),
            relation_id,
            encode_entity(object, vocabulary, self.names, relation_id, 2, facts),
        )
        return explain_triple(self.ranker, self.dataset, labels, top=top, groundings=groundings)

    @cached_property
    def estimator(self) -> Estimator:
        """The estimator of values of attributes."""
        from anyburl.reasoning.estimation import Estimator

        return Estimator(self.dataset, self.ranker.graph, self.names)

    def estimate(self, entity: str, attribute: str) -> Estimate:
        """Estimate a value of an attribute from those of entities that have something in common with this one.

        The estimate has a range and its reasons: the groups of entities whose values are closest together.
        `estimator.evaluate(split)` tells how good estimates are.
        """
        return self.estimator.estimate(entity, attribute)

    def complete(
        self,
        options: CompleteOptions | None = None,
        *,
        progress: Progress | None = None,
        **keywords: Unpack[CompleteKeywords],
    ) -> Iterator[pl.DataFrame]:
        """Yield, in frames, every fact that the rules imply with a high enough score and no split states.

        `options`, or the fields of `CompleteOptions` as keywords, select the facts; by default those with a score of at
        least 0.8. The score of a fact is its score as an answer to (s, r, ?) or (?, r, o), whichever is higher. Memory
        does not grow with the number of facts, and there is always at least one frame. `progress` is called with the
        number of entities asked about.
        """
        from anyburl.reasoning.completion.complete import complete_graph

        chosen = choose_options(CompleteOptions, options, keywords)
        return complete_graph(self.judge, chosen, names=self.names, calibration=self.calibration, progress=progress)

    def distil(
        self,
        options: DistilOptions | None = None,
        *,
        watch: Watch | None = None,
        for_model: bool = False,
        **keywords: Unpack[DistilKeywords],
    ) -> Distilled:
        """Choose the rules that rank held-out facts best: `rules=100`, `per_relation=5` or `quality=0.98`.

        The choice suits this reasoner's aggregation and is made by facts of valid and train; test is not read. With
        `for_model`, or with a model as the aggregation, it is made by train alone, since the model learns from valid.
        `watch(doing, done)` returns a context in which a part of the work is done.
        """
        from anyburl.models.distilling.distil import distil_ranker, unwatched

        chosen = choose_options(DistilOptions, options, keywords)
        if chosen.relations is not None:
            labels = (self.names.label_of(label, self.vocabulary.relations, "relation") for label in chosen.relations)
            chosen = replace(chosen, relations=tuple(labels))
        return distil_ranker(self.ranker, self.dataset, chosen, watch or unwatched, for_model=for_model)

    def with_aggregation(self, aggregation: str) -> Reasoner:
        """Return a reasoner on the same index with another aggregation; not for "tuned"."""
        ranker = self.ranker.with_aggregation(aggregation)
        if ranker.aggregation.needs_model:
            raise OptionError(f"aggregation={aggregation!r} needs a model: make a reasoner with it")
        run, seed = self._run, self._seed
        calibration = kept_calibration(ranker, self.dataset, seed, run)
        opened = Opened(with_fallback(ranker), self.dataset, self.seconds, seed, run, calibration)
        return Reasoner.of(opened, self.names)

    def close(self) -> None:
        """Stop what the engine started."""
        self.ranker.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @cached_property
    def _frames(self) -> AnswerFrames:
        return AnswerFrames(self.ranker)

    def __repr__(self) -> str:
        return f"Reasoner({len(self.rules):,} rules on {self.dataset.name}, {self.options.aggregation})"


def _run_folder(rules: RuleSet | PathLike) -> Path | None:
    """Return the run folder that rules are given by, if they are."""
    folder = None if isinstance(rules, RuleSet) else at_home(rules)
    return folder if folder and folder.is_dir() else None


def _labelled(facts: Any) -> pl.DataFrame:
    """Return facts as a frame of labels, in their order."""
    from anyburl.reasoning.completion.judging import CHECKED

    frame = facts if isinstance(facts, pl.DataFrame) else facts_in_order(facts)
    if missing := [name for name in CHECKED if name not in frame.columns]:
        raise DataError(f"expected the columns {', '.join(CHECKED)}, got a frame without {', '.join(missing)}")
    return frame
