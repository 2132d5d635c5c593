"""What people may import, and what that costs."""

from __future__ import annotations

import subprocess
import sys
import time

import anyburl

PUBLIC = [
    "Answer",
    "Answers",
    "AnyburlError",
    "Atom",
    "DataError",
    "Dataset",
    "Explanation",
    "GeneratedGraph",
    "LearnOptions",
    "Learner",
    "Metrics",
    "MissingExtraError",
    "OptionError",
    "PathProfile",
    "PlantedRule",
    "RankOptions",
    "Reason",
    "Reasoner",
    "Rule",
    "RuleError",
    "RuleSet",
    "RuleType",
    "RunDirectory",
    "RunError",
    "Span",
    "TripleTable",
    "UnknownLabelError",
    "Vocabulary",
    "__version__",
    "build_index",
    "evaluate",
    "explain",
    "format_rule",
    "generate_graph",
    "learn",
    "load_dataset",
    "parse_rule",
    "predict",
    "rescore",
]


def test_the_public_names_are_these() -> None:
    """A name that is added or taken away is a change of the interface: change the list, too, and the changelog."""
    assert sorted(anyburl.__all__) == sorted(PUBLIC)
    assert dir(anyburl) == sorted(PUBLIC)


def test_every_public_name_is_there_and_documented() -> None:
    for name in PUBLIC:
        value = getattr(anyburl, name)
        assert name == "__version__" or value.__doc__, name


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(anyburl, "lern")


def seconds(program: str) -> float:
    """Return the shortest of three runs."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], check=True)
        times.append(time.perf_counter() - started)
    return min(times)


def test_import_loads_nothing_heavy() -> None:
    program = "import sys, anyburl; print(sorted({'numpy', 'numba', 'polars', 'rich', 'typer'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"


def test_import_takes_less_than_a_fifth_of_a_second() -> None:
    assert seconds("import anyburl") - seconds("pass") < 0.2
