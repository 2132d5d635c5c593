"""The README's figures are those that benchmarks stored, and its extras those that can be installed."""

from __future__ import annotations

import re
import tomllib

import readme


def test_the_readme_has_the_figures_of_the_results() -> None:
    text = readme.README.read_text("utf-8")
    assert text == readme.rendered(text), "run `python benchmarks/readme.py`"


def test_another_result_changes_the_readme(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    stored = readme.stored("learn-fb15k")
    stored["results"]["seconds"] = 77.7
    monkeypatch.setattr(
        readme, "stored", lambda name, now=readme.stored: stored if name == "learn-fb15k" else now(name)
    )
    assert "in 77.7 seconds" in readme.rendered(readme.README.read_text("utf-8"))


def test_every_table_and_sentence_with_figures_is_in_the_readme() -> None:
    text = readme.README.read_text("utf-8")
    assert re.findall(r"<!-- figures: (\w+) -->", text) == list(readme.TABLES)
    assert all(sentence in text for sentence in readme.sentences().values())


def test_every_extra_is_named_in_the_readme() -> None:
    text = readme.README.read_text("utf-8")
    project = tomllib.loads((readme.README.parent / "pyproject.toml").read_text("utf-8"))["project"]
    named = set(re.findall(r"'\.\[(\w+)\]'", text))
    assert named == set(project["optional-dependencies"])
