"""Shell completion of values."""

from __future__ import annotations

from collections.abc import Callable

Complete = Callable[[str], list[str]]


def one_of(*values: str) -> Complete:
    """Return a completion by some values."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in values if value.startswith(incomplete)]

    return complete


def complete_data(incomplete: str) -> list[str]:
    """Return the names of data sets that can be loaded, in lower case if they are typed so; else the shell offers
    files.
    """
    from anyburl.cli.datasets import loadable_names

    spelled = [name if name.startswith(incomplete) else name.lower() for name in loadable_names()]
    return [name for name in spelled if name.startswith(incomplete)]
