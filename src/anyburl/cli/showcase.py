"""What the demo shows of ranking: metrics on the test split, and some predictions with their proofs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyburl.cli.beside import CompilingBeside
from anyburl.cli.consoles import PlainConsole, print_whole
from anyburl.cli.metrics import results_table
from anyburl.cli.session import compile_kernels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from anyburl.evaluation.metrics import Metrics
    from anyburl.explanation.explanation import Explanation
    from anyburl.explanation.record import Fact
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.dataset import Dataset

AGGREGATIONS = ("max", "noisy-or-top:5")
N_PREDICTIONS = 3
N_REASONS = 2


@dataclass(frozen=True)
class Showcase:
    """The metrics by aggregation, and explained predictions."""

    metrics: dict[str, Metrics]
    predictions: list[Explanation]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "metrics": {name: metrics.to_json()["metrics"] for name, metrics in self.metrics.items()},
            "predictions": [explanation.to_json() for explanation in self.predictions],
        }


def make_showcase(
    rules: RuleSet, dataset: Dataset, threads: int | None, beside: CompilingBeside, notes: PlainConsole
) -> Showcase:
    """Rank the test split, and explain some of its triples that are ranked first."""
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.reasoning.warmup import warm_up

    def compile_ranking() -> None:
        beside.wait()
        warm_up(dataset.vocabulary.n_relations, explaining=True)

    compile_kernels(compile_ranking, notes)
    reasoner = Reasoner(rules, dataset, aggregation=AGGREGATIONS[0], threads=threads)
    metrics = {name: reasoner.with_aggregation(name).evaluate() for name in AGGREGATIONS}
    facts = pick_predictions(reasoner)
    return Showcase(metrics, [reasoner.explain(fact, top=N_REASONS, groundings=1) for fact in facts])


def pick_predictions(reasoner: Reasoner, k: int = N_PREDICTIONS) -> list[Fact]:
    """Return test triples, each of another relation, whose object is ranked first by a B rule of two steps.

    Those with the most confident rules are taken, of equals the first in the alphabet.
    """
    import numpy as np

    from anyburl.rules.types import RuleType

    rules = reasoner.rules
    if not len(rules):
        return []
    vocabulary, triples = reasoner.vocabulary, reasoner.dataset.test.triples
    best = _first_by(reasoner)
    two_steps = np.append((rules.type == RuleType.BINARY.code) & (rules.lengths == 2), False)[best]
    confidences = np.append(rules.confidence(reasoner.options.smoothing), 0.0)[best]
    chosen: dict[int, Fact] = {}
    for row in np.argsort(-confidences, kind="stable"):
        subject, relation, object = triples[row].tolist()
        if len(chosen) < k and two_steps[row] and relation not in chosen:
            labels = vocabulary.entity_label(subject), vocabulary.relation_label(relation)
            chosen[relation] = (*labels, vocabulary.entity_label(object))
    return list(chosen.values())


def _first_by(reasoner: Reasoner) -> NDArray[np.int32]:
    """Return for each test triple the best rule behind its object if that is ranked first, alone, else -1."""
    import numpy as np

    from anyburl.ranking.queries import make_queries
    from anyburl.ranking.ranks import target_ranks
    from anyburl.triples.dataset import SPLITS

    dataset, vocabulary = reasoner.dataset, reasoner.vocabulary
    triples = dataset.test.triples
    queries, places = make_queries(triples, [dataset.split(name).triples for name in SPLITS], vocabulary.n_relations)
    answers = reasoner.ranker.answer(queries)
    ranks = target_ranks(queries, answers, vocabulary.n_entities).at(places[: len(triples)])
    best = answers.target_rules[places[: len(triples)]]
    return np.where(ranks.pessimistic == 1, best, np.int32(-1))


def show(showcase: Showcase | None, n_facts: int, out: PlainConsole) -> None:
    """Print the metrics and the predictions, if there are any."""
    from anyburl.explanation.render import to_tree

    if showcase is None:
        return
    out.say("")
    out.say("How good are the rules? We ask them for the subject and the object", "bold")
    out.say(f"of {n_facts:,} facts that were not used for learning. hits@1 is the share of right answers at rank 1.")
    print_whole(results_table(list(showcase.metrics.items()), "scores by"))
    out.say(
        "Why? Here are some of these facts, the rules that predict them, and the facts that make the rules fire:",
        "bold",
    )
    for explanation in showcase.predictions:
        out.say("")
        print_whole(to_tree(explanation))
