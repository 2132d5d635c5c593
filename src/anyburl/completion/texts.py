"""Facts as lines of text: tab-separated, JSON, N-Triples (which is Turtle, too)."""

from __future__ import annotations

import json
from io import BytesIO

import polars as pl

from anyburl.rdf_terms import rdf_term
from anyburl.ruleset.files.anyburl_writer import float_texts


def to_tab_separated(facts: pl.DataFrame, is_first: bool) -> str:
    """Return one line per fact, with a header before the first part; the facts behind it are JSON."""
    numbers = {name: float_texts(facts[name].to_numpy()) for name in facts.columns if facts[name].dtype == pl.Float64}
    texts = [pl.col(name).str.replace_all(r"[\t\r\n]", " ") for name in facts.columns if facts[name].dtype == pl.String]
    lines = facts.with_columns(*texts, **{name: pl.Series(text) for name, text in numbers.items()})
    lines = lines.with_columns(
        pl.when(facts[name].is_null()).then(None).otherwise(pl.col(name)).alias(name) for name in numbers
    )
    if "facts" in facts.columns:
        told = [json.dumps(reason, ensure_ascii=False) for reason in facts["facts"].to_list()]
        lines = lines.with_columns(facts=pl.Series(told, dtype=pl.String))
    out = BytesIO()
    lines.write_csv(out, separator="\t", include_header=is_first, quote_style="never")
    return out.getvalue().decode()


def to_json_lines(facts: pl.DataFrame, is_first: bool) -> str:
    """Return one JSON object per fact."""
    out = BytesIO()
    facts.write_ndjson(out)
    return out.getvalue().decode()


def to_rdf_lines(facts: pl.DataFrame, is_first: bool) -> str:
    """Return one statement per fact; score, probability and rule are a comment."""
    terms = {name: _terms(facts[name], is_object=name == "object") for name in ("subject", "relation", "object")}
    comments = facts.select(
        pl.concat_str(
            pl.lit(" . # score "),
            pl.col("score").round(6).cast(pl.String),
            pl.col("probability").round(6).cast(pl.String).map_elements(_told, return_dtype=pl.String).fill_null(""),
            pl.lit(", "),
            pl.col("rule").str.replace_all(r"[\r\n]", " "),
        )
    ).to_series()
    lines = pl.DataFrame({**terms, "comment": comments})
    written = pl.concat_str("subject", pl.lit(" "), "relation", pl.lit(" "), "object", "comment", pl.lit("\n"))
    return "".join(lines.select(written).to_series().to_list())


def _told(probability: str) -> str:
    return f", probability {probability}"


def _terms(labels: pl.Series, *, is_object: bool) -> pl.Series:
    known = labels.unique().to_list()
    return labels.replace_strict(
        known, [rdf_term(label, is_object=is_object) for label in known], return_dtype=pl.String
    )
