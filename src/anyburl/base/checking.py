"""Checks of options: first the kind of value, then its range.

Invalid values raise `InvalidOptionError`. Each check returns a plain value: a NumPy integer becomes an `int`, which
JSON can represent, and a confidence of 0 becomes 0.0.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, TypeVar

from anyburl.base.errors import InvalidOptionError, OptionError

Options = TypeVar("Options")

MOST = 2**62  # whole numbers that kernels count with
MOST_REAL = sys.float_info.max
MOST_KEPT = 2**31 - 1  # candidates, rules or reasons of one question
MOST_SECONDS = 1e9  # 30 years
MOST_THREADS = 1024


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


def texts(option: str, values: Any, requirement: str) -> tuple[str, ...]:
    """Return several texts; a single string is refused, since it would be read letter by letter."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidOptionError(option, requirement, values)
    listed = tuple(values)
    if not all(isinstance(value, str) for value in listed):
        raise InvalidOptionError(option, requirement, listed)
    return listed


def callback(option: str, value: Any) -> None:
    """Raise an error for a callback that cannot be called, before the work begins."""
    if value is not None and not callable(value):
        raise InvalidOptionError(option, "a function", value)


def choose_options(kind: type[Options], options: Options | None, keywords: Mapping[str, Any]) -> Options:
    """Return options of a kind, given as one object or as keywords, not both."""
    if options is None:
        return from_keywords(kind, keywords)
    if keywords:
        raise OptionError(f"pass either options or keywords ({', '.join(keywords)}), not both")
    if not isinstance(options, kind):
        raise OptionError(f"expected options as {kind.__name__}, got {type(options).__name__}")
    return options


def from_keywords(kind: type[Options], keywords: Mapping[str, Any]) -> Options:
    """Return options made of keywords; the error for an unknown keyword suggests a similar one."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
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


def no_effect_on(*results: str) -> Mapping[str, Any]:
    """Return `metadata` that marks a field of options as one that these cached results do not depend on."""
    return {"no_effect_on": results}


def options_behind(result: str, options: Any) -> dict[str, Any]:
    """Return the options that a cached result depends on: the fields not marked by `no_effect_on`."""
    chosen = (field.name for field in fields(options) if result not in field.metadata.get("no_effect_on", ()))
    return {name: getattr(options, name) for name in chosen}
