"""Pages of a list."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Paging:
    """Which rows of `n_rows` a page shows, `size` at a time; pages count from 1."""

    page: int
    size: int
    n_rows: int

    @property
    def first(self) -> int:
        return (self.page - 1) * self.size

    @property
    def last(self) -> int:
        return min(self.first + self.size, self.n_rows)

    @property
    def n_pages(self) -> int:
        return max(1, -(-self.n_rows // self.size))
