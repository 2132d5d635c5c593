"""Ranks among given negatives, and written rankings, against what the scores of all candidates say."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import DataError, OptionError
from anyburl.temporal.evaluation import EvaluationProtocol, ranked_parts, split_questions
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.learner import learn_temporal
from anyburl.temporal.reasoner import TemporalReasoner

Fact = tuple[str, str, str, str]
Lists = dict[tuple[str, str, str, str], list[str]]


def history() -> list[Fact]:
    drawn = random.Random(5)
    return sorted({(f"e{drawn.randrange(7)}", f"r{drawn.randrange(2)}", f"e{drawn.randrange(7)}", str(t // 3))
                   for t in range(120)})  # fmt: skip


@pytest.fixture(scope="module", params=["none", "logit"])
def reasoner(request: pytest.FixtureRequest) -> TemporalReasoner:
    dataset = load_temporal_dataset(history(), split=(0.7, 0.15, 0.15))
    return TemporalReasoner(learn_temporal(dataset, model=request.param, threads=1), dataset, threads_used=1)


def questions_of(dataset: TemporalDataset) -> list[tuple[tuple[str, str, str, str], str]]:
    """Both questions of every fact of test, each with its answer, in the order of ranks."""
    facts = [(*dataset.vocabulary.triple_labels(*triple), dataset.clock.label(int(step)))
             for triple, step in zip(dataset.test.triples.tolist(), dataset.test.times, strict=True)]  # fmt: skip
    return [((s, r, "?", t), o) for s, r, o, t in facts] + [(("?", r, o, t), s) for s, r, o, t in facts]


def write(path: Path, lists: Lists) -> Path:
    path.write_text("".join("\t".join([*question, *negatives]) + "\n" for question, negatives in lists.items()))
    return path


@pytest.fixture(scope="module")
def scores(reasoner: TemporalReasoner) -> list[dict[str, float]]:
    """The score of every entity for each question of `questions_of`; what is not listed has none."""
    dataset = reasoner.dataset
    n, labels = dataset.vocabulary.n_entities, dataset.vocabulary.entities.to_list()
    questions, places = split_questions(dataset, reasoner.facts, EvaluationProtocol(filter="raw"))
    found: list[dict[str, float]] = []
    for part in ranked_parts(reasoner.answerer, questions, reasoner.model, n):
        for i, size in enumerate(part.sizes.tolist()):
            row = slice(i * n, i * n + size)
            found.append(dict(zip((labels[e] for e in part.kept[row]), part.scores[row].tolist(), strict=True)))
    return [found[int(np.searchsorted(questions.answer_offsets, place, side="right")) - 1] for place in places]


@given(seed=st.integers(0, 2**16))
@pytest.mark.parametrize("size", [1, 3])
def test_answers_are_ranked_among_their_negatives(
    reasoner: TemporalReasoner,
    scores: list[dict[str, float]],
    tmp_path_factory: pytest.TempPathFactory,
    size: int,
    seed: int,
) -> None:
    drawn, asked = random.Random(seed), questions_of(reasoner.dataset)
    answers: dict[tuple[str, str, str, str], set[str]] = {}
    for question, answer in asked:
        answers.setdefault(question, set()).add(answer)
    entities = reasoner.dataset.vocabulary.entities.to_list()
    lists = {question: drawn.sample(entities, size) for question in answers}
    path = write(tmp_path_factory.mktemp("negatives") / "negatives.tsv", lists)
    metrics = reasoner.evaluate(negatives=path)
    assert metrics.protocol["filter"] == "negatives"
    assert metrics.protocol["negatives"] == size
    assert f"against {size} negatives each (from negatives.tsv)" in str(metrics)
    for row, ((question, answer), of_entities) in enumerate(zip(asked, scores, strict=True)):
        rivals = [of_entities.get(entity, -np.inf) for entity in set(lists[question]) - answers[question]]
        own = of_entities.get(answer, -np.inf)
        assert metrics.ranks.optimistic[row] == 1 + sum(score > own for score in rivals)
        assert metrics.ranks.pessimistic[row] == 1 + sum(score >= own for score in rivals)


def test_all_entities_but_known_answers_are_what_the_filter_by_time_leaves(
    reasoner: TemporalReasoner, tmp_path: Path
) -> None:
    entities, facts = set(reasoner.dataset.vocabulary.entities), set(history())
    lists = {}
    for (s, r, o, t), _ in questions_of(reasoner.dataset):
        known = {fact[2] if o == "?" else fact[0] for fact in facts
                 if fact[1] == r and fact[3] == t and (fact[0] == s or fact[2] == o)}  # fmt: skip
        lists[s, r, o, t] = sorted(entities - known)
    among = reasoner.evaluate(negatives=write(tmp_path / "all.tsv", lists))
    assert among.ranks.realistic.tolist() == reasoner.evaluate().ranks.realistic.tolist()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("e1\tr0\t?\t3", "expected subject, relation, object and time, one of the two entities"),
        ("e1\tr0\te2\t3\te4", "negatives.tsv:1: expected subject"),
        ("e1\tr0\t?\t3\te99", "negatives.tsv:1: unknown entity 'e99'"),
        ("e1\tr0\t?\tsoon\te2", "negatives.tsv:1: expected a time"),
        ("e1\tr0\t?\t3\te2\ne1\tr0\t?\t3\te4", "negatives.tsv:2: expected each question once"),
        ("e1\tr0\t?\t3\te2", "expected negatives for every question, and"),
        ("", "got an empty file"),
    ],
)
def test_what_is_no_list_of_negatives_is_refused(
    reasoner: TemporalReasoner, tmp_path: Path, line: str, sentence: str
) -> None:
    path = tmp_path / "negatives.tsv"
    path.write_text(line)
    with pytest.raises(DataError, match=sentence):
        reasoner.evaluate(negatives=path)


def test_negatives_and_a_filter_exclude_each_other(reasoner: TemporalReasoner, tmp_path: Path) -> None:
    path = write(tmp_path / "negatives.tsv", {question: ["e1"] for question, _ in questions_of(reasoner.dataset)})
    with pytest.raises(OptionError, match="leave out filter, got 'raw'"):
        reasoner.evaluate(negatives=path, filter="raw")


@pytest.mark.parametrize("filter", ["time", "raw"])
def test_rankings_hold_the_best_candidates_in_order(reasoner: TemporalReasoner, tmp_path: Path, filter: str) -> None:
    reasoner.save_rankings(tmp_path / "rankings.parquet", filter=filter, top_k=5)
    frame, metrics = pl.read_parquet(tmp_path / "rankings.parquet"), reasoner.evaluate(filter=filter)
    assert frame["rank"].to_list() == metrics.ranks.realistic.tolist()
    facts = set(history())
    asked = zip(frame.rows(named=True), questions_of(reasoner.dataset), strict=True)
    for number, (row, (question, answer)) in enumerate(asked):
        assert (row["subject"] if question[0] == "?" else row["object"]) == answer
        candidates, scores = row["candidates"], row["scores"]
        assert len(candidates) == len(set(candidates)) <= 5
        assert scores == sorted(scores, reverse=True)
        others = [(c, *question[1:]) if question[0] == "?" else (*question[:2], c, question[3]) for c in candidates]
        if filter == "time":
            assert all(fact not in facts or c == answer for fact, c in zip(others, candidates, strict=True))
        if answer in candidates:
            own = scores[candidates.index(answer)]
            assert metrics.ranks.optimistic[number] == 1 + sum(score > own for score in scores)


def test_text_has_the_moment_after_the_triple(reasoner: TemporalReasoner, tmp_path: Path) -> None:
    reasoner.save_rankings(tmp_path / "rankings.txt", top_k=2)
    lines, test = (tmp_path / "rankings.txt").read_text().splitlines(), reasoner.dataset.test
    assert len(lines) == 3 * len(test)
    (subject, relation, _, time), answer = questions_of(reasoner.dataset)[0]
    assert lines[0] == f"{subject} {relation} {answer} {time}"
    assert [line.split(":")[0] for line in lines[1:3]] == ["Heads", "Tails"]
