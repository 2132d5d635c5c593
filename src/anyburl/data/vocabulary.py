"""Labels: their ids, labels that resemble one, and labels as terms of RDF (N-Triples, Turtle, SPARQL) and back.

Labels are sorted, so ids depend on the data and not on its order in a file. A label that is no IRI, blank node or
literal becomes an IRI below `OWN`, and is that label again when it is read.
"""

from __future__ import annotations

import difflib
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from anyburl.base.errors import DataError, UnknownLabelError

if TYPE_CHECKING:
    import polars as pl


OWN = "urn:anyburl:"
"""The start of IRIs made of labels that are none; such a label has its colons escaped, our own vocabulary has not."""

_FORBIDDEN = r"\x00-\x20\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U000e0000-\U0010ffff<>\"{}|^`\\%\[\]#"
_HOST_CHARACTER = rf"(?:[^{_FORBIDDEN}/?:@]|%[0-9A-Fa-f]{{2}})"
_CHARACTER = rf"(?:[^{_FORBIDDEN}]|%[0-9A-Fa-f]{{2}})"
_AUTHORITY = rf"//(?:(?:{_HOST_CHARACTER}|:)*@)?(?:{_HOST_CHARACTER}*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?=[/?#>]|$)"
_IRI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//)){_CHARACTER}*(?:#{_CHARACTER}*)?"
_ESCAPE = r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"

_ONE_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_NAMED_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

IRI = re.compile(_IRI)
_LETTER = (
    r"A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = rf"{_LETTER}0-9\u00b7\u0300-\u036f\u203f\u2040\-"
BLANK_NODE = re.compile(rf"_:[{_LETTER}0-9](?:[{_NAME}.]*[{_NAME}])?")
LITERAL = re.compile(rf'"(?:[^"\\\r\n]|{_ESCAPE})*"(?:@[A-Za-z]{{2,8}}(?:-[A-Za-z0-9]{{1,8}})*|\^\^<{_IRI}>)?')


def is_blank_node(label: str) -> bool:
    """Whether a label names a blank node."""
    return BLANK_NODE.fullmatch(label) is not None


def rdf_term(label: str, *, is_object: bool, is_relation: bool = False, base: str = OWN) -> str:
    """Return a label as a term of a statement.

    Literals are objects only, blank nodes are no relations, and what is no term becomes an IRI below `base`.
    """
    if (is_blank_node(label) and not is_relation) or (is_object and LITERAL.fullmatch(label)):
        return label
    is_iri = IRI.fullmatch(label) and own_label(label) == label
    return f"<{label}>" if is_iri else f"<{base}{quote(label, safe='')}>"


def literal_text(escaped: str) -> str:
    """Return the text of a literal without its escapes."""
    return _ONE_ESCAPE.sub(lambda match: _NAMED_ESCAPES.get(match[1]) or _character(match[1]), escaped)


def _character(escape: str) -> str:
    """Return the character of an escape, U+FFFD for an invalid one."""
    if len(escape) == 1:
        return escape
    code = int(escape[1:], 16)
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > sys.maxunicode else chr(code)


def own_label(iri: str) -> str:
    """Return the label behind an IRI of our own; any other IRI is its own label."""
    if not iri.startswith(OWN):
        return iri
    escaped = iri.removeprefix(OWN)
    label = unquote(escaped)
    return label if label and quote(label, safe="") == escaped else iri


def own_labels(iris: pl.Series) -> pl.Series:
    """Return the labels of many IRIs by `own_label`."""
    own = iris.filter(iris.str.starts_with(OWN)).unique()
    return iris.replace(own, [own_label(iri) for iri in own.to_list()]) if len(own) else iris


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
SCHEMA = "https://schema.org/"

RDF_TYPE = f"{RDF}type"
SUBCLASS = f"{RDFS}subClassOf"

WELL_KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "rdf": RDF,
        "rdfs": RDFS,
        "xsd": XSD,
        "owl": "http://www.w3.org/2002/07/owl#",
        "skos": SKOS,
        "schema": SCHEMA,
        "foaf": "http://xmlns.com/foaf/0.1/",
        "dc": "http://purl.org/dc/elements/1.1/",
        "dcterms": "http://purl.org/dc/terms/",
        "dcat": "http://www.w3.org/ns/dcat#",
        "prov": "http://www.w3.org/ns/prov#",
        "sh": "http://www.w3.org/ns/shacl#",
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "obo": "http://purl.obolibrary.org/obo/",
        "yago": "http://yago-knowledge.org/resource/",
        "wd": "http://www.wikidata.org/entity/",
        "wdt": "http://www.wikidata.org/prop/direct/",
        "fb": "http://rdf.freebase.com/ns/",
        "dbr": "http://dbpedia.org/resource/",
        "dbo": "http://dbpedia.org/ontology/",
        "dbp": "http://dbpedia.org/property/",
    }
)
"""Prefixes that need not be declared; declarations take precedence."""


