"""`KINDS`: a type of rules is one record, from which everything takes its code, shape, name, words and colours.

Imports no NumPy, so the command line can take names from here. (Kernels depend on this file: they are compiled again
after an edit.)

Path profiles: the arms among which a policy divides the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from anyburl.base import checking

SMOOTHING = 5
"""Added to the predictions of a rule in the confidence that rules are sorted, compared and, by default, ranked by."""


class End(Enum):
    """Where the path of a body ends that starts at a variable of the head."""

    HEAD = auto()  # at the head's other variable, so that the head has no constant
    CONSTANT = auto()
    VARIABLE = auto()  # one that occurs nowhere else
    NOTHING = auto()  # there is no body
    VALUE = auto()  # at the value of an attribute, which a condition bounds
    COMPARED = auto()  # at the head's other variable, whose value of an attribute is compared with the first one's


@dataclass(frozen=True, kw_only=True)
class Form:
    """What distinguishes the rules of one type from others: their shape, and how they are shown."""

    code: int
    """In columns and kernels: 0, 1, 2, ... The folders of runs that did not end hold codes: a change makes these
    unreadable."""
    end: End
    title: str
    meaning: str
    """What rules of the type say, for people."""
    style: str
    """Of the name in the terminal."""
    colour: str
    """In plots."""
    ink: str
    """In the charts of the explorer: the first letter of a class in its style sheet, which a length follows."""
    is_learned: bool = True
    """Whether anyburl learns such rules, or only reads and applies those of other tools."""
    is_indexed_by_body: bool = False
    """Whether queries find unary rules of one atom by their bodies (`ShortIndex`), or try them one by one."""
    says_its_atoms: bool = True
    """Whether a rule says just what its atoms say, so that other languages can. Others are not exported."""
    without_condition: End | None = None
    """Of a form with a condition: the end of the form that is left without it. The evidence of both is one to models:
    conditions are too few for columns of their own."""

    @property
    def has_head_constant(self) -> bool:
        """Whether the head is h(X, c) or h(c, Y), not h(X, Y)."""
        return self.end not in (End.HEAD, End.COMPARED)

    @property
    def has_body_constant(self) -> bool:
        return self.end is End.CONSTANT

    @property
    def has_condition(self) -> bool:
        """Whether the last step of the body is an attribute: `low` and `high` bound its value, or the comparison."""
        return self.without_condition is not None

    @property
    def has_body(self) -> bool:
        return self.end is not End.NOTHING


class RuleType(StrEnum):
    """The kinds of rules in the paper, the zero rules of other tools' files, and rules on numbers and dates.

    A type prints as its name ("B"); columns of rules hold its `code`.
    """

    BINARY = "B"
    UNARY_CONSTANT = "Uc"
    UNARY_DANGLING = "Ud"
    ZERO = "Z"
    UNARY_VALUE = "Uv"
    BINARY_VALUE = "Bv"

    @property
    def form(self) -> Form:
        """The record of the type."""
        return FORMS[self]

    @property
    def code(self) -> int:
        """What stands for the type in `RuleSet.type`: 0, 1, 2, ... in the order of the types."""
        return FORMS[self].code


FORMS = {
    RuleType.BINARY: Form(
        code=0,
        end=End.HEAD,
        title="binary",
        meaning="how two entities are connected",
        style="cyan",
        colour="#0072b2",
        ink="c",
    ),
    RuleType.UNARY_CONSTANT: Form(
        code=1,
        end=End.CONSTANT,
        title="unary with a constant",
        meaning="what follows from a certain fact",
        style="green",
        colour="#009e73",
        ink="a",
        is_indexed_by_body=True,
    ),
    RuleType.UNARY_DANGLING: Form(
        code=2,
        end=End.VARIABLE,
        title="unary, dangling",
        meaning="what follows from any fact of a kind",
        style="magenta",
        colour="#cc79a7",
        ink="d",
        is_indexed_by_body=True,
    ),
    RuleType.ZERO: Form(
        code=3,
        end=End.NOTHING,
        title="without a body",
        meaning="true of many",
        style="dim",
        colour="#777777",
        ink="c",
        is_learned=False,
    ),
    RuleType.UNARY_VALUE: Form(
        code=4,
        end=End.VALUE,
        title="unary with a condition",
        meaning="what follows from a number or a date",
        style="yellow",
        colour="#d55e00",
        ink="a",
        without_condition=End.VARIABLE,
    ),
    RuleType.BINARY_VALUE: Form(
        code=5,
        end=End.COMPARED,
        title="binary with a comparison",
        meaning="how two entities are connected, one with the larger number or the later date",
        style="blue",
        colour="#56b4e9",
        ink="c",
        without_condition=End.HEAD,
    ),
}
"""The records of all types."""

KINDS = tuple(sorted(RuleType, key=lambda kind: kind.code))
"""The types of rules by their codes. Whoever distinguishes types looks up `KINDS[code].form`, or loops over them."""

TYPE_OF_END = {kind.form.end: kind for kind in KINDS}


def types_that(is_so: Callable[[Form], bool]) -> str:
    """Name the types with a property, for messages: "B or Uc"."""
    return " or ".join(kind for kind in KINDS if is_so(kind.form))


MAX_LENGTH = 7
"""Of a body that rules are learned with or applied: the witnesses of a longer way would not fit into one integer."""


@dataclass(frozen=True, order=True)
class PathProfile:
    """Cyclic or acyclic, and the length of the rules: a path of n + 1 triples gives rules with n body atoms."""

    cyclic: bool
    rule_length: int

    def __post_init__(self) -> None:
        checking.flag("cyclic", self.cyclic)
        object.__setattr__(self, "rule_length", checking.whole("rule_length", self.rule_length, 1))

    @classmethod
    def parse(cls, text: str) -> PathProfile | None:
        """Return the profile that `str` writes as `text`, or None if there is none."""
        kind, _, length = text.partition(" ")
        if kind not in ("cyclic", "acyclic") or not (length.isascii() and length.isdecimal() and 0 < len(length) < 10):
            return None
        return cls(kind == "cyclic", int(length)) if int(length) else None

    def __str__(self) -> str:
        return f"{'cyclic' if self.cyclic else 'acyclic'} {self.rule_length}"
