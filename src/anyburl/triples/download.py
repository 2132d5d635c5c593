"""Downloads of data sets: checked by checksum, and gone on with where they broke off."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pooch
import requests

from anyburl.errors import DataError
from anyburl.triples.registry import SUFFIXES, DatasetEntry, RemoteFile, download_folder

RETRIES = 2
SECONDS_TO_WAIT = 30
BYTES_AT_A_TIME = 1 << 16


def download(entry: DatasetEntry) -> Path:
    """Download what is missing of a data set, or differs from its checksums; return its folder."""
    folder = download_folder() / entry.name
    for split, file in entry.files.items():
        _fetch(file, folder, split)
    return folder


def _fetch(file: RemoteFile, folder: Path, split: str) -> None:
    """Download one file, unless it is there."""
    name = split + next(suffix for suffix in SUFFIXES if file.url.lower().endswith(suffix))
    files = pooch.create(
        folder, base_url="", registry={name: f"sha256:{file.sha256}"}, urls={name: file.url}, retry_if_failed=RETRIES
    )
    pooch.get_logger().setLevel("WARNING")
    try:
        files.fetch(name, downloader=ResumingDownloader(folder / f"{name}.part"))
    except requests.RequestException as error:
        raise DataError(f"{file.url} cannot be downloaded: {error}; try again to go on from there") from error
    except ValueError as error:
        raise DataError(
            f"{file.url} has not the checksum it should have, {file.sha256}: nothing of it was kept"
        ) from error
    except OSError as error:
        raise DataError(f"{folder / name} cannot be written: {error.strerror or error}") from error


class ResumingDownloader:
    """Downloads to a file beside the target, which a broken download leaves behind for the next try to go on with."""

    def __init__(self, partial: Path) -> None:
        self.partial = partial

    def __call__(self, url: str, output_file: str, pooch: Any, check_only: bool = False) -> bool | None:
        """Write what `url` gives to `output_file`, as pooch asks for."""
        n_there = self.partial.stat().st_size if self.partial.exists() else 0
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={n_there}-"} if n_there else {})}
        with requests.get(url, headers=headers, stream=True, timeout=SECONDS_TO_WAIT) as response:
            if n_there and response.status_code == requests.codes.requested_range_not_satisfiable:
                pass  # all of it is there: the checksum will tell
            else:
                response.raise_for_status()
                goes_on = response.status_code == requests.codes.partial_content
                with self.partial.open("ab" if goes_on else "wb") as stream:
                    for chunk in response.iter_content(BYTES_AT_A_TIME):
                        stream.write(chunk)
        os.replace(self.partial, output_file)
        return None
