"""`LabelSearch`: find entities and relations by id or by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import polars as pl

from anyburl import checking
from anyburl.errors import InvalidOptionError
from anyburl.search.arrays import LabelIndex, index_bytes
from anyburl.search.folding import fold
from anyburl.search.index import build_index, find
from anyburl.triples.names import Names

Kind = Literal["entity", "relation"]
KINDS: tuple[Kind, ...] = ("entity", "relation")


@dataclass(frozen=True)
class Match:
    """A label that was found, and its name (itself, if it has none); `distance` counts typing errors."""

    label: str
    name: str
    kind: Kind
    distance: int


@dataclass(frozen=True)
class LabelSearch:
    """Labels and names, indexed; may be asked from several threads at once."""

    labels: dict[Kind, pl.Series]
    names: Names
    indexes: dict[Kind, LabelIndex]

    @classmethod
    def build(cls, entities: pl.Series, relations: pl.Series, names: Names | None = None) -> Self:
        """Index the labels of a vocabulary, and their names."""
        labels: dict[Kind, pl.Series] = {"entity": entities, "relation": relations}
        return cls(labels, names or Names(), {kind: build_index(labels[kind], names) for kind in KINDS})

    @property
    def n_bytes(self) -> int:
        """What the index takes, labels and names not counted."""
        return sum(index_bytes(index) for index in self.indexes.values())

    def find(self, text: str, *, kind: Kind | None = None, top: int = 20) -> list[Match]:
        """Return the `top` labels that fit `text` best, in either kind or in one of them.

        Upper and lower case, accents and what stands between words do not matter. First come labels and names that are
        equal to the text, then those that start with it, those with a word that does, those that hold it anywhere, and
        at last those with a word that starts like it but for a typing error, two from five letters on. Among equals,
        shorter ones come first.
        """
        checking.whole("top", top, 1, checking.MOST_KEPT)
        if kind is not None and kind not in KINDS:
            raise InvalidOptionError("kind", f"one of {', '.join(KINDS)}", kind)
        query = fold(pl.Series([text], dtype=pl.String))[:-1]
        found = []
        for chosen in KINDS if kind is None else (kind,):
            for hit in find(self.indexes[chosen], query, top):
                label = str(self.labels[chosen][hit.owner])
                match = Match(label, str(self.names.get(label)), chosen, hit.edits)
                is_other = text not in (label, match.name)
                found.append(((hit.rank, hit.edits, is_other, hit.length, match.name, label), match))
        return [match for _, match in sorted(found, key=lambda pair: pair[0])[:top]]
