"""`heads="sampled"`, the paper's literal mode: the rules that sampled paths generalise to, each scored."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from learned import ENOUGH, counted, learned

from kernels import examples, random_graph
from reference.paths import all_acyclic_paths, all_cyclic_paths, generalise
from reference.scoring import Counts, Rule, score
from strategies import SmallGraph, graphs


def rules_of_paths(graph: SmallGraph, *, max_grounded: int, object_identity: bool = True) -> dict[Rule, Counts]:
    """What all straight paths of length 1 and 2 generalise to, with their scores."""
    n_entities, n_relations, triples = graph
    found: set[Rule] = set()
    for length in (1, 2):
        for every in (all_cyclic_paths, all_acyclic_paths):
            for path in every(triples, n_entities, n_relations, length):
                rules = generalise(path, n_entities, n_relations)
                grounded = not path.cyclic or length <= max_grounded
                found |= {rule for rule in rules if grounded or rule.type == "B"}
    return {rule: score(triples, n_entities, n_relations, rule, object_identity) for rule in found}


@settings(max_examples=examples(40))
@given(graphs(min_triples=1, max_triples=12), st.sampled_from([1, 2]), st.booleans())
def test_what_is_found_is_what_paths_generalise_to_with_its_score(
    graph: SmallGraph, max_grounded: int, object_identity: bool
) -> None:
    options = {"max_grounded": max_grounded, "object_identity": object_identity}
    found = counted(learned(graph, heads="sampled", paths=100_000, budget=ENOUGH, **options).rules())
    assert found.items() <= rules_of_paths(graph, **options).items()


def test_with_enough_paths_every_rule_is_found() -> None:
    for seed in range(3):
        graph = random_graph(seed, 5, 2, 10)
        learner = learned(graph, heads="sampled", paths=1_000_000, policy="random", max_grounded=2)
        assert learner.stopped_by == "paths"
        assert counted(learner.rules()) == rules_of_paths(graph, max_grounded=2)


def test_thresholds_hold_for_sampled_heads_too() -> None:
    graph = random_graph(7, 5, 2, 14)
    options = {"heads": "sampled", "paths": 1_000_000, "policy": "random"}
    found = counted(learned(graph, min_support=2, min_confidence=0.5, **options).rules())
    everything = rules_of_paths(graph, max_grounded=1)
    assert found == {rule: (p, s) for rule, (p, s) in everything.items() if s >= 2 and s / p > 0.5}
    assert 0 < len(found) < len(everything)


def test_relations_restrict_the_heads_of_sampled_paths() -> None:
    graph = random_graph(8, 5, 2, 14)
    options = {"heads": "sampled", "paths": 1_000_000, "policy": "random"}
    found = counted(learned(graph, relations=("r000001",), **options).rules())
    everything = rules_of_paths(graph, max_grounded=1)
    assert found == {rule: counts for rule, counts in everything.items() if rule.head % 2 == 1}