class Prefixes:
    """Shortens and expands IRIs with the `given` and the well-known prefixes."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._iris = {**WELL_KNOWN, **{prefix: iri for prefix, iri in given.items() if iri}}
        by_iri = {iri: prefix for prefix, iri in self._iris.items()}
        self._by_length = sorted(by_iri.items(), key=lambda item: (-len(item[0]), item[1]))

    def shorten(self, label: str) -> str:
        """Return an IRI with its longest prefix; any other label as it is."""
        if ":" not in label:
            return label
        for iri, prefix in self._by_length:
            if label.startswith(iri) and len(label) > len(iri):
                return f"{prefix}:{label[len(iri) :]}"
        return label

    def expand(self, text: str) -> str:
        """Return the IRI behind a prefixed name or behind <...>; anything else as it is."""
        if text.startswith("<") and text.endswith(">"):
            return text[1:-1]
        prefix, colon, rest = text.partition(":")
        return self._iris[prefix] + rest if colon and prefix in self._iris else text

    def of(self, iris: Iterable[str]) -> dict[str, str]:
        """Return the prefixes that shorten at least one of some IRIs."""
        used = {short.partition(":")[0] for iri in iris if (short := self.shorten(iri)) != iri}
        return {prefix: self._iris[prefix] for prefix in sorted(used)}


SELF_TOKEN = "me_myself_i"
"""How the token `self` is written in the text of a rule. It has an id, but is no entity and has no label."""

MOST_COMPARED = 5000  # labels, in full
MOST_GROUPS = 40  # of characters
"""At most this many labels are compared with an unknown one to find similar names."""

FEW = 2
"""Labels are looked up by binary search if there are this many times as many known ones: an Enum takes longer."""

_TOKEN = pl.Series([SELF_TOKEN], dtype=pl.String)
_UNKNOWN = pl.Series([-1], dtype=pl.Int32)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entities and relations of a data set: an id is a position in a sorted list of distinct labels.

    Use `from_labels`; the constructor requires both Series to be sorted and unique. `values` are the attributes of
    the entities, if there are any: whoever has ids of entities can look them up (`attributes_of`). Their names are
    relations as well, without triples, since bodies of rules may end in them. `same_labels` does not compare values.
    """

    entities: pl.Series
    relations: pl.Series
    values: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for labels in (self.entities, self.relations):
            if not isinstance(labels, pl.Series) or labels.dtype not in (pl.String, pl.Null):
                raise DataError("expected sorted Series of labels: use Vocabulary.from_labels")

    @classmethod
    def from_labels(cls, entities: Iterable[object] | pl.Series, relations: Iterable[object] | pl.Series) -> Vocabulary:
        """Sort the labels and drop duplicates."""
        return cls(_sorted_labels(entities, "entity"), _sorted_labels(relations, "relation"))

    @classmethod
    def from_sorted(cls, entities: pl.Series, relations: pl.Series) -> Vocabulary:
        """Use labels that are already sorted and distinct, such as those of a file; refuse others."""
        for labels, kind in ((entities, "entity"), (relations, "relation")):
            if check_labels(labels, kind).len() and not (labels[1:] > labels[:-1]).all():
                raise DataError(f"expected {kind} labels that are sorted and distinct")
        return cls(entities, relations)

    @classmethod
    def unnamed(cls, n_entities: int, n_relations: int) -> Vocabulary:
        """Return a vocabulary with ids but no labels, which takes no memory, for code that only computes."""
        nothing = pl.Series([None], dtype=pl.Null)
        return cls(nothing.new_from_index(0, n_entities), nothing.new_from_index(0, n_relations))

    def with_attributes(self, attributes: Mapping[str, object]) -> Vocabulary:
        """Return the vocabulary with values of its entities; the names of the attributes are relations in it."""
        names = pl.Series(list(attributes), dtype=pl.String)
        if names.is_in(self.relations.implode()).all():
            return Vocabulary(self.entities, self.relations, attributes)
        return Vocabulary(self.entities, _sorted_labels(pl.concat([self.relations, names]), "relation"), attributes)

    @property
    def n_entities(self) -> int:
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        return len(self.relations)

    @property
    def self_id(self) -> int:
        """The id of the token `self`: one past the last entity."""
        return len(self.entities)

    def encode_entities(self, labels: pl.Series | Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of entity labels, -1 where a label is unknown."""
        return self._encode(_as_series(labels).to_frame("entity"))[0]

    def encode_relations(self, labels: pl.Series | Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of relation labels, -1 where a label is unknown."""
        return self._encode(_as_series(labels).to_frame("relation"))[0]

    def encode_triples(self, labels: pl.DataFrame) -> list[NDArray[np.int32]]:
        """Return the ids of the columns subject, relation and object, -1 where a label is unknown."""
        return self._encode(labels.select("subject", "relation", "object"))

    def entity_id(self, label: str) -> int:
        """Return the id of an entity; if it is unknown, the error suggests similar ones."""
        return _find(self.entities, "entity", label)

    def relation_id(self, label: str) -> int:
        """Return the id of a relation; if it is unknown, the error suggests similar ones."""
        return _find(self.relations, "relation", label)

    def entity_label(self, entity: int) -> str:
        """Return the label of one entity; for `self_id`, the token that stands for it in text."""
        return SELF_TOKEN if entity == self.self_id else _label(self.entities, "entity", entity)

    def relation_label(self, relation: int) -> str:
        """Return the label of one relation."""
        return _label(self.relations, "relation", relation)

    def decode_entities(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of entity ids: null for -1, the token `self` for `self_id`."""
        rows = _checked_ids(ids, self.self_id, "entity")
        return _decode(rows, self.entities).zip_with(pl.Series(rows != self.self_id), _TOKEN)

    def decode_relations(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of relation ids: null for -1."""
        return _decode(_checked_ids(ids, self.n_relations - 1, "relation"), self.relations)

    def decode_triples(self, triples: NDArray[np.integer]) -> pl.DataFrame:
        """Return the labels of (n, 3) ids of triples, in the columns subject, relation and object."""
        subjects, relations, objects = triples.T
        return pl.DataFrame(
            {
                "subject": self.entities.gather(subjects),
                "relation": self.relations.gather(relations),
                "object": self.entities.gather(objects),
            }
        )

    def triple_labels(self, subject: int, relation: int, object: int) -> tuple[str, str, str]:
        """Return the labels of one triple."""
        return self.entity_label(subject), self.relation_label(relation), self.entity_label(object)

    def same_labels(self, other: Vocabulary) -> bool:
        """Whether `other` gives the same ids to the same labels."""
        if self is other:
            return True
        return self.entities.equals(other.entities) and self.relations.equals(other.relations)

    def __eq__(self, other: object) -> bool:
        return self.same_labels(other) if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n_entities, self.n_relations))

    def __repr__(self) -> str:
        return f"Vocabulary(n_entities={self.n_entities}, n_relations={self.n_relations})"

    def _encode(self, labels: pl.DataFrame) -> list[NDArray[np.int32]]:
        """Return the codes of each column, most in one selection, so that Polars works on all columns at once."""
        known = {name: self.relations if name == "relation" else self.entities for name in labels.columns}
        few = [name for name in labels.columns if labels.height * FEW < len(known[name])]
        codes = {name: _search(labels[name], known[name]) for name in few}
        for column in labels.select(self._code_of(name) for name in labels.columns if name not in few):
            codes[column.name] = column.to_numpy()
        return [codes[name] for name in labels.columns]

    def _code_of(self, column: str) -> pl.Expr:
        enum = self._relation_type if column == "relation" else self._entity_type
        return pl.col(column).cast(enum, strict=False).to_physical().cast(pl.Int32).fill_null(-1)

    @cached_property
    def _entity_type(self) -> pl.Enum:
        return pl.Enum(self.entities)

    @cached_property
    def _relation_type(self) -> pl.Enum:
        return pl.Enum(self.relations)


