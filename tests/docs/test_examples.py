"""Every block of code in the README and the documentation is run, and prints what the page says it prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clock import install
from docs.pages import PAGES, Block, blocks_of, name_of
from docs.running import Reader, run_here

LANGUAGES = {"python", "console", "text", "json", "toml", "yaml"}

LEFT_OUT = {
    "docs/howto/aggregation.md": ["needs anyburl[embed]"],
    "docs/howto/cluster.md": [
        "takes Ray a while to start",
        "takes Ray a while to start",
        "needs several machines",
        "needs several machines",
        "needs ten machines",
    ],
    "docs/howto/databases.md": [
        "installs the drivers",
        *["needs a PostgreSQL server", "needs a SPARQL endpoint"] * 2,
        "needs both",
    ],
    "docs/howto/datasets.md": [*["needs a network"] * 4, "needs a folder ~/graphs/MyData"],
    "docs/howto/explorer.md": [*["needs anyburl[web], and runs until Ctrl-C"] * 2, "needs the explorer"],
    "docs/howto/pykeen.md": ["needs anyburl[pykeen]"],
    "docs/howto/rdf.md": ["needs the dumps"],
    "README.md": ["installs anyburl", "installs anyburl and runs the tests", "needs a network"],
    "docs/tutorial.md": ["installs anyburl"],
}
"""What is not run, by its title on the page: installing, and what needs data that is not part of the package."""


TIME_ENOUGH = 0.002  # seconds of each look at the clock: for a whole run on geo, however busy the machine
TICKS = {"docs/howto/plots.md": 0.02}
"""Where nothing that is shown depends on how much is learned."""


@pytest.fixture(scope="session")
def geo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of the tutorial, which other pages use: complete, long before the seconds are over."""
    folder = tmp_path_factory.mktemp("docs") / "geo"
    run_here(["anyburl", "learn", "geo", "--seconds", "60", "--out", str(folder), "--quiet"])
    return folder


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return a reader with a folder of its own."""
    folder = tmp_path / "reader"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return Reader()


@pytest.fixture(autouse=True)
def quick_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train on a few questions: what pages show does not depend on a model."""
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 600)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 600)


def makes_its_run(blocks: list[Block]) -> bool:
    console = [block for block in blocks if block.language == "console" and not block.is_left_out]
    return any("--out runs/geo" in block.code for block in console)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_code_of_a_page_runs(page: Path, reader: Reader, geo_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, TICKS.get(name_of(page), TIME_ENOUGH))
    blocks = blocks_of(page)
    if not makes_its_run(blocks):
        shutil.copytree(geo_run, "runs/geo")
    for block in blocks:
        if block.is_output:
            reader.check_output(block)
        elif block.language in ("python", "console") and not block.is_left_out:
            reader.run(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_is_listed_here(page: Path) -> None:
    left_out = [block.title for block in blocks_of(page) if block.is_left_out]
    assert left_out == LEFT_OUT.get(name_of(page), [])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a language, or of one that is not known here, would not be run unnoticed."""
    lines = page.read_text("utf-8").splitlines()
    odd = [
        line for line in lines if line.lstrip().startswith(("~~~", "````")) or (line.startswith(" ") and "```" in line)
    ]
    fences = page.read_text("utf-8").count("\n```")
    blocks = blocks_of(page)
    assert not odd
    assert fences == 2 * len(blocks)
    assert {block.language for block in blocks} <= LANGUAGES
