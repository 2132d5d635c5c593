r"""From ids to labels: of entities and relations in frames, and the texts of rules.

The text of many rules is put together from six pieces each: the head around its constant, the body around its constant,
and the two constants. The pieces of a head depend on its directed relation only, those of a body on the row of the
table of bodies and on where the path starts and ends; both are far fewer than rules.

In frames, constants are labels, and the token self stands among them. In files it is `SELF_MARKER`, which no label can
be. In frames for people it is `me_myself_i`, as in the text of a rule. Should an entity have that very label, it gets a
backslash there: `\me_myself_i` is the entity, `\\me_myself_i` an entity whose label has a backslash of its own, and so
on. A frame with `SELF_MARKER`, among its labels or in their dictionary, is taken for one of a file.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import RuleError
from anyburl.data.attributes import attributes_of
from anyburl.data.vocabulary import SELF_TOKEN, Vocabulary
from anyburl.rules.columns import VALUE_KINDS, RuleColumns
from anyburl.rules.rule import (
    BODY_VARIABLES,
    SELF,
    SUSPICIOUS,
    Atom,
    Condition,
    Constant,
    Rule,
    Term,
    Variable,
    X,
    Y,
    escape_label,
    unwritable_labels,
)
from anyburl.rules.types import KINDS

Indexes = NDArray[np.int64]

SELF_MARKER = "\0self"
"""Stands for the token self among labels; no label can hold its first character."""

MOST_ENUM_LABELS = 500_000
"""Larger vocabularies are written as strings: a dictionary of all labels in every file would cost more."""

_LIKE_TOKEN = rf"^\\*{SELF_TOKEN}$"
_QUOTED_TOKEN = rf"^\\+{SELF_TOKEN}$"

LETTERS = pl.Series([*BODY_VARIABLES, "X", "Y"])
X_CODE, Y_CODE = len(BODY_VARIABLES), len(BODY_VARIABLES) + 1

N_FORMS = 2 * len(KINDS)  # how a body is written: twice the code of the type; + 1 if its path starts at Y
ENDS_IN_Y = np.repeat([not kind.form.has_head_constant for kind in KINDS], 2)
ENDS_IN_VALUE = np.repeat([kind.form.has_condition for kind in KINDS], 2)
ENDS_IN_CONSTANT = np.repeat([kind.form.has_body_constant for kind in KINDS], 2)


class FrameLabels(NamedTuple):
    """The labels of ids in frames of rules, as columns to gather from."""

    types: pl.Series
    relations: pl.Series
    entities: pl.Series  # and the token self, in the last row


def labels_for_people(vocabulary: Vocabulary) -> FrameLabels:
    """Return labels as strings, with which Polars can do most; the token self is `me_myself_i`."""
    entities = _with_self(quote_labels(vocabulary.entities), SELF_TOKEN)
    return FrameLabels(_type_names(), vocabulary.relations, entities)


def labels_for_files(rules: RuleColumns) -> FrameLabels:
    """Return dictionary-encoded labels; the token self is `SELF_MARKER`."""
    vocabulary = rules.vocabulary
    entities = _with_self(vocabulary.entities, SELF_MARKER)
    # Without conditions, files are those that earlier versions read and wrote.
    types = pl.Series([str(kind) for kind in KINDS if rules.low is not None or not kind.form.has_condition])
    return FrameLabels(types.cast(pl.Enum(types)), _dictionary(vocabulary.relations), _dictionary(entities))


def gather_labels(labels: pl.Series, ids: NDArray[np.integer]) -> pl.Series:
    """Return the labels of ids, null for -1."""
    rows = pl.Series(ids)
    return labels.gather(rows.set(rows < 0, None))


def quote_labels(entities: pl.Series) -> pl.Series:
    """Return the labels of entities as they stand in frames for people."""
    return entities.zip_with(~entities.str.contains(_LIKE_TOKEN), "\\" + entities)


def labels_of_texts(texts: pl.Series) -> pl.Series:
    """Return the labels behind all texts of entities in a frame, with `SELF_MARKER` for the token self."""
    if (texts == SELF_MARKER).any():
        return texts
    unquoted = texts.str.strip_prefix("\\").zip_with(texts.str.contains(_QUOTED_TOKEN), texts)
    return unquoted.zip_with(texts != SELF_TOKEN, pl.Series([SELF_MARKER], dtype=pl.String))


def rule_object(rules: RuleColumns, row: int) -> Rule:
    """Return the rule at a row as an object."""
    path = [int(step) for step in rules.bodies[rules.body[row]] if step >= 0]
    attribute = path.pop() if rules.low is not None and not np.isnan(rules.low[row]) else -1
    head = int(rules.head[row])
    is_binary = rules.head_constant[row] < 0
    start, end = (X, Y) if head < rules.vocabulary.n_relations else (Y, X)
    far = end if is_binary else _constant(rules, int(rules.head_constant[row]))
    terms: list[Term] = [start, *map(Variable, BODY_VARIABLES[: len(path)])]
    if is_binary:
        terms[-1] = end
    elif rules.body_constant[row] >= 0:
        terms[-1] = _constant(rules, int(rules.body_constant[row]))
    steps = zip(path, terms[:-1], terms[1:], strict=True)
    condition = None if attribute < 0 else _condition_at(rules, row, X if is_binary else terms[-1])
    return Rule(_atom(rules, head, start, far), tuple(_atom(rules, *step) for step in steps), condition)


def _condition_at(rules: RuleColumns, row: int, variable: Term) -> Condition:
    """Return the condition of the rule at a row, on a variable; of a binary rule, the comparison of X and Y."""
    assert rules.low is not None
    assert rules.high is not None
    assert isinstance(variable, Variable)
    body = rules.bodies[rules.body[row]]
    attribute = int(body[(body >= 0).sum() - 1])
    kind = VALUE_KINDS[0 if rules.value_kind is None else int(rules.value_kind[row])]
    label, than = rules.vocabulary.relation_label(attribute), None
    if rules.head_constant[row] < 0:
        than, known = Y, attributes_of(rules.vocabulary).get(label)  # the text of a comparison does not tell the kind
        kind = kind if known is None else known.kind
    return Condition(label, variable, float(rules.low[row]), float(rules.high[row]), kind, than)


class RuleTexts:
    """Writes the rules of a set as text, as they are or with labels escaped."""

    def __init__(self, rules: RuleColumns, *, escaped: bool = False) -> None:
        self.rules = rules
        entities, relations = rules.vocabulary.entities, rules.vocabulary.relations
        if escaped:
            entities, relations = _escape(entities, is_entity=True), _escape(relations, is_entity=False)
        self.relations = relations
        # The last two rows are for the token self and for no constant (-1).
        self.constants = pl.concat([entities, pl.Series([SELF_TOKEN, ""])])
        pair = pl.DataFrame({"relation": relations})
        unary = pair.select(before=pl.col("relation") + "(X,", after=pl.lit(")"))
        flipped = pair.select(before=pl.col("relation") + "(", after=pl.lit(",Y)"))
        binary = pair.select(before=pl.col("relation") + "(X,Y)", after=pl.lit(""))
        self.heads = pl.concat([unary, flipped, binary])

    def texts(self, start: int, stop: int) -> pl.Series:
        """Return the text of the rules from row `start` to row `stop`."""
        return self._texts_at(slice(start, stop))

    def of_rows(self, rows: NDArray[np.integer]) -> pl.Series:
        """Return the text of the rules at some rows, of which many may be the same; null for -1, which is no rule."""
        distinct, numbers = np.unique(rows, return_inverse=True)
        n_without = int(np.searchsorted(distinct, 0))
        texts = self._texts_at(distinct[n_without:])
        return pl.concat([pl.Series(texts.name, [None] * n_without, dtype=texts.dtype), texts]).gather(numbers)

    def _texts_at(self, rows: slice | NDArray[np.integer]) -> pl.Series:
        """Return the text of the rules at some rows."""
        rules = self.rules
        is_binary = rules.head_constant[rows] < 0
        head = rules.head[rows] + np.where(is_binary, 2 * rules.vocabulary.n_relations, 0)
        form = 2 * rules.type[rows] + (rules.head[rows] >= rules.vocabulary.n_relations)
        combinations, numbers = np.unique(rules.body[rows] * np.int64(N_FORMS) + form, return_inverse=True)
        bodies = self._bodies(combinations // N_FORMS, combinations % N_FORMS)
        pieces: dict[str, pl.Series] = {
            "head_before": self.heads["before"].gather(head),
            "head_constant": self._constants(rules.head_constant[rows]),
            "head_after": self.heads["after"].gather(head),
            "body_before": bodies["before"].gather(numbers),
            "body_constant": self._constants(rules.body_constant[rows]),
            "body_after": bodies["after"].gather(numbers),
        }
        if rules.low is not None:
            pieces["condition"] = self._conditions(np.arange(len(rules))[rows])
        arrow = pl.lit(" <= ")
        order = [*list(pieces)[:3], arrow, *list(pieces)[3:]]
        return pl.DataFrame(pieces).select(rule=pl.concat_str(order)).to_series()

    def _conditions(self, rows: NDArray[np.integer]) -> pl.Series:
        """Return the conditions of the rules at some rows, "" for those without."""
        texts = [""] * len(rows)
        for at in np.flatnonzero(self.rules.has_condition[rows]):
            *atoms, condition = rule_object(self.rules, int(rows[at])).parts
            texts[at] = (", " if atoms else "") + condition.text(self._relation)
        return pl.Series(texts, dtype=pl.String)

    def _relation(self, label: str) -> str:
        return str(self.relations[self.rules.vocabulary.relation_id(label)])

    def _constants(self, entities: NDArray[np.int32]) -> pl.Series:
        return self.constants.gather(np.where(entities < 0, len(self.constants) - 1, entities))

    def _bodies(self, rows: Indexes, forms: Indexes) -> pl.DataFrame:
        """Return the text of bodies before and after their constant."""
        bodies = self.rules.bodies[rows]
        lengths = (bodies >= 0).sum(axis=1) - ENDS_IN_VALUE[forms]
        frame = pl.DataFrame({"before": pl.repeat("", len(rows), eager=True)}).with_columns(after="before")
        for position in range(bodies.shape[1]):
            present = pl.Series(lengths > position)
            atom = self._atoms(bodies[:, position], position, lengths, forms)
            frame = pl.DataFrame(
                {
                    "before": (frame["before"] + atom["before"]).zip_with(present, frame["before"]),
                    "after": (frame["after"] + atom["after"]).zip_with(present, frame["after"]),
                }
            )
        return frame

    def _atoms(self, steps: NDArray[np.int32], position: int, lengths: Indexes, forms: Indexes) -> pl.DataFrame:
        """Return the atoms at one position of bodies, cut where a constant goes; anything past the end."""
        n_relations = max(1, self.rules.vocabulary.n_relations)
        is_last = lengths == position + 1
        here = np.where(forms % 2 == 1, Y_CODE, X_CODE) if position == 0 else np.full(len(steps), position - 1)
        there = np.where(is_last & ENDS_IN_Y[forms], Y_CODE, min(position, X_CODE - 1))
        separator = "" if position == 0 else ", "
        return pl.DataFrame(
            {
                "relation": self.relations.gather(np.where(steps < 0, 0, steps % n_relations)),
                "forward": steps < n_relations,
                "is_cut": is_last & ENDS_IN_CONSTANT[forms],
                "here": LETTERS.gather(here),
                "there": LETTERS.gather(there),
            }
        ).select(before=separator + _before_constant(), after=_after_constant())


def check_writable(rules: RuleColumns) -> None:
    """Refuse rules with labels that text cannot carry, with the first of them."""
    vocabulary = rules.vocabulary
    entities = _used(vocabulary.entities, rules.head_constant, rules.body_constant)
    n_relations = max(1, vocabulary.n_relations)
    steps = rules.bodies[np.unique(rules.body)].ravel()
    relations = _used(vocabulary.relations, rules.head % n_relations, steps[steps >= 0] % n_relations)
    suspects = (labels.filter(labels.str.contains(SUSPICIOUS)) for labels in (entities, relations))
    faults = unwritable_labels(*suspects)
    if faults:
        shown = ", ".join(f"{label!r} {fault}" for label, fault in faults[:5])
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise RuleError(
            f"the text format cannot represent {len(faults)} label{'s' * (len(faults) > 1)} of these rules "
            f"({shown}{more}): save them as .parquet, or escape the labels (escaped=True)"
        )


def _before_constant() -> pl.Expr:
    relation, here, there = pl.col("relation"), pl.col("here"), pl.col("there")
    return (
        pl.when(pl.col("is_cut") & pl.col("forward"))
        .then(pl.concat_str(relation, pl.lit("("), here, pl.lit(",")))
        .when("is_cut")
        .then(pl.concat_str(relation, pl.lit("(")))
        .when("forward")
        .then(pl.concat_str(relation, pl.lit("("), here, pl.lit(","), there, pl.lit(")")))
        .otherwise(pl.concat_str(relation, pl.lit("("), there, pl.lit(","), here, pl.lit(")")))
    )


def _after_constant() -> pl.Expr:
    return (
        pl.when(pl.col("is_cut") & pl.col("forward"))
        .then(pl.lit(")"))
        .when("is_cut")
        .then(pl.concat_str(pl.lit(","), pl.col("here"), pl.lit(")")))
        .otherwise(pl.lit(""))
    )


def _escape(labels: pl.Series, *, is_entity: bool) -> pl.Series:
    """Escape the labels that need it; look closely at those that may."""
    suspects = labels.str.contains(f"%|{SUSPICIOUS}")
    escaped = [escape_label(label, is_entity=is_entity) for label in labels.filter(suspects)]
    return labels.clone().scatter(suspects.arg_true(), escaped) if escaped else labels


def _used(labels: pl.Series, *columns: NDArray[np.int32]) -> pl.Series:
    """Return the labels whose ids occur."""
    used = np.zeros(len(labels) + 2, dtype=np.bool_)
    for column in columns:
        used[column] = True  # `self` and -1 go to the last two rows
    return labels.filter(used[: len(labels)])


def float_texts(values: NDArray[np.float64]) -> pl.Series:
    """Write numbers as Python does. Polars differs in small ones only (1e-5 for 1e-05)."""
    texts = pl.Series(values).cast(pl.String)
    small = np.flatnonzero((values != 0) & (np.abs(values) < 1e-4))
    return texts.scatter(small, [repr(float(value)) for value in values[small]]) if len(small) else texts


def _atom(rules: RuleColumns, directed: int, here: Term, there: Term) -> Atom:
    n_relations = rules.vocabulary.n_relations
    relation = rules.vocabulary.relation_label(directed % n_relations)
    return Atom(relation, here, there) if directed < n_relations else Atom(relation, there, here)


def _constant(rules: RuleColumns, entity: int) -> Constant:
    is_self = entity == rules.vocabulary.self_id
    return SELF if is_self else Constant(rules.vocabulary.entity_label(entity))


def _type_names() -> pl.Series:
    return pl.Series([str(kind) for kind in KINDS])


def _with_self(entities: pl.Series, token: str) -> pl.Series:
    return pl.concat([entities, pl.Series([token], dtype=pl.String)])


def _dictionary(labels: pl.Series) -> pl.Series:
    """Return labels dictionary-encoded, unless they are too many."""
    return labels.cast(pl.Enum(labels)) if len(labels) <= MOST_ENUM_LABELS else labels
