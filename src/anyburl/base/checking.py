"""Options: an option is one field of a dataclass, made by `option`; all else about it is derived from that field.

The classes of options extend `Options`, which checks all values when an object is made. The command line makes flags of
the fields (`cli/arguments.py`), run folders keep them as JSON, keys of kept results contain them (`options_behind`),
and the documentation lists them (`scripts/reference.py`).

Checks look at the kind of value first, then at its range. Invalid values raise `InvalidOptionError`. Each check returns
a plain value: a NumPy integer becomes an `int`, which JSON can represent, and a confidence of 0 becomes 0.0.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import Any, TypeVar

from anyburl.base.errors import InvalidOptionError, OptionError

Kind = TypeVar("Kind")

MOST = 2**62  # whole numbers that kernels count with
MOST_REAL = sys.float_info.max
MOST_KEPT = 2**31 - 1  # candidates, rules or reasons of one question
MOST_SECONDS = 1e9  # 30 years
MOST_THREADS = 1024

OBJECT_IDENTITY = "Require different terms of a rule to stand for different entities."
THREADS = "Number of threads. Defaults to one per core."
"""The help of options that several classes have."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of an option besides its name, its type and its default."""

    check: Callable[..., Any]
    """Called with the name, the value and `limits`; returns the value to keep, or raises."""
    limits: tuple[Any, ...] = ()
    help: str
    no_effect_on: tuple[str, ...] = ()
    """The kept results that do not depend on it."""
    only_for: tuple[str, ...] = ()
    """What it is meant for, if not for everything."""

    flag: str | None = ""
    """The flag, if it is not called like the field; None: there is no flag."""
    parse: Callable[[Any], Any] | None = None
    """Turns the text of the flag, or the list of its texts if it may be `repeated`, into the value."""
    repeated: bool = False
    flag_help: str = ""
    """What the help of the flag says besides: how the value is written there."""
    metavar: str | None = None
    choices: Sequence[str] = ()
    """What a shell offers as values of the flag."""
    panel: str | None = None
    """The part of the help that shows the flag."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of `typer.Option`."""


