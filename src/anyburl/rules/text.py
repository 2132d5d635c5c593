"""Rules as text, one a line: AnyBURL's, written and read; AMIE's, read.

    predictions<TAB>support<TAB>confidence<TAB>rule                       AnyBURL
    ?a  livesIn  ?b   => ?a  wasBornIn  ?b<TAB>and its measures           AMIE

AnyBURL's lines are read by columns. Those of an unusual shape (names with commas or parentheses, a body in another
order) are parsed one by one; what is not a rule is reported with its line number. A usual rule has labels without
commas and parentheses, and the text that we would write: X and Y in the head, the atoms of the body in the order of the
path, its variables A, B, C, ... along it.

AMIE's positive examples are the support and its body size is the number of predictions, counted without object
identity. What AMIE prints besides rules counts as comments. Labels are taken as they stand, with brackets if AMIE's
data had them. AMIE finds thousands of rules, not millions, so lines are parsed one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import RuleError, counted
from anyburl.base.polars_unstable import sink_frames
from anyburl.base.writing import replacing
from anyburl.data.vocabulary import SELF_TOKEN, Vocabulary
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import concatenate, first_of_each, reencode, unify
from anyburl.rules.labels import SELF_MARKER, RuleTexts, check_writable, float_texts
from anyburl.rules.rule import BODY_VARIABLES, Atom, Constant, Rule, Term, Variable, parse_rule
from anyburl.rules.rule_file import (
    LabelledRules,
    PathLike,
    ReadReport,
    encode_rules,
    first_bytes_of_rules,
    first_lines_of_rules,
    label_rules,
    numbered_rule_lines,
    repeated,
)
from anyburl.rules.types import TYPE_OF_END, End

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
    """Follow each body; return for each atom whether it goes forward, fits the path, and ends in a constant."""
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
    ends = {End.HEAD: is_binary, End.NOTHING: lengths == 0, End.CONSTANT: constant.is_not_null().to_numpy()}
    codes = [TYPE_OF_END[end].code for end in ends]
    return np.select(list(ends.values()), codes, TYPE_OF_END[End.VARIABLE].code).astype(np.uint8)


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


SLICE_LINES = 500_000
COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
FIELDS = ("predictions", "support", "confidence", "rule")
CONTRADICTION = "line {number}: {confidence} for {support} of {predictions}"
MOST_ROUNDED = 0.01  # tools may write two digits of a confidence


class Lines(NamedTuple):
    """What some lines hold."""

    rules: RuleColumns | None
    n_comments: int
    rejected: list[tuple[int, str]]
    n_contradicting: int = 0  # lines whose confidence does not fit their counts
    contradiction: str = ""  # the first of them


def read_text(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines; return them and a report of what was left out.

    Their counts are taken for estimates, since the text does not say.
    """
    first_bytes_of_rules(path)
    batches = [parse_lines(frame, escaped=escaped) for frame in numbered_rule_lines(path, SLICE_LINES)]
    n_comments = sum(batch.n_comments for batch in batches)
    rejected = sorted(pair for batch in batches for pair in batch.rejected)
    parts = unify((batch.rules for batch in batches if batch.rules is not None), vocabulary)
    if not parts.sets:
        nothing = RuleColumns.empty(vocabulary or Vocabulary.from_labels([], []))
        return nothing, ReadReport(0, n_comments, rejected)
    whole = concatenate(parts.sets)
    is_first = first_of_each(whole)
    rules = whole if is_first.all() else whole.take(is_first)
    remarks = [*repeated(len(whole) - len(rules)), *_contradictions(batches)]
    return rules, ReadReport(len(rules), n_comments, rejected, parts.n_unknown, remarks=remarks)


def write_text(rules: RuleColumns, path: PathLike, *, escaped: bool = False) -> None:
    """Write rules as text, compressed if the path ends in .gz or .zst; it appears when it is complete.

    Labels that text cannot carry are refused, or escaped on request.
    """
    if not escaped:
        check_writable(rules)
    texts = RuleTexts(rules, escaped=escaped)

    def frames() -> Iterator[pl.DataFrame]:
        for start in range(0, len(rules), SLICE_LINES):
            yield _line_frame(texts, start, min(start + SLICE_LINES, len(rules)))

    with replacing(Path(path), RuleError) as unfinished:
        sink_frames(
            pl.Schema({"line": pl.String}),
            frames,
            lambda lines: lines.sink_csv(
                unfinished,
                include_header=False,
                quote_style="never",
                compression=COMPRESSIONS.get(Path(path).suffix.lower(), "uncompressed"),
                check_extension=False,
            ),
        )


