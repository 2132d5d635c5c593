"""The types of entities, as a relation such as rdf:type states them, and the classes above these."""

from __future__ import annotations

import polars as pl

from anyburl.triples.dataset import Dataset
from anyburl.triples.prefixes import RDF_TYPE, SUBCLASS, WELL_KNOWN

HIERARCHIES = {RDF_TYPE: SUBCLASS, f"{WELL_KNOWN['wdt']}P31": f"{WELL_KNOWN['wdt']}P279"}
"""The relation that orders classes, for relations that state types: rdf:type, and instance of in Wikidata."""


def default_types(dataset: Dataset) -> str | None:
    """Return the relation that states types in RDF, if the data has it."""
    return RDF_TYPE if RDF_TYPE in dataset.vocabulary.relations else None


def stated_types(dataset: Dataset, relation: int) -> pl.DataFrame:
    """Return the types that train states by a relation: columns entity and type, distinct."""
    train = dataset.train.triples
    found = train[train[:, 1] == relation]
    return pl.DataFrame({"entity": found[:, 0], "type": found[:, 2]})


def all_types(dataset: Dataset, relation: int) -> pl.DataFrame:
    """Return the types that train states by a relation, and the classes above them, if there is a relation for these.

    A class above the stated ones says where an entity may stand; it does not say what stands at a place, for the
    highest class stands everywhere.
    """
    vocabulary, known = dataset.vocabulary, stated_types(dataset, relation)
    ordering = HIERARCHIES.get(vocabulary.relation_label(relation))
    if ordering is None or ordering not in vocabulary.relations:
        return known
    above = stated_types(dataset, vocabulary.relation_id(ordering)).rename({"entity": "type", "type": "above"})
    newest = known
    while newest.height:
        higher = newest.join(above, on="type").select("entity", type="above").unique()
        newest = higher.join(known, on=["entity", "type"], how="anti")
        known = pl.concat([known, newest])
    return known.sort("entity", "type")
