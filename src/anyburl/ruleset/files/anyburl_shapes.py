"""Reading rules of the common shapes by columns.

Common is a rule whose labels hold no commas and parentheses, and whose text is just what we would write: X
and Y in the head, the body's atoms in the order of the path, its variables A, B, C, ... along it.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.rules.rule import BODY_VARIABLES
from anyburl.rules.types import RuleType
from anyburl.ruleset.files.labelled import LabelledRules
from anyburl.ruleset.labels import SELF_MARKER
from anyburl.triples.vocabulary import SELF_TOKEN

LABEL = r"[^(),\s](?:[^(),]*[^(),\s])?"
ATOM = rf"{LABEL}\({LABEL},{LABEL}\)"
COMMON = rf"^{ATOM} <= (?:{ATOM}(?:, {ATOM})*)?$"
HEAD_PARTS = r"^(?<relation>[^(]+)\((?<subject>[^,]+),(?<object>[^)]+)\) <= (?<body>.*)$"
ATOM_PARTS = r"^(?<relation>[^(]+)\((?<subject>[^,]+),(?<object>.+)$"

VARIABLES = pl.Enum([*BODY_VARIABLES, "X", "Y"])
X, Y = len(BODY_VARIABLES), len(BODY_VARIABLES) + 1
NO_VARIABLE = -1

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]


def label_common_shapes(texts: pl.Series) -> tuple[LabelledRules, pl.Series]:
    """Return the rules of common shapes, in order, and a mask of which they are."""
    is_common = texts.str.contains(COMMON)
    heads = texts.filter(is_common).str.extract_groups(HEAD_PARTS).struct.unnest()
    atoms, lengths = _body_atoms(heads["body"])
    subject, object = _codes(heads["subject"]), _codes(heads["object"])
    is_binary = (subject == X) & (object == Y)
    is_flipped = (subject == NO_VARIABLE) & (object == Y)
    in_order = is_binary | is_flipped | ((subject == X) & (object == NO_VARIABLE))
    in_order &= (lengths > 0) | ~is_binary

    rule = np.repeat(np.arange(len(heads)), lengths)
    forward, fits, is_constant = _walk(atoms, lengths, is_binary, np.where(is_flipped, Y, X), rule)
    in_order[rule[~fits]] = False
    constant = _last_terms(atoms, forward, is_constant, lengths)
    labelled = LabelledRules(
        type=_types(is_binary, lengths, constant),
        head=heads["relation"],
        is_flipped=is_flipped,
        head_constant=_constants(heads["subject"].zip_with(pl.Series(is_flipped), heads["object"]), ~is_binary),
        body_constant=constant,
        lengths=lengths,
        relations=atoms["relation"],
        forward=forward,
    )
    mask = is_common.scatter(is_common.arg_true(), pl.Series(in_order)) if len(heads) else is_common
    return _select(labelled, in_order, in_order[rule]), mask


def _body_atoms(bodies: pl.Series) -> tuple[pl.DataFrame, Codes]:
    """Return the atoms of bodies, rule after rule, and how many each has."""
    frame = pl.DataFrame({"body": bodies})
    pieces = frame.select(
        pl.when(pl.col("body") == "")
        .then(pl.lit([], dtype=pl.List(pl.String)))
        .otherwise(pl.col("body").str.strip_suffix(")").str.split("), "))
    ).to_series()
    lengths = pieces.list.len().cast(pl.Int64)
    atoms = pieces.filter(lengths > 0).explode(empty_as_null=False).str.extract_groups(ATOM_PARTS).struct.unnest()
    return atoms, lengths.to_numpy()


def _walk(atoms: pl.DataFrame, lengths: Codes, is_binary: Mask, starts: Codes, rule: Codes) -> tuple[Mask, Mask, Mask]:
    """Follow each body; tell of each atom whether it goes forward, fits the path, and ends in a constant."""
    position = np.arange(len(rule)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    is_last = position == lengths[rule] - 1
    here = np.where(position == 0, starts[rule], position - 1)
    there = np.where(is_last & is_binary[rule], Y, position)
    may_end = is_last & ~is_binary[rule]
    subject, object = _codes(atoms["subject"]), _codes(atoms["object"])
    forward = (subject == here) & ((object == there) | (may_end & (object == NO_VARIABLE)))
    backward = (object == here) & ((subject == there) | (may_end & (subject == NO_VARIABLE)))
    fits = (forward | backward) & (position < len(BODY_VARIABLES))
    far = np.where(forward, object, subject)
    return forward, fits, may_end & (far == NO_VARIABLE)


def _last_terms(atoms: pl.DataFrame, forward: Mask, is_constant: Mask, lengths: Codes) -> pl.Series:
    """Return the constant at the end of each body, null where there is none."""
    far = _constants(atoms["object"].zip_with(pl.Series(forward), atoms["subject"]), is_constant)
    last = pl.Series(np.cumsum(lengths) - 1)
    return far.gather(last.set(pl.Series(lengths == 0), None))


def _types(is_binary: Mask, lengths: Codes, constant: pl.Series) -> NDArray[np.uint8]:
    dangles = constant.is_null().to_numpy()
    types = np.where(dangles, RuleType.UNARY_DANGLING.code, RuleType.UNARY_CONSTANT.code)
    types[lengths == 0] = RuleType.ZERO.code
    types[is_binary] = RuleType.BINARY.code
    return types.astype(np.uint8)


def _constants(terms: pl.Series, where: Mask) -> pl.Series:
    """Return terms as constants, null elsewhere."""
    column = pl.col("term")
    constant = pl.when(column == SELF_TOKEN).then(pl.lit(SELF_MARKER)).otherwise(column)
    frame = pl.DataFrame({"term": terms, "where": where})
    return frame.select(pl.when("where").then(constant)).to_series().rename("")


def _codes(terms: pl.Series) -> Codes:
    """Return which variable each term is; `NO_VARIABLE` for a constant."""
    codes = terms.cast(VARIABLES, strict=False).to_physical().cast(pl.Int64)
    return codes.fill_null(NO_VARIABLE).to_numpy()


def _select(labelled: LabelledRules, rules: Mask, atoms: Mask) -> LabelledRules:
    if rules.all():
        return labelled
    of_rules, of_atoms = pl.Series(rules), pl.Series(atoms)
    return LabelledRules(
        type=labelled.type[rules],
        head=labelled.head.filter(of_rules),
        is_flipped=labelled.is_flipped[rules],
        head_constant=labelled.head_constant.filter(of_rules),
        body_constant=labelled.body_constant.filter(of_rules),
        lengths=labelled.lengths[rules],
        relations=labelled.relations.filter(of_atoms),
        forward=labelled.forward[atoms],
    )
