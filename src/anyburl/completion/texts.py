"""Facts as lines of text: tab-separated, JSON."""

from __future__ import annotations

import json
from io import BytesIO

import polars as pl

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