def check_vocabulary(vocabulary: object) -> None:
    """Raise an error unless this is a `Vocabulary`."""
    if not isinstance(vocabulary, Vocabulary):
        raise DataError(f"expected a Vocabulary, such as that of a data set, got {type(vocabulary).__name__}")


def _sorted_labels(labels: Iterable[object] | pl.Series, kind: str) -> pl.Series:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise DataError(f"expected a list of {kind} labels, got {type(labels).__name__}")
    if not isinstance(labels, pl.Series):
        labels = pl.Series([str(label) for label in labels], dtype=pl.String)
    return check_labels(labels.cast(pl.String).unique().sort().rename(""), kind)


def check_labels(labels: pl.Series, kind: str) -> pl.Series:
    """Return sorted labels; raise an error for a missing, empty or blank one, or one with a NUL."""
    if labels.null_count():
        raise DataError(f"expected {kind} labels, got a missing one (null)")
    if len(labels) and labels[0] == "":
        raise DataError(f"expected {kind} labels, got an empty one")
    blank = labels.filter(labels.str.strip_chars() == "")
    if len(blank):
        raise DataError(f"expected {kind} labels, got one of spaces only: {blank[0]!r}")
    with_nul = labels.filter(labels.str.contains("\0", literal=True))
    if len(with_nul):
        # Joined labels (fingerprints, rule files) rely on it, and text does not hold any.
        raise DataError(f"expected {kind} labels, got one with a NUL character: {with_nul[0]!r}")
    return labels


