"""Data sets from PyKEEN's triples factories, and back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from anyburl.errors import MissingExtraError
from anyburl.triples.dataset import SPLITS, Dataset

if TYPE_CHECKING:
    from pykeen.triples import TriplesFactory


def import_pykeen(what: str, module: str = "pykeen.triples") -> Any:
    """Import one of PyKEEN's modules; say which extra `what` needs where there is none."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, "pykeen") from error


def dataset_from_pykeen(
    training: TriplesFactory,
    validation: TriplesFactory | None = None,
    testing: TriplesFactory | None = None,
    *,
    name: str = "pykeen",
) -> Dataset:
    """Make a data set of the labelled triples of PyKEEN's factories; inverse triples are left to the rules."""
    import_pykeen("dataset_from_pykeen")
    return Dataset.from_triples(training, validation, testing, name=name)


def triples_factories(data: Dataset) -> tuple[TriplesFactory, TriplesFactory, TriplesFactory]:
    """Return PyKEEN's factories of train, valid and test; entities and relations have the ids that they have here.

    A model that is trained on the first of them can be given to `compare`.
    """
    kind = import_pykeen("triples_factories").TriplesFactory
    entities = {label: id for id, label in enumerate(data.vocabulary.entities)}
    relations = {label: id for id, label in enumerate(data.vocabulary.relations)}
    train, valid, test = (
        kind(mapped_triples=mapped_triples(data, split), entity_to_id=entities, relation_to_id=relations)
        for split in SPLITS
    )
    return train, valid, test


def mapped_triples(data: Dataset, split: str) -> Any:
    """Return the ids of a split as a tensor."""
    torch = import_pykeen("triples_factories", "torch")
    return torch.tensor(data.split(split).triples.tolist(), dtype=torch.long).reshape(-1, 3)
