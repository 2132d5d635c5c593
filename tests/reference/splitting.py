"""Train, valid and test of one graph, on labels and sets."""

from __future__ import annotations

from collections.abc import Sequence

Triple = tuple[int, int, int]


def divide(triples: Sequence[Triple], shares: Sequence[float]) -> list[set[Triple]]:
    """Divide triples that come in a random order: the first of each entity and relation stays in train."""
    seen: set[tuple[str, int]] = set()
    free = []
    for subject, relation, object in triples:
        labels = {("entity", subject), ("relation", relation), ("entity", object)}
        if labels <= seen:
            free.append((subject, relation, object))
        seen |= labels
    n_valid, n_test = round(len(triples) * shares[1]), round(len(triples) * shares[2])
    if n_valid + n_test > len(free):
        n_test = len(free) * n_test // (n_valid + n_test)
        n_valid = len(free) - n_test
    test, valid = set(free[:n_test]), set(free[n_test : n_test + n_valid])
    return [{*triples} - valid - test, valid, test]
