"""Generated graphs: their planted rules, counted again in plain Python; their sizes, degrees and splits."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anyburl
from anyburl.rules.rule import Atom, Constant, Term, Variable
from generate import main
from synthetic import GeneratedGraph, generate_graph

Labels = set[tuple[str, str, str]]
SIZES = (1_000, 3_000, 20_000)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, GeneratedGraph]:
    """Return a graph of each size."""
    folder = tmp_path_factory.mktemp("graphs")
    return {size: generate_graph(folder / str(size), size, seed=5) for size in SIZES}


def read(graph: GeneratedGraph, split: str) -> list[tuple[str, ...]]:
    """Return the lines of a split."""
    text = (graph.folder / f"{split}.tsv").read_text("utf-8")
    return [tuple(line.split("\t")) for line in text.splitlines()]


def groundings(body: tuple[Atom, ...], triples: dict[str, list[tuple[str, str]]]) -> list[dict[Term, str]]:
    """Return what the terms of a body may stand for, different terms for different entities."""
    found: list[dict[Term, str]] = [{}]
    for atom in body:
        found = [extended for partial in found for extended in extensions(atom, partial, triples[atom.relation])]
    return found


def extensions(atom: Atom, partial: dict[Term, str], pairs: list[tuple[str, str]]) -> list[dict[Term, str]]:
    extended = []
    for pair in pairs:
        joint = {**partial, **dict(zip((atom.subject, atom.object), pair, strict=True))}
        fits = all(joint[term] == entity for term, entity in partial.items())
        fits &= all(term.label == entity for term, entity in joint.items() if isinstance(term, Constant))
        if fits and len(set(joint.values())) == len(joint):
            extended.append(joint)
    return extended


def count(rule: anyburl.Rule, triples: dict[str, list[tuple[str, str]]]) -> tuple[int, int]:
    """Return predictions and support of a rule, as they are defined."""

    def value(term: Term, grounding: dict[Term, str]) -> str:
        return grounding[term] if isinstance(term, Variable) else term.label

    ends = rule.head.subject, rule.head.object
    predicted = {tuple(value(end, grounding) for end in ends) for grounding in groundings(rule.body, triples)}
    return len(predicted), len(predicted & set(triples[rule.head.relation]))


def by_relation(lines: list[tuple[str, ...]]) -> dict[str, list[tuple[str, str]]]:
    pairs: dict[str, list[tuple[str, str]]] = {}
    for subject, relation, object in lines:
        pairs.setdefault(relation, []).append((subject, object))
    return pairs


@pytest.mark.parametrize("size", SIZES[:2])
def test_the_counts_of_planted_rules_are_those_of_the_definition(graphs: dict[int, GeneratedGraph], size: int) -> None:
    triples = by_relation(read(graphs[size], "train"))
    for planted in graphs[size].planted:
        assert count(planted.rule, triples) == (planted.predictions, planted.support), planted.rule


def test_planted_rules_are_of_all_types_and_near_the_confidence_asked_for(
    graphs: dict[int, GeneratedGraph],
) -> None:
    planted = graphs[20_000].planted
    shapes = Counter((str(rule.rule.type), rule.rule.length) for rule in planted)
    assert shapes == {("B", 1): 3, ("B", 2): 3, ("B", 3): 3, ("Uc", 1): 3, ("Ud", 1): 3}
    for rule in planted:
        assert rule.support >= 10
        assert rule.confidence == pytest.approx(rule.wanted, abs=0.15)


def test_planted_json_says_the_same(graphs: dict[int, GeneratedGraph]) -> None:
    graph = graphs[3_000]
    stored = json.loads((graph.folder / "planted.json").read_text("utf-8"))
    assert stored == graph.to_json()
    rules = [anyburl.parse_rule(entry["rule"]) for entry in stored["rules"]]
    assert rules == [planted.rule for planted in graph.planted]


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_near_what_was_asked_for(graphs: dict[int, GeneratedGraph], size: int) -> None:
    graph = graphs[size]
    data = anyburl.load_dataset(graph.folder)
    counts = {split: len(data.split(split)) for split in ("train", "valid", "test")}
    assert counts == graph.n_triples
    assert sum(counts.values()) == pytest.approx(size, rel=0.05)
    assert 0 < counts["valid"] <= 0.01 * size
    assert data.vocabulary.n_entities == graph.n_entities
    assert data.vocabulary.n_relations == graph.n_relations


@pytest.mark.parametrize("size", SIZES)
def test_no_triple_occurs_twice(graphs: dict[int, GeneratedGraph], size: int) -> None:
    lines = [line for split in ("train", "valid", "test") for line in read(graphs[size], split)]
    assert len(set(lines)) == len(lines)


def test_relations_join_two_types(graphs: dict[int, GeneratedGraph]) -> None:
    labels = pl.DataFrame(read(graphs[20_000], "train"), schema=["subject", "relation", "object"], orient="row")
    types = labels.with_columns(pl.col("subject", "object").str.replace(r"\d+$", ""))
    assert types.unique().height == types["relation"].n_unique()


def test_degrees_have_a_heavy_tail(tmp_path: Path) -> None:
    graph = generate_graph(tmp_path / "graph", 200_000, seed=1)
    degrees = Counter(entity for line in read(graph, "train") for entity in (line[0], line[2]))
    ordered = sorted(degrees.values(), reverse=True)
    assert ordered[0] > 50 * ordered[len(ordered) // 2]
    assert sum(ordered[: len(ordered) // 100]) > 0.1 * sum(ordered)


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        generate_graph(tmp_path / name, 2_000, seed=seed)
    for file in ("train.tsv", "valid.tsv", "test.tsv", "planted.json"):
        one, same, other = ((tmp_path / name / file).read_bytes() for name in ("one", "same", "other"))
        assert one == same
        assert one != other


def test_entities_and_relations_can_be_asked_for(tmp_path: Path) -> None:
    graph = generate_graph(tmp_path / "graph", 20_000, entities=8_000, relations=12)
    assert graph.n_relations == 12
    assert len(graph.planted) == 5
    assert 5_000 < graph.n_entities <= 8_000  # in a sparse graph, some of them have no triple


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"triples": 999}, "triples must be at least 1000, got 999"),
        ({"triples": 1_000, "entities": 3}, "entities must be at least 200, got 3"),
        ({"triples": 1_000, "relations": 9}, "relations must be at least 10, got 9"),
        ({"triples": 1_000, "seed": -1}, "seed must be at least 0, got -1"),
        ({"triples": "x"}, "triples must be a whole number, got 'x'"),
        ({"triples": 1_000, "entities": 1.5}, "entities must be a whole number, got 1.5"),
        ({"triples": 1_000, "seed": None}, "seed must be a whole number, got None"),
        ({"triples": 1_000, "progress": "show"}, "progress must be"),
        ({"triples": 1_000_000, "entities": 200, "relations": 10}, "ask for more entities or relations"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(anyburl.OptionError, match=message):
        generate_graph(tmp_path / "graph", **asked)
    assert not list((tmp_path / "graph").glob("*"))


def test_a_folder_that_holds_a_graph_is_left_alone(graphs: dict[int, GeneratedGraph]) -> None:
    with pytest.raises(anyburl.DataError, match="already contains a graph"):
        generate_graph(graphs[1_000].folder, 1_000)


def test_learning_finds_the_planted_rules_with_their_true_counts(graphs: dict[int, GeneratedGraph]) -> None:
    graph = graphs[3_000]
    data = anyburl.load_dataset(graph.folder)
    heads = tuple(planted.rule.head.relation for planted in graph.planted)
    rules = anyburl.learn(data, paths=200_000, seed=1, min_confidence=0.1, relations=heads)
    texts = dict(
        zip(rules.texts().to_list(), zip(rules.predictions, rules.support, rules.exact, strict=True), strict=True)
    )
    for planted in graph.planted:
        assert texts[str(planted.rule)] == (planted.predictions, planted.support, True), planted.rule


def test_scores_counted_by_the_system_are_the_true_ones(graphs: dict[int, GeneratedGraph], tmp_path: Path) -> None:
    graph = graphs[20_000]
    lines = [f"1\t1\t1.0\t{planted.rule}" for planted in graph.planted]
    (tmp_path / "rules.txt").write_text("\n".join(lines) + "\n", "utf-8")
    data = anyburl.load_dataset(graph.folder)
    rules = anyburl.rescore(anyburl.RuleSet.load(tmp_path / "rules.txt", data.vocabulary), data.train)
    counted = list(zip(rules.predictions.tolist(), rules.support.tolist(), strict=True))
    assert counted == [(planted.predictions, planted.support) for planted in graph.planted]


def test_a_folder_with_train_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill before the last moment leaves no graph, and the next one may be written there."""

    def fail(path: Path, text: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("synthetic.generate.replace_text", fail)
        with pytest.raises(KeyboardInterrupt):
            generate_graph(tmp_path / "made", 1_000)
    assert not list((tmp_path / "made").glob("train*"))
    generate_graph(tmp_path / "made", 1_000)
    assert {path.name for path in (tmp_path / "made").iterdir()} == {
        "train.tsv",
        "valid.tsv",
        "test.tsv",
        "planted.json",
    }


def test_the_script_prints_what_planted_json_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "graph"
    asked = ["--triples", "2000", "--relations", "20", "--entities", "500", "--seed", "3"]
    assert main([*asked, "--out", str(folder)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("out") == str(folder)
    assert printed == json.loads((folder / "planted.json").read_text("utf-8"))
    assert printed["asked"] == {"triples": 2_000, "entities": 500, "relations": 20, "seed": 3}
    assert main([*asked, "--out", str(folder)]) == 2
    assert "already contains a graph" in capsys.readouterr().err
