"""Take the pictures of the explorer for the documentation: python scripts/screenshots.py

Learns on geo and on the built-in history, serves them, and looks at their pages in Chromium.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SIZE = {"width": 1160, "height": 760}
PICTURES = {
    "home": ("/", "light"),
    "ask": (f"/ask?{urlencode({'subject': 'France', 'relation': 'official_language'})}", "light"),
    "why": (
        f"/why?{urlencode({'subject': 'Aalborg', 'relation': 'time_zone', 'object': 'Europe/Copenhagen'})}",
        "light",
    ),
    "graph": (f"/entity?{urlencode({'label': 'Iceland', 'view': 'graph'})}", "light"),
    "review": ("/review", "dark"),
}
TIMED = {
    "times": (f"/why?{urlencode(dict(subject='Canada', relation='chairs', object='G7', time='2025'))}", "light"),
}
"""Pages of the built-in history."""


def main() -> None:
    """Write one picture for each page."""
    chromium = shutil.which("chromium") or sys.exit("Chromium is not installed")
    for data, seconds, pictures in (("geo", ["--seconds", "60"], PICTURES), ("history", [], TIMED)):
        with tempfile.TemporaryDirectory() as folder:
            run = str(Path(folder) / data)
            command = [sys.executable, "-m", "anyburl"]
            subprocess.run([*command, "learn", data, *seconds, "--out", run, "--quiet"], check=True)
            serve = [*command, "serve", run, "--port", "0", "--json", "--quiet"]
            with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                told = ""
                while not told.rstrip().endswith("}"):
                    told += server.stdout.readline()
                take(chromium, json.loads(told)["address"].rstrip("/"), pictures)
                server.terminate()


def take(chromium: str, address: str, pictures: Mapping[str, tuple[str, str]]) -> None:
    """Look at some pages."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (path, scheme) in pictures.items():
            page = browser.new_page(viewport=SIZE, color_scheme="dark" if scheme == "dark" else "light")
            page.goto(address + path)
            if name == "review":
                page.wait_for_selector(".review-card")
            page.screenshot(path=IMAGES / f"explorer-{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
