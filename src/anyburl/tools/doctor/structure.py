"""Checks that count facts: leakage, relations that state the same, what train lacks, degrees, reflexive facts, types.

Leakage is what valid and test hold and train gives away without any reasoning. What train lacks, no model that learns
from train can know.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import counted
from anyburl.data.dataset import all_types, stated_types
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Severity, Triples, pair_keys, share_text

SIMILAR = 0.8  # the share of facts that two relations have in common, from which on they count as nearly the same
SAME = 0.97
FEWEST_SHARED = 5


def overlaps(facts: DatasetFacts) -> pl.DataFrame:
    """Return how many facts any two relations share, in all splits: `left`, `right`, `reversed`, `shared`, `n_left`,
    `n_right`.

    Where `reversed`, left(s, o) goes with right(o, s); a relation is then also compared with itself. Facts that join an
    entity with itself are left out.
    """
    triples = np.unique(facts.every[facts.every[:, 0] != facts.every[:, 2]], axis=0)
    sizes = np.bincount(triples[:, 1], minlength=facts.n_relations)
    forward = pl.DataFrame({"pair": pair_keys(triples, facts.n_entities), "left": triples[:, 1]})
    backward = pl.DataFrame({"pair": pair_keys(triples, facts.n_entities, back=True), "right": triples[:, 1]})
    same = forward.join(forward.rename({"left": "right"}), on="pair").filter(pl.col("left") < pl.col("right"))
    turned = forward.join(backward, on="pair").filter(pl.col("left") <= pl.col("right"))
    counts = [
        pairs.group_by("left", "right").agg(pl.len().cast(pl.Int64).alias("shared")).with_columns(reversed=pl.lit(way))
        for pairs, way in ((same, False), (turned, True))
    ]
    table = pl.concat(counts).filter(pl.col("shared") >= FEWEST_SHARED)
    return table.with_columns(
        n_left=pl.Series(sizes[table["left"].to_numpy()], dtype=pl.Int64),
        n_right=pl.Series(sizes[table["right"].to_numpy()], dtype=pl.Int64),
    ).sort("shared", "left", "right", descending=[True, False, False])


def check_similar(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    """Return the relations that `overlaps` shows to be inverse, symmetric or duplicate."""
    shares = overlap.with_columns(
        of_left=pl.col("shared") / pl.col("n_left"), of_right=pl.col("shared") / pl.col("n_right")
    ).with_columns(least=pl.min_horizontal("of_left", "of_right"), most=pl.max_horizontal("of_left", "of_right"))
    is_itself = pl.col("left") == pl.col("right")
    similar, turned = pl.col("least") >= SIMILAR, pl.col("reversed")
    return [
        *_inverse(facts, shares.filter(turned & ~is_itself & similar), top),
        *_symmetric(facts, shares.filter(turned & is_itself & similar), top),
        *_duplicate(facts, shares.filter(~turned & similar), top),
        *_contained(facts, shares.filter(~turned & ~similar & (pl.col("most") >= SAME)), top),
    ]


def _inverse(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    if overlap.is_empty():
        return []
    pairs = counted(len(overlap), "pair of relations is", "pairs of relations are")
    return [
        Finding.of(
            "inverse", Severity.WARNING, f"{pairs} inverse to each other", len(overlap), _rows(facts, overlap, top)
        )
    ]


def _symmetric(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    if overlap.is_empty():
        return []
    examples = _rows(facts, overlap, top).select("relation", "facts", pl.col("share").alias("share in both directions"))
    relations = counted(len(overlap), "relation is", "relations are")
    return [Finding.of("symmetric", Severity.NOTE, f"{relations} symmetric, or nearly so", len(overlap), examples)]


def _duplicate(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    if overlap.is_empty():
        return []
    kind = pl.when(pl.col("least") >= SAME).then(pl.lit("duplicate")).otherwise(pl.lit("nearly duplicate"))
    examples = _rows(facts, overlap, top).with_columns(overlap.head(top).select(kind.alias("kind")).to_series())
    pairs = counted(len(overlap), "pair of relations states", "pairs of relations state")
    return [Finding.of("duplicate", Severity.WARNING, f"{pairs} the same, or nearly so", len(overlap), examples)]


def _contained(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    if overlap.is_empty():
        return []
    n = counted(len(overlap), "relation is", "relations are")
    return [Finding.of("duplicate", Severity.NOTE, f"{n} part of another", len(overlap), _rows(facts, overlap, top))]


def _rows(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> pl.DataFrame:
    """Return pairs of relations in labels, with the shares of their facts that they have in common."""
    first = overlap.head(top)
    return pl.DataFrame(
        {
            "relation": facts.relation_labels(first["left"].to_numpy()),
            "facts": first["n_left"],
            "share": first["of_left"].round(3),
            "other": facts.relation_labels(first["right"].to_numpy()),
            "facts of the other": first["n_right"],
            "share of the other": first["of_right"].round(3),
        }
    )


HELD_OUT = ("valid", "test")


def check_leakage(facts: DatasetFacts, overlap: pl.DataFrame, top: int) -> list[Finding]:
    """Return the held-out facts that train states in the same or in other words; `found` is the table of `overlaps`.

    A fact r(s, o) is read off r'(s, o), or off r'(o, s), if at least 80 % of the facts of r' go with one of r in that
    way, in all splits together.
    """
    telling = _telling(facts, overlap)
    train = _frame(facts, facts.train).rename({"relation": "by", "row": "train_row"})
    findings = []
    for split in HELD_OUT:
        held_out = facts.dataset.split(split).triples
        leaks = _leaks(facts, held_out, train, telling)
        if leaks.is_empty():
            continue
        rows = leaks.unique("row", keep="first", maintain_order=True)
        of = f"{len(held_out):,} {split} facts ({share_text(len(rows), len(held_out))})"
        sentence = f"{len(rows):,} of {of} can be read off train"
        findings.append(
            Finding.of("leakage", Severity.PROBLEM, sentence, len(rows), _examples(facts, held_out, rows, top))
        )
    return findings


def _frame(facts: DatasetFacts, triples: Triples) -> pl.DataFrame:
    pairs = pair_keys(triples, facts.n_entities)
    return pl.DataFrame({"pair": pairs, "relation": triples[:, 1], "row": np.arange(len(triples))})


def _telling(facts: DatasetFacts, overlap: pl.DataFrame) -> pl.DataFrame:
    """Return which relations repeat facts of which others (`by`), in either direction; each relation repeats itself."""
    ways = [
        overlap.select(
            pl.col(predicted).alias("relation"),
            pl.col(source).alias("by"),
            "reversed",
            (pl.col("shared") / pl.col(n)).alias("share"),
        )
        for predicted, source, n in (("left", "right", "n_right"), ("right", "left", "n_left"))
    ]
    numbers = pl.Series(np.arange(facts.n_relations, dtype=np.int32))
    itself = pl.DataFrame({"relation": numbers, "by": numbers}).with_columns(reversed=pl.lit(False), share=pl.lit(1.0))
    return pl.concat([*ways, itself]).filter(pl.col("share") >= SIMILAR).unique(["relation", "by", "reversed"])


def _leaks(facts: DatasetFacts, held_out: Triples, train: pl.DataFrame, telling: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of held-out facts and of the train facts that repeat them, the fact itself first."""
    leaking = _frame(facts, held_out)
    turned = leaking.with_columns(pair=pl.Series(pair_keys(held_out, facts.n_entities, back=True)))
    met = [
        part.join(train, on="pair").join(telling.filter(pl.col("reversed") == way), on=["relation", "by"])
        for part, way in ((leaking, False), (turned, True))
    ]
    is_itself = (pl.col("relation") == pl.col("by")) & ~pl.col("reversed")
    return pl.concat(met).with_columns(itself=is_itself).sort("row", pl.col("itself").not_(), pl.col("share").neg())


