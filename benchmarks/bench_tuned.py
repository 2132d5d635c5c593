"""Rules alone, and with an embedding: MRR by max, tuned and hybrid, for several seeds, with the time it took.

python benchmarks/bench_tuned.py [--data WN18RR,CoDEx-S] [--seeds 1,2,3] [--seconds 60] [--embeddings FOLDER]

With --runs FOLDER, rules are learned into FOLDER/NAME-SEED, or taken from there. With --embeddings FOLDER, hybrid takes
FOLDER/NAME-SEED/embedding.safetensors, as `anyburl embed NAME --out FOLDER/NAME-SEED` makes it. With --sample N, N
triples of the test split are ranked, the same in every run. Figures are stored as soon as they are known; what is
stored already is measured again only with --again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import anyburl
from anyburl.data.table import TripleTable
from anyburl.models.embedding import FILE, load_embedding, read_arrays
from anyburl.models.tuned.observations import rule_groups
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import tune
from anyburl.ranking.queries import make_queries, take_queries, target_ranks
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.evaluation import evaluate_split, summarise_ranks
from common import HERE, save, shared, timed
from figures import told, tuning_of

LENGTHS = {"WN18RR": 5, "WN18": 5}
PARTS = 512  # questions that the embedding answers at a time
COMMAND = "python benchmarks/bench_tuned.py --embeddings FOLDER"


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="CoDEx-S,WN18RR,FB15k-237")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=Path, help="keep the run folders here")
    parser.add_argument("--embeddings", type=Path)
    parser.add_argument("--blocked", action="store_true", help="measure tuned with connected pairs blocked as well")
    parser.add_argument("--no-valid", action="store_true", help="measure tuned without the valid split as well")
    parser.add_argument("--sample", type=int, help="rank this many triples of the test split, drawn at random")
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    if chosen.sample and chosen.embeddings:
        parser.error("an embedding alone ranks all of the test split: leave out --sample")
    path = HERE / "results" / "tuned.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))["results"] if path.is_file() else {}
    for seed in chosen.seeds.split(","):
        for name in chosen.data.split(","):
            runs = results.setdefault(name, {})
            if seed not in runs or chosen.again:
                runs[seed] = measure(name, int(seed), chosen)
                save("tuned", results, COMMAND)


def measure(name: str, seed: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Rank the test split in every way."""
    with tempfile.TemporaryDirectory() as scratch:
        run = (chosen.runs or Path(scratch)) / f"{name}-{seed}"
        data = anyburl.load_dataset(shared() / "data" / name)
        found = learned(run, data, name, seed, chosen.seconds)
        if chosen.sample:
            found["sample"] = chosen.sample
        for aggregation in ("max", "noisy-or-top:5", "tuned"):
            found[aggregation] = asked(run, aggregation, seed, chosen.sample)
        if chosen.blocked:
            found["tuned, blocked"] = asked(run, "tuned", seed, chosen.sample, block_connected="on")
        if chosen.no_valid:
            found["tuned, no valid"] = without_valid(run, seed, "off", chosen.sample)
            if chosen.blocked:
                found["tuned, no valid, blocked"] = without_valid(run, seed, "on", chosen.sample)
        embedding = chosen.embeddings and chosen.embeddings / f"{name}-{seed}" / FILE
        if embedding and embedding.is_file():
            shutil.copy(embedding, run / FILE)
            about = read_arrays(run / FILE)[1]
            about = {key: about[key] for key in ("options", "seconds", "device") if key in about}
            found["embedding"] = {**about, **alone(run, data)}
            found["hybrid"] = asked(run, "hybrid", seed, chosen.sample)
    return found


