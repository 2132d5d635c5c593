"""What can go wrong, as a tree.

AnyburlError
├── DataError            triples and the files they come from
│   ├── UnknownLabelError    an entity or relation that the data does not have
│   ├── AmbiguousNameError   a name of several entities or relations
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
sentence and exits with code 2. Secrets in addresses are not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote, unquote_plus

MOST_QUOTED = 200  # characters of a value in a message
MOST_LISTED = 10  # labels in a message


class AnyburlError(Exception):
    """Base class of all errors that anyburl raises on purpose."""

    def __str__(self) -> str:
        """Return the sentence in one line: a label or path may contain line breaks and codes for the terminal.

        A password in an address is not repeated, wherever the address comes from.
        """
        return printable(redacted(super().__str__()))

    def __reduce__(self) -> tuple[Callable[..., AnyburlError], tuple[object, ...]]:
        """Say how other processes make the same error: not from its message alone, which some classes do not take."""
        return _same_error, (type(self), self.args, self.__dict__)


def _same_error(kind: type[AnyburlError], args: tuple[object, ...], state: dict[str, object]) -> AnyburlError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


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


class AmbiguousNameError(DataError):
    """A name that several entities or relations have."""

    def __init__(self, kind: str, name: str, labels: Sequence[str]) -> None:
        shown = ", ".join(sorted(labels)[:MOST_LISTED]) + (", ..." if len(labels) > MOST_LISTED else "")
        super().__init__(f"the {kind} {name!r} is ambiguous; it could be {shown}")
        self.labels = tuple(labels)


class UnknownDataError(DataError):
    """No data set, folder or file has the given name; `suggestions` are similar names of data sets."""

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
        requirement = re.sub(r"\{(\w+)\}", lambda match: name(match[1]), self.requirement)
        return f"{name(self.option)} must be {requirement}, got {quoted(self.value)}"


class RunError(AnyburlError):
    """A run folder cannot be opened, written or resumed."""


class MissingExtraError(AnyburlError):
    """A feature needs a library that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'anyburl[{extra}]'")


def printable(text: str) -> str:
    """Return text with line breaks and other unprintable characters escaped as in Python."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def quoted(value: object) -> str:
    """Return the repr of a value, shortened to one line."""
    try:
        text = repr(value)
    except Exception:  # such as integers of more than 4300 digits
        return f"a value of type {type(value).__name__} that cannot be printed"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}..."


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number of things in words: 1 rule, 2,000 rules."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


# Secrets: a password before an @, and parameters whose names say so (`pwd`, `access_token`), are secrets for certain.
# Any other parameter of an address may be one, unless its name is known (`PLAIN`): it is not shown and not kept.

MASK = "***"
SECRET = re.compile(
    r"pass|pwd|pw$|secret|token|key$|auth(?!ors?$)|sig$|signature|credential|session|sid$|jwt|bearer|otp$|cookie"
)
PLAIN = re.compile(
    # the SPARQL protocol and common servers
    r"(default|named|using|using-named)-graph-uri|graph|context|format|output|results|timeout|limit|infer(ence)?"
    r"|reasoning|repo(sitory)?|dataset|database|db|catalog|namespace|version|lang|charset"
    # libpq
    r"|host(addr)?|port|dbname|user|passfile|require_auth|channel_binding|connect_timeout|client_encoding|options"
    r"|(fallback_)?application_name|keepalives(_idle|_interval|_count)?|tcp_user_timeout|replication|gssencmode|requiressl"
    r"|ssl(mode|negotiation|compression|cert|key|certmode|rootcert|crl|crldir|sni)|requirepeer|krbsrvname|gsslib"
    r"|(ssl_)?(min|max)_protocol_version|gssdelegation|service|target_session_attrs|load_balance_hosts"
)
"""The names of parameters that hold no secret."""

ADDRESS = re.compile(r"(sparql|https?|postgres|postgresql|duckdb|sqlite):", re.IGNORECASE)
"""How DATA begins that is an address."""
URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"']+")
LOGIN = re.compile(r"//([^/?\s]*)@")
AFTER_PORT = re.compile(r"//[^/?#@]*:[^/?#@]*/[^?#]*@")  # a password with a slash in it looks like a port and a path
PARAMETER = re.compile(r"([?&;#\s:,])([^=&;#?\s:,/@]+)=([^&;#\s]*)")
UNNAMED = re.compile(r"([?&])([^=&;#\s]+)(?=[&;#\s]|$)")
LEAST_HIDDEN = 4  # characters: shorter values are not masked in messages


def has_secret(address: str) -> bool:
    """Whether an address has a password before an @, or a parameter whose name says that it is a secret."""
    logins = LOGIN.findall(address) + LOGIN.findall(unquote(address.partition("?")[2]))
    if any(":" in unquote(login) for login in logins) or AFTER_PORT.search(address):
        return True
    return any(_is_secret(name) for _, name, _ in PARAMETER.findall(address))


def redacted(text: str) -> str:
    """Return a text whose addresses have their certain secrets masked."""
    if "@" not in text and "=" not in text:
        return text
    return URL.sub(lambda match: _masked(match[0], _is_secret), text)


def redacted_address(address: str) -> str:
    """Return an address with everything masked that may be a secret."""
    return UNNAMED.sub(rf"\1{MASK}", _masked(address, _may_be_secret))


def shown_argument(argument: str) -> str:
    """Return an argument of the command line for a log, with everything masked in an address that may be a secret."""
    flag, value = re.fullmatch(r"(--?[\w-]+=)?(.*)", argument, re.DOTALL).groups("")  # type: ignore[union-attr]
    return flag + (redacted_address(value) if ADDRESS.match(value) else redacted(value))


def without_values(text: str, address: str) -> str:
    """Return a message about an address with everything masked that may be a secret in the address."""
    given = [value for _, name, value in PARAMETER.findall(address) if _may_be_secret(name)]
    given += [value for _, value in UNNAMED.findall(address)]
    hidden = {form for value in given for form in (value, unquote_plus(value)) if len(form) >= LEAST_HIDDEN}
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, MASK)
    return redacted(text)


def _masked(address: str, is_hidden: Callable[[str], bool]) -> str:
    on_the_web = re.match(r"(sparql:)?https?:", address, re.IGNORECASE)
    address = AFTER_PORT.sub(f"//{MASK}@", address)
    address = LOGIN.sub(lambda match: f"//{MASK}@" if on_the_web or ":" in unquote(match[1]) else match[0], address)

    def masked(match: re.Match[str]) -> str:
        start, name, value = match.groups()
        return f"{start}{name}={MASK}" if is_hidden(name) or LOGIN.search(unquote(value)) else match[0]

    return PARAMETER.sub(masked, address)


def _is_secret(name: str) -> bool:
    plain = unquote_plus(name).lower()
    return not PLAIN.fullmatch(plain) and SECRET.search(re.sub("[^a-z]", "", plain)) is not None


def _may_be_secret(name: str) -> bool:
    return PLAIN.fullmatch(unquote_plus(name).lower()) is None
