"""Checksums of downloaded files: git's blob id and SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path

from anyburl.triples.entries import RemoteFile

BLOCK = 1 << 20


def wrong_checksum(path: Path, file: RemoteFile) -> str | None:
    """Return in words how a file differs from what it should be; None if it does not."""
    blob = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    sha256 = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            blob.update(block)
            sha256.update(block)
    if file.blob and file.blob != blob.hexdigest():
        return f"expected the git blob {file.blob}, got {blob.hexdigest()}"
    if file.sha256 and file.sha256 != sha256.hexdigest():
        return f"expected the SHA-256 {file.sha256}, got {sha256.hexdigest()}"
    return None
