"""The text of many rules at once.

A rule is put together from six pieces: the head around its constant, the body around its constant, and the
two constants. The pieces of a head depend on its directed relation only, those of a body on the row of the
table of bodies and on where the path starts and ends; both are far fewer than rules.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import RuleError
from anyburl.rules.labels import SUSPICIOUS, escape_label, unwritable_labels
from anyburl.rules.rule import BODY_VARIABLES
from anyburl.rules.types import RuleType
from anyburl.ruleset.columns import RuleColumns
from anyburl.triples.vocabulary import SELF_TOKEN

Indexes = NDArray[np.int64]

LETTERS = pl.Series([*BODY_VARIABLES, "X", "Y"])
X_CODE, Y_CODE = len(BODY_VARIABLES), len(BODY_VARIABLES) + 1

ENDS_IN_Y, ENDS_IN_VARIABLE, ENDS_IN_CONSTANT = 0, 2, 4  # how a body is written; + 1 if its path starts at Y
N_FORMS = 6


class RuleTexts:
    """Writes the rules of a set as text, as they are or with labels escaped."""

    def __init__(self, rules: RuleColumns, *, escaped: bool = False) -> None:
        self.rules = rules
        entities, relations = rules.vocabulary.entities, rules.vocabulary.relations
        if escaped:
            entities, relations = _escape(entities, is_entity=True), _escape(relations, is_entity=False)
        self.relations = relations
        # The last two places are for the token self and for no constant (-1).
        self.constants = pl.concat([entities, pl.Series([SELF_TOKEN, ""])])
        pair = pl.DataFrame({"relation": relations})
        unary = pair.select(before=pl.col("relation") + "(X,", after=pl.lit(")"))
        flipped = pair.select(before=pl.col("relation") + "(", after=pl.lit(",Y)"))
        binary = pair.select(before=pl.col("relation") + "(X,Y)", after=pl.lit(""))
        self.heads = pl.concat([unary, flipped, binary])

    def texts(self, start: int, stop: int) -> pl.Series:
        """Return the text of the rules from row `start` to row `stop`."""
        return self.texts_at(slice(start, stop))

    def texts_at(self, rows: slice | NDArray[np.integer]) -> pl.Series:
        """Return the text of the rules at some rows."""
        rules = self.rules
        is_binary = rules.type[rows] == RuleType.BINARY.code
        head = rules.head[rows] + np.where(is_binary, 2 * rules.vocabulary.n_relations, 0)
        form = _forms(rules, rows)
        combinations, places = np.unique(rules.body[rows] * np.int64(N_FORMS) + form, return_inverse=True)
        bodies = self._bodies(combinations // N_FORMS, combinations % N_FORMS)
        pieces = {
            "head_before": self.heads["before"].gather(head),
            "head_constant": self._constants(rules.head_constant[rows]),
            "head_after": self.heads["after"].gather(head),
            "body_before": bodies["before"].gather(places),
            "body_constant": self._constants(rules.body_constant[rows]),
            "body_after": bodies["after"].gather(places),
        }
        arrow = pl.lit(" <= ")
        order = [*list(pieces)[:3], arrow, *list(pieces)[3:]]
        return pl.DataFrame(pieces).select(rule=pl.concat_str(order)).to_series()

    def behind(self, rows: NDArray[np.int32]) -> pl.Series:
        """Return the text of the rule behind each of many answers, by the rows that ranking gives them: null for -1, an
        answer of no rule.
        """
        rules, places = np.unique(rows, return_inverse=True)
        n_without = int(np.searchsorted(rules, 0))
        texts = self.texts_at(rules[n_without:])
        return pl.concat([pl.Series(texts.name, [None] * n_without, dtype=texts.dtype), texts]).gather(places)

    def _constants(self, entities: NDArray[np.int32]) -> pl.Series:
        return self.constants.gather(np.where(entities < 0, len(self.constants) - 1, entities))

    def _bodies(self, rows: Indexes, forms: Indexes) -> pl.DataFrame:
        """Return the text of bodies before and after their constant."""
        bodies = self.rules.bodies[rows]
        lengths = (bodies >= 0).sum(axis=1)
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
        there = np.where(is_last & (forms == ENDS_IN_Y), Y_CODE, min(position, X_CODE - 1))
        separator = "" if position == 0 else ", "
        return pl.DataFrame(
            {
                "relation": self.relations.gather(np.where(steps < 0, 0, steps % n_relations)),
                "forward": steps < n_relations,
                "is_cut": is_last & (forms >= ENDS_IN_CONSTANT),
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


def _forms(rules: RuleColumns, rows: slice | NDArray[np.integer]) -> Indexes:
    """Return how each rule's body is to be written."""
    types = rules.type[rows]
    starts_at_y = rules.head[rows] >= rules.vocabulary.n_relations
    ends = np.full(len(types), ENDS_IN_VARIABLE, dtype=np.int64)
    ends[types == RuleType.BINARY.code] = ENDS_IN_Y
    ends[types == RuleType.UNARY_CONSTANT.code] = ENDS_IN_CONSTANT
    return ends + starts_at_y


def _escape(labels: pl.Series, *, is_entity: bool) -> pl.Series:
    """Escape the labels that need it; look closely at those that may."""
    suspects = labels.str.contains(f"%|{SUSPICIOUS}")
    escaped = [escape_label(label, is_entity=is_entity) for label in labels.filter(suspects)]
    return labels.clone().scatter(suspects.arg_true(), escaped) if escaped else labels


def _used(labels: pl.Series, *columns: NDArray[np.int32]) -> pl.Series:
    """Return the labels whose ids occur."""
    used = np.zeros(len(labels) + 2, dtype=np.bool_)
    for column in columns:
        used[column] = True  # `self` and -1 go to the two last places
    return labels.filter(used[: len(labels)])