def _examples(facts: DatasetFacts, held_out: Triples, rows: pl.DataFrame, top: int) -> pl.DataFrame:
    first = rows.head(top)
    examples = facts.labels(held_out[first["row"].to_numpy()])
    teller = facts.labels(facts.train[first["train_row"].to_numpy()])
    in_train = teller.select(pl.concat_str(pl.all(), separator=" ").alias("in train")).to_series()
    how = (
        pl.when(pl.col("itself"))
        .then(pl.lit("the fact itself"))
        .when(pl.col("reversed"))
        .then(pl.lit("the other way round"))
        .otherwise(pl.lit("another relation"))
    )
    return examples.with_columns(in_train, first.select(how.alias("how")).to_series())


def check_unseen(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return how many facts of valid and of test have an entity, or a relation, that train lacks."""
    entities = np.zeros(facts.n_entities, np.bool_)
    entities[facts.train[:, [0, 2]]] = True
    relations = np.bincount(facts.train[:, 1], minlength=facts.n_relations) > 0
    findings = []
    for split in HELD_OUT:
        triples = facts.dataset.split(split).triples
        findings += _unseen_entities(facts, split, triples, ~entities[triples[:, [0, 2]]], top)
        findings += _unseen_relations(facts, split, triples, ~relations[triples[:, 1]], top)
    return findings


def _unseen_entities(
    facts: DatasetFacts, split: str, triples: Triples, unseen: NDArray[np.bool_], top: int
) -> list[Finding]:
    rows = np.flatnonzero(unseen.any(axis=1))
    if not len(rows):
        return []
    n_different = len(np.unique(triples[:, [0, 2]][unseen]))
    examples = facts.labels(triples[rows[:top]])
    subject, object = (pl.Series(unseen[rows[:top], place]) for place in (0, 1))
    which = (
        pl.when(subject & object).then(pl.lit("both")).when(subject).then(pl.lit("subject")).otherwise(pl.lit("object"))
    )
    sentence = (
        f"{counted(len(rows), f'{split} fact has', f'{split} facts have')} an entity that train lacks "
        f"({counted(n_different, 'entity', 'entities')})"
    )
    return [Finding.of("unseen", Severity.PROBLEM, sentence, len(rows), examples.with_columns(which.alias("unseen")))]


def _unseen_relations(
    facts: DatasetFacts, split: str, triples: Triples, unseen: NDArray[np.bool_], top: int
) -> list[Finding]:
    rows = np.flatnonzero(unseen)
    if not len(rows):
        return []
    n_different = len(np.unique(triples[rows, 1]))
    sentence = (
        f"{counted(len(rows), f'{split} fact has', f'{split} facts have')} a relation that train lacks "
        f"({counted(n_different, 'relation')})"
    )
    return [Finding.of("unseen", Severity.PROBLEM, sentence, len(rows), facts.labels(triples[rows[:top]]))]


HUB = 0.05  # the share of all facts that one entity has
FEWEST_FACTS = 100  # of a hub


def check_degrees(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the distribution of degrees, hubs, and isolated facts."""
    triples = facts.train
    if not len(triples):
        return []
    is_own = triples[:, 0] == triples[:, 2]
    degrees = np.bincount(triples[:, 0], minlength=facts.n_entities)
    degrees += np.bincount(triples[~is_own, 2], minlength=facts.n_entities)
    isolated = np.flatnonzero((degrees[triples[:, 0]] == 1) & (degrees[triples[:, 2]] == 1))
    findings = [_distribution(degrees)]
    findings += _hubs(facts, degrees, top)
    if len(isolated):
        sentence = f"{counted(len(isolated), 'fact is', 'facts are')} connected to no other"
        examples = facts.labels(triples[isolated[:top]])
        findings.append(Finding.of("degrees", Severity.NOTE, sentence, len(isolated), examples))
    return findings


def _distribution(degrees: NDArray[np.int64]) -> Finding:
    known = degrees[degrees > 0]
    powers = np.floor(np.log2(known)).astype(np.int64)
    counts = np.bincount(powers)
    table = pl.DataFrame(
        {
            "facts": [_range(2**power, 2 ** (power + 1) - 1) for power in range(len(counts))],
            "entities": counts,
            "share": (counts / len(known)).round(3),
        }
    )
    once = int((known == 1).sum())
    sentence = (
        f"an entity has {np.median(known):g} facts in train (median; mean {known.mean():.1f}, most {known.max():,}); "
        f"{counted(once, 'entity has', 'entities have')} only one ({share_text(once, len(known))})"
    )
    return Finding.of("degrees", Severity.NOTE, sentence, len(known), table)


def _range(least: int, most: int) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _hubs(facts: DatasetFacts, degrees: NDArray[np.int64], top: int) -> list[Finding]:
    n_facts = len(facts.train)
    hubs = np.flatnonzero(degrees >= max(HUB * n_facts, FEWEST_FACTS))
    if not len(hubs):
        return []
    order = hubs[np.argsort(-degrees[hubs], kind="stable")][:top]
    table = pl.DataFrame(
        {
            "entity": facts.dataset.vocabulary.entities.gather(order),
            "facts": degrees[order],
            "share": (degrees[order] / n_facts).round(3),
        }
    )
    sentence = f"{counted(len(hubs), 'entity is', 'entities are')} in at least {HUB:.0%} of all facts"
    return [Finding.of("degrees", Severity.NOTE, sentence, len(hubs), table)]


def check_reflexive(facts: DatasetFacts, top: int) -> list[Finding]:
    """Return the relations with such facts, in any split; rare ones are more likely to be slips."""
    triples = facts.every
    own = triples[triples[:, 0] == triples[:, 2]]
    if not len(own):
        return []
    n_own = np.bincount(own[:, 1], minlength=facts.n_relations)
    sizes = np.bincount(triples[:, 1], minlength=facts.n_relations)
    relations, firsts = np.unique(own[:, 1], return_index=True)
    table = pl.DataFrame(
        {
            "relation": facts.relation_labels(relations),
            "reflexive facts": n_own[relations],
            "facts": sizes[relations],
            "such as": facts.labels(own[firsts])["subject"],
        }
    )
    examples = table.sort(pl.col("reflexive facts") / pl.col("facts"), "relation").head(top)
    words, relations_of = counted(len(own), "fact relates", "facts relate"), counted(len(relations), "relation")
    sentence = f"{words} an entity to itself ({share_text(len(own), len(triples))}), in {relations_of}"
    return [Finding.of("reflexive", Severity.WARNING, sentence, len(own), examples)]


RARE = 0.01  # the share of the facts of a relation below which a type does not belong to its place
FEWEST_TYPED_FACTS = 20


def check_types(facts: DatasetFacts, types: str, top: int) -> list[Finding]:
    """Return the facts of train with an entity none of whose types is at home at its place.

    A type is at home where at least 1 % of the other facts of the relation have an entity of that type, and so are the
    classes below it. Entities without a type are not judged.
    """
    names, vocabulary = facts.dataset.names, facts.dataset.vocabulary
    relation = names.relation_id(types, vocabulary)
    fit = np.stack([_fit(facts, relation, end) for end in (0, 1)], axis=1)
    rows = np.flatnonzero((fit < RARE).any(axis=1))
    if not len(rows):
        return []
    first = rows[np.argsort(fit[rows].min(axis=1), kind="stable")][:top]
    ends = [" and ".join(np.array(["subject", "object"])[fit[row] < RARE]) for row in first]
    examples = facts.labels(facts.train[first]).with_columns(pl.Series("does not fit", ends))
    words = counted(len(rows), "fact has", "facts have")
    sentence = f"{words} a subject or object of types that do not stand there, by {names.get(types)}"
    return [Finding.of("types", Severity.WARNING, sentence, len(rows), examples)]


def _fit(facts: DatasetFacts, types: int, end: int) -> NDArray[np.float64]:
    """Return how common the most common type of each fact's entity is at its place, without the fact itself; 1 where
    nothing can be said.
    """
    train = facts.train
    stated = stated_types(facts.dataset, types).with_columns(is_stated=pl.lit(1))
    known = all_types(facts.dataset, types).join(stated, on=["entity", "type"], how="left")
    judged = pl.DataFrame({"row": np.arange(len(train)), "relation": train[:, 1], "entity": train[:, 2 * end]})
    judged = judged.filter((pl.col("relation") != types) & (pl.len().over("relation") >= FEWEST_TYPED_FACTS))
    own = pl.col("is_stated").fill_null(0)
    met = judged.join(known, on="entity").with_columns(
        n=own.sum().over("relation", "type") - own, of=pl.col("row").n_unique().over("relation")
    )
    best = met.group_by("row").agg((pl.col("n") / (pl.col("of") - 1).clip(1)).max().alias("share"))
    fits = np.ones(len(train))
    fits[best["row"].to_numpy()] = best["share"].to_numpy()
    return fits
