"""NetworkX, RDFLib and PyKEEN graphs, recognised by what they can do, so none of them need be installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anyburl.errors import DataError
from anyburl.triples.columns import KNOWN


def is_network(data: object) -> bool:
    """Whether this is a graph of NetworkX."""
    return all(hasattr(data, name) for name in ("is_directed", "is_multigraph", "edges"))


def network_triples(graph: Any, attribute: str | None) -> list[tuple[object, object, object]]:
    """Return the edges as triples.

    The relation is what an attribute of every edge holds: the one given, or one with a usual name. If there is none,
    the keys of a multigraph are the relations, unless they are numbers.
    """
    if not graph.is_directed():
        raise DataError("expected a directed graph, got an undirected one, whose edges have no subject and object")
    edges = list(graph.edges(data=True))
    name = _relation_attribute(edges) if attribute is None else attribute
    if name is not None:
        return [(subject, _attribute(subject, object, held, name), object) for subject, object, held in edges]
    if graph.is_multigraph() and all(isinstance(key, str) for _, _, key in graph.edges(keys=True)):
        return [(subject, key, object) for subject, object, key in graph.edges(keys=True)]
    if edges:
        raise DataError("expected edges with an attribute named relation or string keys, got edges with neither")
    return []


def _relation_attribute(edges: list[tuple[object, object, dict[str, object]]]) -> str | None:
    """Return the only attribute with a usual name that every edge has."""
    if not edges:
        return None
    common = set.intersection(*({*held} for _, _, held in edges))
    usual = [name for name in common if str(name).lower() in KNOWN["relation"]]
    if len(usual) > 1:
        raise DataError(
            f"expected one edge attribute as the relation, got {' and '.join(sorted(usual))}; choose one with columns"
        )
    return usual[0] if usual else None


def _attribute(subject: object, object: object, held: dict[str, object], name: str) -> object:
    if name not in held:
        raise DataError(
            f"expected an attribute {name!r} on every edge, got none on the edge from {subject!r} to {object!r}"
        )
    return held[name]


def is_factory(data: object) -> bool:
    """Whether this is a triples factory of PyKEEN."""
    return hasattr(data, "mapped_triples")


def factory_labels(factory: Any) -> Any:
    """Return the labelled triples of a factory; inverse triples are left to the rules."""
    if not hasattr(factory, "label_triples"):
        kind = type(factory).__name__
        raise DataError(f"expected a TriplesFactory, which knows its labels, got a {kind}; use with_labels")
    return factory.label_triples(factory.mapped_triples)


def is_rdflib(data: object) -> bool:
    """Whether this is a graph of RDFLib."""
    return all(hasattr(data, name) for name in ("serialize", "triples", "namespaces"))


def write_rdflib(graph: Any, folder: Path) -> Path:
    """Write a graph, or several named ones, into a folder; return the file."""
    several = hasattr(graph, "quads")
    path = folder / ("rdflib.nq" if several else "rdflib.nt")
    graph.serialize(destination=str(path), format="nquads" if several else "nt", encoding="utf-8")
    return path
