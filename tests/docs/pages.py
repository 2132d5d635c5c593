"""What the documentation consists of: pages, their blocks of code, links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

FENCE = re.compile(r"^```(\w+)([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TITLE = re.compile(r'title="([^"]*)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: `title` is what stands above it on the page."""

    page: str
    line: int
    language: str
    title: str
    code: str

    @property
    def is_left_out(self) -> bool:
        """Whether the page says that it needs something that tests do not have."""
        return self.title.startswith(("needs ", "installs", "takes "))

    @property
    def is_output(self) -> bool:
        """Whether it shows what the block before prints."""
        return self.language == "text" and self.title == "prints"

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """Return a page's path in the project."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, info, code = match.groups()
        title = TITLE.search(info)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(name_of(page), line, language, title[1] if title else "", code))
    return found


def prose_of(page: Path) -> str:
    """Return a page without its blocks and inline code."""
    text = FENCE.sub("", page.read_text("utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


def links_of(page: Path) -> list[str]:
    """Return the targets of links and images."""
    return re.findall(r"\]\(([^)\s]+)(?:\s[^)]*)?\)", prose_of(page))


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as MkDocs and GitHub make them."""
    text = FENCE.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