def _as_series(labels: pl.Series | Sequence[str]) -> pl.Series:
    return labels.cast(pl.String) if isinstance(labels, pl.Series) else pl.Series(labels, dtype=pl.String)


def _search(labels: pl.Series, known: pl.Series) -> NDArray[np.int32]:
    """Return the positions of labels among sorted ones, -1 where there is none."""
    rows = known.search_sorted(labels)
    is_known = known.gather(rows.set(rows == len(known), None)) == labels
    return rows.cast(pl.Int32).zip_with(is_known.fill_null(False), _UNKNOWN).to_numpy()


def _find(labels: pl.Series, kind: str, label: str) -> int:
    if isinstance(label, str):
        row = bisect_left(labels, label)  # Polars takes many times as long for one label
        if row < len(labels) and labels[row] == label:
            return row
    raise UnknownLabelError(kind, str(label), similar_labels(labels, str(label)))


def similar_labels(labels: pl.Series, text: str, cutoff: float = 0.7) -> list[str]:
    """Return up to three labels that resemble `text`: first those that differ by upper and lower case only.

    Of many labels, those that share most groups of three characters with `text` are compared.
    """
    lower, plain = labels.str.to_lowercase(), text.lower()
    same = labels.filter(lower == plain).to_list()
    if len(labels) > MOST_COMPARED:
        groups = {plain[i : i + 3] for i in range(min(len(plain), MOST_GROUPS))}
        shared = sum((lower.str.contains(group, literal=True).cast(pl.Int32) for group in groups), pl.Series([0]))
        likeness = shared / (lower.str.len_chars() + len(plain))
        labels = labels.gather(likeness.arg_sort(descending=True).head(MOST_COMPARED // 10))
    near = difflib.get_close_matches(text, labels.to_list(), n=3, cutoff=cutoff)
    return list(dict.fromkeys(same + near))[:3]


def _label(labels: pl.Series, kind: str, row: int) -> str:
    if not 0 <= row < len(labels):
        raise DataError(f"expected the id of a{'n' * (kind == 'entity')} {kind}, 0 to {len(labels) - 1}, got {row}")
    return str(labels[int(row)])


def _checked_ids(ids: ArrayLike, largest: int, kind: str) -> NDArray[np.int64]:
    rows = np.asarray(ids, dtype=np.int64).reshape(-1)
    wrong = rows[(rows < -1) | (rows > largest)]
    if len(wrong):
        raise DataError(f"expected {kind} ids from -1 to {largest}, got {wrong[0]}")
    return rows


def _decode(rows: NDArray[np.int64], labels: pl.Series) -> pl.Series:
    """Return labels by their positions, null for positions out of range."""
    ids = pl.Series(rows)
    return labels.gather(ids.set((ids < 0) | (ids >= len(labels)), None)).rename("")
