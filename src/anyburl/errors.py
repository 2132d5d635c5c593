"""What can go wrong, as a tree.

AnyburlError
├── DataError            triples and the files they come from
│   └── UnknownLabelError    an entity or relation that the data does not have
├── RuleError            the text of a rule, and files of rules
├── OptionError          a value that an option does not take (also a ValueError)
├── RunError             a run folder that cannot be opened or gone on with
└── MissingExtraError    a library that an optional part needs

Every message says what was wrong, what was given and what would do. The command line prints it as one
sentence and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Sequence


class AnyburlError(Exception):
    """Base of everything that anyburl raises on purpose."""


class DataError(AnyburlError):
    """Triples, or a file of triples, are not as they should be."""


class UnknownLabelError(DataError):
    """An entity or a relation that the vocabulary does not have."""

    def __init__(self, kind: str, label: str, suggestions: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(repr(s) for s in suggestions)}?" if suggestions else ""
        super().__init__(f"unknown {kind} {label!r}{hint}")
        self.label = label
        self.suggestions = tuple(suggestions)


class RuleError(AnyburlError):
    """The text of a rule, or a file of rules, is not as it should be."""


class OptionError(AnyburlError, ValueError):
    """An option was given a value that it does not take."""


class RunError(AnyburlError):
    """A run folder cannot be opened, written or gone on with."""


class MissingExtraError(AnyburlError):
    """An optional part of anyburl needs a library that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'anyburl[{extra}]'")
