"""`PublishOptions`: how facts are sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from anyburl.base import checking
from anyburl.base.errors import InvalidOptionError
from anyburl.data.options import ReadOptions

IRI = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]+')
Progress = Callable[[int], None]
"""Called with the number of further facts written."""


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """How facts are sent: the named `graph` of an endpoint, the number of facts per request, and the timeout."""

    graph: str | None = None
    batch_size: int = 1000
    timeout: float = ReadOptions.timeout

    def __post_init__(self) -> None:
        if self.graph is not None and not (isinstance(self.graph, str) and IRI.fullmatch(self.graph)):
            raise InvalidOptionError("graph", "an IRI, such as http://example.org/predicted", self.graph)
        checking.whole("batch_size", self.batch_size, 1)
        checking.waiting("timeout", self.timeout)
