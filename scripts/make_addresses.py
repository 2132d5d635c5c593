"""Write the addresses of data sets for `src/anyburl/data/addresses.toml`.

    python scripts/make_addresses.py FILE > src/anyburl/data/addresses.toml

FILE is TOML with a table for each data set, and in it for each split the `repo` on GitHub, the `commit`, the `path` and
git's `blob` id of the file; `sha256`, `bytes` and `lines` where they are known.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

HEADER = """\
# Where the files of data sets are: made by scripts/make_addresses.py. `blob` is git's id of the content, the SHA-1 of
# b"blob <size>\\0" followed by it. Addresses are pinned by a commit. `columns` is there where a file does not have the
# columns subject, relation, object.
"""
RAW = "https://raw.githubusercontent.com"
COLUMNS = {"kinship": ["relation", "subject", "object"]}  # as a look at the files shows
KEPT = ("blob", "sha256", "bytes", "lines")


def main() -> None:
    found = tomllib.loads(Path(sys.argv[1]).read_text("utf-8"))
    print(HEADER, end="")
    for name, splits in found.items():
        print("\n" + "\n".join(table(name, splits)))


def table(name: str, splits: dict[str, dict[str, Any]]) -> list[str]:
    """Return the lines about one data set."""
    (repo,) = {file["repo"] for file in splits.values()}
    lines = [f"[{name}]", f"source = {written(f'github.com/{repo}')}", f"[{name}.files]"]
    return lines + [f"{split} = {{ {', '.join(fields(name, file))} }}" for split, file in splits.items()]


def fields(name: str, file: dict[str, Any]) -> list[str]:
    """Return what is said about one file."""
    said = {"url": f"{RAW}/{file['repo']}/{file['commit']}/{file['path']}"}
    said |= {key: file[key] for key in KEPT if key in file}
    if name in COLUMNS:
        said["columns"] = COLUMNS[name]
    return [f"{key} = {written(value)}" for key, value in said.items()]


def written(value: Any) -> str:
    """Return a string, a number or a list of strings as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    main()
