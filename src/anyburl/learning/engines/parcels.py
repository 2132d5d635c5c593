"""Sends rules from a worker during a span, a parcel at a time, in few bytes.

A body gives many rules in a row, so most columns hold long runs of one number; the others hold small numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.paths.profile import PathProfile
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.vocabulary import Vocabulary

PARCEL = 500_000  # rules sent at a time: a few milliseconds of work for the driver
MOST_WAITING = 8 * PARCEL  # rules of a worker, which then waits until some of them are sent
RUN = 4  # a column is sent as runs if they are that long on average


class Packed(NamedTuple):
    """A column in the smallest type that holds its numbers, and how often each is repeated, if they are."""

    values: NDArray[Any]
    lengths: NDArray[Any] | None
    dtype: np.dtype[Any]  # of the column


class PackedRules(NamedTuple):
    """Rules of one profile without the labels, which workers do not have."""

    profile: PathProfile
    bodies: NDArray[np.int32]
    columns: dict[str, Packed]


def pack_rules(profile: PathProfile, rules: RuleSet) -> PackedRules:
    """Make rules small."""
    return PackedRules(profile, rules.bodies, {name: pack(column) for name, column in rules.columns.items()})


def unpack_rules(packed: PackedRules, vocabulary: Vocabulary) -> RuleSet:
    """Return the rules, in memory of their own. They were checked where they were packed."""
    columns = {"bodies": packed.bodies.copy(), **{name: unpack(column) for name, column in packed.columns.items()}}
    for column in columns.values():
        column.flags.writeable = False
    return RuleSet.checked_before(vocabulary, columns)


def pack(column: NDArray[Any]) -> Packed:
    """Make a column small."""
    is_change = column[1:] != column[:-1]
    if not len(column) or (np.count_nonzero(is_change) + 1) * RUN > len(column):
        return Packed(_narrow(column), None, column.dtype)
    starts = np.concatenate([[0], np.flatnonzero(is_change) + 1])
    return Packed(_narrow(column[starts]), _narrow(np.diff(starts, append=len(column))), column.dtype)


def unpack(packed: Packed) -> NDArray[Any]:
    """Return the column, in memory of its own."""
    values = packed.values.astype(packed.dtype)
    return values if packed.lengths is None else np.repeat(values, packed.lengths)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    if not len(column) or column.dtype.kind not in "iu":
        return column
    least, most = (np.min_scalar_type(number) for number in (column.min(), column.max()))
    return column.astype(np.result_type(least, most))


class Outbox:
    """Rules that wait to be sent: the thread that runs a span puts them in, another takes them out."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: list[tuple[PathProfile, RuleSet]] = []
        self._n_rules = 0

    def put(self, profile: PathProfile, rules: RuleSet) -> None:
        """Add rules; if too many are waiting, wait as well."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_rules < MOST_WAITING)
            self._waiting.append((profile, rules))
            self._n_rules += len(rules)
            self._changed.notify_all()

    def wake(self) -> None:
        """Wake up whoever waits for rules: the span is over, or there is something else to say."""
        with self._changed:
            self._changed.notify_all()

    def take(
        self, is_over: Callable[[], bool], is_urgent: Callable[[], bool] = lambda: False
    ) -> tuple[list[PackedRules], bool]:
        """Return what has come together, once it is a parcel or the span is over; and whether that was all. If anything
        else is urgent, return no rules: they wait for the next call.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._n_rules >= PARCEL or is_urgent() or is_over())
            was_over = is_over()  # asked before rules are taken: none can come between
            if self._n_rules < PARCEL and not was_over:
                return [], False
            taken, self._waiting, self._n_rules = self._waiting, [], 0
            self._changed.notify_all()
        return [pack_rules(profile, rules) for profile, rules in taken], was_over