def _line_frame(texts: RuleTexts, start: int, stop: int) -> pl.DataFrame:
    part = texts.rules.slice(start, stop)
    columns = {
        "predictions": pl.Series(part.predictions),
        "support": pl.Series(part.support),
        "confidence": float_texts(part.confidence()),
        "rule": texts.texts(start, stop),
    }
    return pl.DataFrame(columns).select(line=pl.concat_str(pl.all(), separator="\t"))


def _contradictions(batches: list[Lines]) -> Iterator[str]:
    """Say that confidences contradict the counts."""
    n_lines = sum(batch.n_contradicting for batch in batches)
    if n_lines:
        verb = "has a confidence that contradicts its" if n_lines == 1 else "have confidences that contradict their"
        first = next(batch.contradiction for batch in batches if batch.n_contradicting)
        yield f"{counted(n_lines, 'line')} {verb} counts, which are used ({first})"


def parse_lines(lines: pl.DataFrame, *, escaped: bool) -> Lines:
    """Read a frame of lines with their numbers."""
    first = pl.col("number") == 1
    lines = lines.with_columns(
        pl.when(first).then(pl.col("line").str.strip_prefix("\ufeff")).otherwise("line").alias("line")
    )
    is_comment = lines["line"].str.starts_with("#")
    is_blank = lines["line"].str.strip_chars(" \t\r") == ""
    fields = _split_fields(lines.filter(~is_comment & ~is_blank))
    wrong, right = fields.filter(pl.col("fault").is_not_null()), fields.filter(pl.col("fault").is_null())
    rejected: list[tuple[int, str]] = list(wrong.select("number", "fault").iter_rows())
    rules, unparsed = _parse(right, escaped)
    odd = _contradicting(right)
    first_odd = [CONTRADICTION.format(**row) for row in odd.head(1).iter_rows(named=True)]
    return Lines(rules, int(is_comment.sum()), rejected + unparsed, len(odd), "".join(first_odd))


def _split_fields(lines: pl.DataFrame) -> pl.DataFrame:
    """Split lines at tabs, read the numbers, and name the first fault of each line."""
    texts = pl.col("line").str.splitn("\t", len(FIELDS)).struct.rename_fields(list(FIELDS))
    n_fields = pl.col("line").str.count_matches("\t", literal=True) + 1
    fields = lines.with_columns(n_fields=n_fields, fields=texts).unnest("fields")
    return fields.with_columns(
        pl.col("predictions", "support").cast(pl.Int64, strict=False).name.prefix("n_"),
        number_of_confidence=pl.col("confidence").cast(pl.Float64, strict=False),
    ).with_columns(fault=_fault())


def _contradicting(fields: pl.DataFrame) -> pl.DataFrame:
    """Return the lines whose confidence is not, even roughly, support / predictions."""
    predictions, support, confidence = (pl.col(name) for name in ("n_predictions", "n_support", "number_of_confidence"))
    fits = (confidence - support / predictions).abs() <= MOST_ROUNDED
    return fields.filter((predictions > 0) & ~(fits & confidence.is_finite()))


def _fault() -> pl.Expr:
    """Say what is wrong with a line, null if nothing is."""
    predictions, support = pl.col("n_predictions"), pl.col("n_support")
    return (
        pl.when(pl.col("n_fields") != len(FIELDS))
        .then(pl.format("expected 4 tab-separated fields, got {}", "n_fields"))
        .when(pl.col("line").str.contains("\0", literal=True))
        .then(pl.lit("expected text, got a NUL character"))
        .when(predictions.is_null())
        .then(pl.format("expected a whole number of predictions, got '{}'", "predictions"))
        .when(support.is_null())
        .then(pl.format("expected a whole number as support, got '{}'", "support"))
        .when(pl.col("number_of_confidence").is_null())
        .then(pl.format("expected a number as confidence, got '{}'", "confidence"))
        .when((support < 0) | (support > predictions))
        .then(pl.format("expected 0 <= support <= predictions, got {} and {}", "support", "predictions"))
        .when(support > np.iinfo(np.int32).max)
        .then(pl.format("the support {} is too large", "support"))
    )


def _parse(fields: pl.DataFrame, escaped: bool) -> tuple[RuleColumns | None, list[tuple[int, str]]]:
    """Return the rules in the order of their lines, and the lines that are not rules."""
    labelled, is_common = label_common_shapes(fields["rule"])
    common, others = fields.filter(is_common), fields.filter(~is_common)
    parsed: list[Rule] = []
    rows: list[int] = []
    rejected: list[tuple[int, str]] = []
    for row, (number, text) in enumerate(others.select("number", "rule").iter_rows()):
        try:
            parsed.append(parse_rule(text, escaped=escaped))
            rows.append(row)
        except RuleError as error:
            rejected.append((number, str(error)))
    others = others[rows]
    sets = [encode_rules(labelled, common["n_predictions"], common["n_support"], escaped=escaped)]
    if parsed:
        sets.append(encode_rules(label_rules(parsed), others["n_predictions"], others["n_support"]))
    joint = concatenate(unify(sets, None).sets)
    order = pl.concat([common["number"], others["number"]]).arg_sort().to_numpy()
    return (joint.take(order) if parsed else joint) if len(joint) else None, rejected


