"""Links lead somewhere: to a file of this project, and to a heading in it."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest
from typer.main import get_command

from anyburl import CompleteOptions, ExportOptions, LearnOptions, ReadOptions, __all__
from anyburl.base.checking import options_of
from anyburl.cli.app import app
from anyburl.learning.options import EmbedOptions
from docs.pages import ROOT, TEXTS, anchors_of, links_of, name_of


def is_elsewhere(link: str) -> bool:
    return link.startswith(("https://", "http://", "mailto:"))


@pytest.mark.parametrize("page", TEXTS, ids=name_of)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for link in links_of(page):
        if is_elsewhere(link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor and target.name != "python.md":  # its headings are made from the code
            assert anchor in anchors_of(target), link


def test_pages_of_the_site_link_within_the_site() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for link in links_of(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            assert is_elsewhere(link) or target.is_relative_to(ROOT / "docs"), f"{page.name}: {link}"


def test_every_page_and_picture_is_reached() -> None:
    """A page that is in no navigation, or a picture that no page shows, is forgotten."""
    shown = (ROOT / "mkdocs.yml").read_text("utf-8") + "".join(text.read_text("utf-8") for text in TEXTS)
    for file in (ROOT / "docs").rglob("*.*"):
        if not file.name.startswith("."):
            assert file.name in shown, file


def test_the_reference_has_every_public_name() -> None:
    reference = (ROOT / "docs/reference/python.md").read_text("utf-8")
    named = {line.removeprefix("::: anyburl.") for line in reference.splitlines() if line.startswith("::: ")}
    assert named == {*__all__} - {"__version__"}


def load_hook() -> ModuleType:
    """Load the script that MkDocs calls; scripts are no package."""
    spec = spec_from_file_location("reference", ROOT / "scripts/reference.py")
    assert spec is not None
    assert spec.loader is not None
    hook = module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


@pytest.fixture(scope="module")
def sources() -> Any:
    """Return the sources as the Python reference sees them."""
    extensions = griffe.load_extensions(str(ROOT / "scripts/reference.py"))
    return griffe.load("anyburl", search_paths=[ROOT / "src"], extensions=extensions)


@pytest.mark.parametrize("kind", [CompleteOptions, EmbedOptions, ExportOptions, LearnOptions, ReadOptions])
def test_the_reference_has_a_table_of_options(sources: Any, kind: Any) -> None:
    """With their defaults, and in the names of Python."""
    shown = sources[f"{kind.__module__}.{kind.__name__}".removeprefix("anyburl.")]
    assert shown.docstring is not None
    (table,) = [section for section in shown.docstring.parse("google") if section.kind.value == "parameters"]
    assert [row.name for row in table.value] == [*options_of(kind)]
    for row in table.value:
        assert "--" not in row.description
        assert row.value == repr(getattr(kind, row.name, {})), row.name


def test_the_reference_has_every_command_and_option() -> None:
    hook = load_hook()
    page = (ROOT / "docs/reference/command-line.md").read_text("utf-8")
    made = hook.on_page_markdown(page)
    assert hook.MARKER in page
    assert hook.MARKER not in made
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        section = made.partition(f"## anyburl {name}\n")[2].partition("\n## ")[0]
        for param in command.params:
            shown = param.opts[0] if param.opts[0].startswith("-") else param.metavar
            assert param.hidden or f"`{shown}`" in section, (name, shown)
