"""`PublishOptions`: how facts are sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from anyburl.base import checking
from anyburl.base.checking import Options, option
from anyburl.data.options import ReadOptions

IRI = r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]+'
Progress = Callable[[int], None]
"""Called with the number of further facts written."""


@dataclass(frozen=True, kw_only=True)
class PublishOptions(Options):
    """How facts are sent."""

    graph: str | None = option(
        None,
        checking.text,
        "an IRI, such as http://example.org/predicted",
        IRI,
        help="The named graph to write to. Defaults to the endpoint's default graph.",
        metavar="IRI",
    )
    batch_size: int = option(1000, checking.whole, 1, help="Facts per update.", metavar="N")
    timeout: float = option(
        ReadOptions.timeout, checking.waiting, help="How long to wait for a silent server.", metavar="SECONDS"
    )