HEADER = "Rule\tHead Coverage"
ARROW = " => "
RULE = re.compile(rf"\?\w+ .*{ARROW}")
N_LINES = 100  # before the first rule, AMIE prints its options
AMIE_SLICE = 100_000

COLUMNS = ("Positive Examples", "Body size")
POSITIONS = (4, 5)
"""The columns of a line, if there is no header."""

MOST_SUPPORT = np.iinfo(np.int32).max
MOST_PREDICTIONS = np.iinfo(np.int64).max


class Scored(NamedTuple):
    """A rule with its counts."""

    rule: Rule
    support: int
    predictions: int


def is_amie(path: PathLike) -> bool:
    """Whether a file of text starts as AMIE's do."""
    return any(line.startswith(HEADER) or RULE.match(line) for line in first_lines_of_rules(path, N_LINES))


def read_amie(path: PathLike, vocabulary: Vocabulary | None = None) -> tuple[RuleColumns, ReadReport]:
    """Read rules in the order of their lines; those that are not of our language are reported."""
    scored: list[Scored] = []
    rejected: list[tuple[int, str]] = []
    n_comments, positions = 0, POSITIONS
    lines = (
        row for frame in numbered_rule_lines(path, AMIE_SLICE) for row in frame.select("number", "line").iter_rows()
    )
    for number, line in lines:
        if line.startswith(HEADER):
            positions = _positions(line)
        if ARROW not in line:
            n_comments += bool(line.strip())
            continue
        try:
            scored.append(_parse_line(line, positions))
        except RuleError as error:
            rejected.append((number, str(error)))
    encoded = _encode(scored)
    rules = encoded.take(first_of_each(encoded))
    known = rules if vocabulary is None else reencode(rules, vocabulary)
    remarks = [*repeated(len(encoded) - len(rules))]
    return known, ReadReport(len(known), n_comments, rejected, len(rules) - len(known), remarks=remarks)


def _encode(scored: list[Scored]) -> RuleColumns:
    predictions = pl.Series([line.predictions for line in scored], dtype=pl.Int64)
    support = pl.Series([line.support for line in scored], dtype=pl.Int64)
    return encode_rules(label_rules([line.rule for line in scored]), predictions, support)


def _positions(header: str) -> tuple[int, int]:
    names = header.rstrip("\r\n").split("\t")
    support, predictions = (names.index(name) if name in names else -1 for name in COLUMNS)
    return support, predictions


def _parse_line(line: str, positions: tuple[int, int]) -> Scored:
    text, *fields = line.rstrip("\r\n").split("\t")
    support, predictions = (_count(fields, position, name) for position, name in zip(positions, COLUMNS, strict=True))
    if not 0 <= support <= predictions:
        raise RuleError(f"expected 0 <= positive examples <= body size, got {support} and {predictions}")
    if support > MOST_SUPPORT or predictions > MOST_PREDICTIONS:
        raise RuleError(f"counts are too large: {support} positive examples, body size {predictions}")
    body, _, head = text.rpartition(ARROW)
    heads = _atoms(head)
    if len(heads) != 1:
        raise RuleError(f"expected one atom after =>, got {head.strip()!r}")
    return Scored(Rule(heads[0], tuple(_atoms(body))), support, predictions)


def _count(fields: list[str], position: int, name: str) -> int:
    """Return a number, which AMIE may write as 12 or 12.0; `position` counts the rule."""
    if not 1 <= position <= len(fields):
        raise RuleError(f"expected AMIE's columns, with {name}, got {len(fields) + 1}")
    try:
        return round(float(fields[position - 1]))
    except (ValueError, OverflowError):
        raise RuleError(f"expected a number as {name}, got {fields[position - 1]!r}") from None


def _atoms(text: str) -> list[Atom]:
    """Read atoms of three words, which two blanks separate, so that labels may have one; or any blanks."""
    words = re.split(r" {2,}", text.strip())
    if len(words) % 3:
        words = text.split()
    if len(words) % 3:
        raise RuleError(f"expected atoms of subject, relation and object, got {text.strip()!r}")
    triples = zip(words[::3], words[1::3], words[2::3], strict=True)
    return [Atom(relation, _term(subject), _term(object)) for subject, relation, object in triples]


def _term(word: str) -> Term:
    return Variable(word[1:]) if word.startswith("?") else Constant(word)
