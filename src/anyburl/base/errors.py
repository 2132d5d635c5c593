"""What can go wrong, as a tree.

AnyburlError
├── DataError            triples and the files they come from
│   ├── UnknownLabelError    an entity or relation that the data does not have
│   ├── UnknownDataError     no data set, folder or file has the given name
│   ├── QueryError           one of many queries
│   └── UnauthorizedError    a server asks for credentials
│       └── CredentialsError     a server rejects the credentials it got
├── RuleError            the text of a rule, and files of rules
├── OptionError          options that do not go together, or are missing (also a ValueError)
│   └── InvalidOptionError   a value that one option does not take
├── RunError             a run folder that cannot be opened, written or resumed
└── MissingExtraError    a library that an optional part needs

Every message says what was wrong, what was given and what would do. The command line prints it as one
sentence and exits with code 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from anyburl.base.redacting import redacted

MOST_QUOTED = 200  # characters of a value in a message


class AnyburlError(Exception):
    """Base class of all errors that anyburl raises on purpose."""

    def __str__(self) -> str:
        """Return the sentence in one line: a label or path may contain line breaks and codes for the terminal.

        A password in an address is not repeated, wherever the address comes from.
        """
        return printable(redacted(super().__str__()))


class DataError(AnyburlError):
    """Triples, or a file of triples, are invalid."""


class UnknownLabelError(DataError):
    """An entity or relation that is not in the vocabulary."""

    def __init__(self, kind: str, label: str, suggestions: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(repr(s) for s in suggestions)}?" if suggestions else ""
        self.without_hint = f"unknown {kind} {label!r}"
        super().__init__(f"{self.without_hint}{hint}")
        self.label = label
        self.suggestions = tuple(suggestions)


class UnknownDataError(DataError):
    """No data set, folder or file has the given name; `suggestions` are the names of data sets that are like it."""

    def __init__(self, message: str, suggestions: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.suggestions = tuple(suggestions)


class QueryError(DataError):
    """One of many queries is invalid: its number, from 1, and the reason."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"query {number}: {reason}")
        self.number, self.reason = number, reason


class UnauthorizedError(DataError):
    """A server asks for credentials, and none are known."""


class CredentialsError(UnauthorizedError):
    """A server rejects the credentials that it got: asking for them again would not help."""


class RuleError(AnyburlError):
    """The text of a rule, or a rule file, is invalid."""


class OptionError(AnyburlError, ValueError):
    """Options contradict each other, or one is missing."""


class InvalidOptionError(OptionError):
    """An option has an invalid value: `InvalidOptionError("top", "at least 1", 0)`.

    `requirement` completes "must be"; it may refer to other options as {name}. In Python the message is "top must be at
    least 1, got 0"; the command line uses the names of its flags.
    """

    def __init__(self, option: str, requirement: str, value: object) -> None:
        self.option, self.requirement, self.value = option, requirement, value
        super().__init__(self.worded(str))

    def worded(self, name: Callable[[str], str]) -> str:
        """Return the sentence, with `name` turning options into the words of a front end."""
        requirement = re.sub(r"\{(\w+)\}", lambda found: name(found[1]), self.requirement)
        return f"{name(self.option)} must be {requirement}, got {quoted(self.value)}"


class RunError(AnyburlError):
    """A run folder cannot be opened, written or resumed."""


class MissingExtraError(AnyburlError):
    """A feature needs a library that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'anyburl[{extra}]'")


def printable(text: str) -> str:
    """Return text with everything that is not printed, such as line breaks, written as Python writes it."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object) -> str:
    """Return a value as messages quote it: short, in one line, whatever it is."""
    try:
        text = repr(value)
    except Exception:  # Python does not print whole numbers of more than 4300 digits; others may fail as they like
        return f"a value of type {type(value).__name__} that cannot be printed"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: 1 rule, 2,000 rules."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
