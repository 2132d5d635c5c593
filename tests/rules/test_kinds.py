"""A form of rules is one record: what everybody takes from it, and in how few files forms are distinguished besides."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import anyburl
from anyburl import RuleType
from anyburl.bodies import arrays
from anyburl.rules.types import FORMS, KINDS, TYPE_OF_END, End
from anyburl.tools.options import LANGUAGES
from anyburl.tools.publishing import export_rules
from rules.samples import make_rules

PACKAGE = Path(anyburl.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST_FILES = 8

CODES = {"BINARY", "CONSTANT", "DANGLING", "ZERO", "GROUNDED"}
"""What the kernels call the forms, in `bodies/arrays.py`."""


def test_the_table_is_in_order() -> None:
    assert [kind.code for kind in KINDS] == list(range(len(RuleType))) == [kind.code for kind in RuleType]
    assert [TYPE_OF_END[end] for end in End] == list(KINDS)
    assert arrays.GROUNDED not in [kind.code for kind in KINDS]


def test_every_form_has_inks_in_the_style_sheet() -> None:
    styles = (PACKAGE / "web" / "static" / "app.css").read_text("utf-8")
    for kind in KINDS:
        for length in range(1, 5):
            assert re.search(rf"\.{kind.form.ink}{length}\b", styles), (kind, length)


@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_that_say_more_than_their_atoms_are_not_exported(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = make_rules([("h(X,Y) <= b(X,Y)", (3, 2)), ("h(X,c) <= b(X,A)", (3, 2)), ("h(X,c) <= b(X,d)", (3, 2))])
    assert export_rules(rules, io.StringIO(), to=language).left_out == {}
    dangling = RuleType.UNARY_DANGLING
    monkeypatch.setitem(FORMS, dangling, replace(dangling.form, says_its_atoms=False))
    report = export_rules(rules, io.StringIO(), to=language)
    assert (report.n_rules, report.left_out) == (2, {"is unary, dangling, which is not what its atoms say": 1})


WORDS = {"RuleType", "End.", *CODES, *(f'"{kind}"' for kind in KINDS if len(kind) > 1)}
"""A file without any of these names no form."""


def _names_of_forms(tree: ast.Module) -> Iterator[str]:
    """Yield every form that a module names: by its type, by how its bodies end, by its code or by its name in files."""
    types, names = set(RuleType.__members__), {str(kind) for kind in KINDS if len(kind) > 1}
    codes = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "anyburl.bodies.arrays"
        for alias in node.names
    } & CODES
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id == "RuleType" and node.attr in types) or (
                node.value.id == "End" and node.attr in End.__members__
            ):
                yield node.attr
        elif isinstance(node, ast.Name) and node.id in codes:
            yield node.id
        elif isinstance(node, ast.Constant) and node.value in names:
            yield str(node.value)


def test_few_files_distinguish_forms_and_the_documentation_lists_them() -> None:
    """All others loop over the table, or look at what a rule has: constants, and steps."""
    texts = {path: path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    modules = {path: ast.parse(text) for path, text in texts.items() if any(word in text for word in WORDS)}
    found = {path.relative_to(PACKAGE).as_posix() for path, tree in modules.items() if any(_names_of_forms(tree))}
    assert len(found) <= MOST_FILES, sorted(found)
    section = PAGE.read_text("utf-8").partition("## Add a rule form\n")[2].partition("\n## ")[0]
    assert found <= set(re.findall(r"`([a-z_/]+\.py)`", section))