def option(default: Any, check: Callable[..., Any], *limits: Any, help: str, **settings: Any) -> Any:
    """Return the field of an options class that says everything about one option; `settings` are fields of `Option`.

    An option whose default is None may be None. The help of a `choice` ends with the choices unless a metavar shows
    them.
    """
    if check is choice:
        settings["choices"] = limits[0]
        if "metavar" not in settings:
            settings["metavar"], help = "NAME", f"{help}: {', '.join(limits[0])}."
    metadata = {"option": Option(check=check, limits=limits, help=help, **settings)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def threads_option(**settings: Any) -> Any:
    """Return the field `threads`, which several classes have."""
    return option(None, whole, 1, MOST_THREADS, **{"help": THREADS, "shown": {"min": 1}, **settings})


def options_of(kind: Any) -> dict[str, Option]:
    """Return what is known of each option of a class."""
    return {one.name: one.metadata["option"] for one in fields(kind) if "option" in one.metadata}


class Options:
    """The base of all classes of options, which are frozen dataclasses: checks values, and makes them plain."""

    def __post_init__(self) -> None:
        for made in fields(self):  # type: ignore[arg-type]
            about, value = made.metadata.get("option"), getattr(self, made.name)
            if about is not None and (value is not None or made.default is not None):
                object.__setattr__(self, made.name, about.check(made.name, value, *about.limits))

    def to_json(self) -> dict[str, Any]:
        """Return all options as plain values."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


def options_behind(result: str, options: Any) -> dict[str, Any]:
    """Return the options that a cached result depends on: all but those marked as having no effect on it."""
    about = options_of(options)
    return {name: getattr(options, name) for name in about if result not in about[name].no_effect_on}


def whole(option: str, value: Any, least: int, most: int = MOST) -> int:
    """Return a whole number from `least` to `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise InvalidOptionError(option, "a whole number", value)
    _check_range(option, value, least, most)
    return int(value)


def real(option: str, value: Any, least: float, most: float | None = None) -> float:
    """Return a finite number from `least` to `most`."""
    if not _is_number(value):
        raise InvalidOptionError(option, "a number", value)
    _check_range(option, value, least, most)
    if not value <= MOST_REAL:
        raise InvalidOptionError(option, "a finite number", value)
    return float(value)  # kernels would be compiled again for a whole number


def above_zero(option: str, value: Any, requirement: str = "more than 0", most: float = MOST_REAL) -> float:
    """Return a finite number above 0."""
    if not _is_number(value) or not 0 < value <= most:
        raise InvalidOptionError(option, requirement, value)
    return value if isinstance(value, int) else float(value)


def share(option: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise InvalidOptionError(option, "from 0 to 1", value)
    return float(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def threads(value: Any) -> int | None:
    """Return a number of threads, None for one per core."""
    return None if value is None else whole("threads", value, 1, MOST_THREADS)


def waiting(option: str, value: Any) -> float:
    """Return how many seconds to wait, as sockets take it."""
    return above_zero(option, value, f"a number of seconds above 0, at most {MOST_SECONDS:g}", MOST_SECONDS)


def flag(option: str, value: Any) -> bool:
    """Return True or False; any other value is refused."""
    if not isinstance(value, bool):
        raise InvalidOptionError(option, "True or False", value)
    return value


def choice(option: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of some words."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidOptionError(option, f"one of {', '.join(choices)}", value)
    return value


def text(option: str, value: Any, requirement: str, pattern: str = "") -> str:
    """Return a text; all of it matches the pattern if there is one."""
    if not isinstance(value, str) or (pattern and not re.fullmatch(pattern, value)):
        raise InvalidOptionError(option, requirement, value)
    return value


def texts(option: str, values: Any, requirement: str) -> tuple[str, ...]:
    """Return several texts; a single string is refused, since it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidOptionError(option, requirement, values)
    listed = tuple(values)
    if not all(isinstance(value, str) for value in listed):
        raise InvalidOptionError(option, requirement, listed)
    return listed


def parse_numbers(option: str, requirement: str) -> Callable[[str], tuple[float, ...]]:
    """Return a parser of numbers separated by commas, for the text of a flag."""

    def parse(written: str) -> tuple[float, ...]:
        try:
            return tuple(float(part) for part in written.split(",") if part.strip())
        except ValueError:
            raise InvalidOptionError(option, requirement, written) from None

    return parse


def parse_texts(written: str) -> tuple[str, ...]:
    """Return the texts, separated by commas, in the text of a flag."""
    return tuple(part.strip() for part in written.split(","))


def callback(option: str, value: Any) -> None:
    """Raise an error for a callback that cannot be called, before the work begins."""
    if value is not None and not callable(value):
        raise InvalidOptionError(option, "a function", value)


def choose_options(kind: type[Kind], options: Kind | None, keywords: Mapping[str, Any]) -> Kind:
    """Return options of a kind, given as one object or as keywords, not both."""
    if options is None:
        return from_keywords(kind, keywords)
    if keywords:
        raise OptionError(f"pass either options or keywords ({', '.join(keywords)}), not both")
    if not isinstance(options, kind):
        raise OptionError(f"expected options as {kind.__name__}, got {type(options).__name__}")
    return options


def from_keywords(kind: type[Kind], keywords: Mapping[str, Any]) -> Kind:
    """Return options made of keywords; the error for an unknown keyword suggests a similar one."""
    known = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    for name in keywords:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise OptionError(f"unknown option {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return kind(**keywords)


def _check_range(option: str, value: Any, least: float, most: float | None) -> None:
    if not value >= least:
        raise InvalidOptionError(option, f"at least {least}", value)
    if most is not None and value > most:
        raise InvalidOptionError(option, f"at most {most:g}" if isinstance(most, float) else f"at most {most}", value)