def learned(run: Path, data: anyburl.Dataset, name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Learn rules into a run folder, unless they are there already; return how."""
    path = run.with_name(f"{run.name}.json")
    if not path.is_file():
        options = {"max_cyclic": LENGTHS.get(name, 3)}
        took, rules = timed(lambda: anyburl.learn(data, seconds=seconds, seed=seed, out=run, keep="all", **options))
        found = {"options": options, "rules": len(rules), "learned_in": round(took, 1)}
        path.write_text(json.dumps(found), "utf-8")
    about: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return about


def asked(run: Path, aggregation: str, seed: int, sample: int | None = None, **options: Any) -> dict[str, Any]:
    """Rank the test split, or a sample of it; blocked or not, as the options say."""
    options = {"block_connected": "off", **options}
    opened_in, reasoner = timed(lambda: anyburl.Reasoner.open(run, aggregation=aggregation, seed=seed, **options))
    with reasoner:
        ranked_in, metrics = timed(lambda: ranked(reasoner.ranker, reasoner.dataset, sample))
        return told(metrics, opened_in, ranked_in, tuning_of(reasoner))


def ranked(ranker: Ranker, data: anyburl.Dataset, sample: int | None) -> anyburl.Metrics:
    """Rank the test split, or a sample of its triples, the same in every run.

    Questions are asked as they are for the whole split, so that all of their answers are listed: each triple has the
    rank that it has there.
    """
    if sample is None:
        return evaluate_split(ranker, data, "test", {})
    test, known = data.test.triples, [data.train.triples, data.valid.triples, data.test.triples]
    queries, places = make_queries(test, known, data.vocabulary.n_relations)
    drawn = np.sort(np.random.default_rng(0).permutation(len(test))[:sample])
    wanted = places.reshape(2, -1)[:, drawn].ravel()
    questions = np.repeat(np.arange(len(queries.entities)), np.diff(queries.target_offsets))
    asked = np.unique(questions[wanted])
    some = take_queries(queries, asked)
    ranks = target_ranks(some, ranker.answer(some), data.vocabulary.n_entities)
    kept = np.flatnonzero(np.isin(questions, asked))  # the targets of these questions, in the same order
    few = replace(data, test=TripleTable.from_ids(test[drawn], data.vocabulary))
    return summarise_ranks(ranks.at(np.searchsorted(kept, wanted)), np.full(len(wanted), ""), ranker, few, "test", {})


def without_valid(run: Path, seed: int, block: str, sample: int | None) -> dict[str, Any]:
    """Rank the test split by a model that learned from facts of train alone; answers in valid are filtered all the
    same.
    """
    with anyburl.Reasoner.open(run, aggregation="max", block_connected=block) as reasoner:
        data, groups = reasoner.dataset, rule_groups(reasoner.rules)
        nothing = TripleTable(data.vocabulary, data.valid.triples[:0])
        tuning = tune(reasoner.ranker, replace(data, valid=nothing), groups, seed=seed)
        ranker = replace(reasoner.ranker, reranker=TunedReranker(tuning, groups))
        ranked_in, metrics = timed(lambda: ranked(ranker, data, sample))
        return told(metrics, tuning.seconds, ranked_in, tuning)


def alone(run: Path, data: anyburl.Dataset) -> dict[str, float]:
    """Rank the test split by the embedding of the run alone, filtered by all splits."""
    embedding = load_embedding(run, data)
    known = [data.train.triples, data.valid.triples, data.test.triples]
    queries, _ = make_queries(data.test.triples, known, data.vocabulary.n_relations)
    ranks = []
    for start in range(0, len(queries.entities), PARTS):
        part = take_queries(queries, np.arange(start, min(start + PARTS, len(queries.entities))))
        scores = embedding.scores(part.entities, part.relations)
        for row in range(len(scores)):
            targets = part.targets[part.target_offsets[row] : part.target_offsets[row + 1]]
            own = scores[row, targets]
            scores[row, part.excluded[part.excluded_offsets[row] : part.excluded_offsets[row + 1]]] = -np.inf
            scores[row, targets] = -np.inf
            better = (scores[row] > own[:, None]).sum(axis=1)
            ranks.append(1 + better + (scores[row] == own[:, None]).sum(axis=1) / 2)
    found = np.concatenate(ranks)
    shares = {f"hits@{k}": round(float((found <= k).mean()), 4) for k in (1, 10)}
    return {**shares, "mrr": round(float((1 / found).mean()), 4)}


if __name__ == "__main__":
    main()
