"""What people may import, and what that costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import anyburl

PACKAGE = Path(anyburl.__file__).parent

PUBLIC = [
    "Answer",
    "Answers",
    "AnyburlError",
    "Atom",
    "Calibration",
    "CalibrationReport",
    "Clock",
    "CompleteOptions",
    "DataError",
    "Dataset",
    "DistilOptions",
    "Distilled",
    "DoctorOptions",
    "Explanation",
    "ExportOptions",
    "ExportReport",
    "Finding",
    "InvalidOptionError",
    "LearnOptions",
    "Learner",
    "Metrics",
    "MissingExtraError",
    "OptionError",
    "PathProfile",
    "PublishOptions",
    "RankOptions",
    "ReadOptions",
    "Reason",
    "Reasoner",
    "Report",
    "ReportOptions",
    "ReviewLog",
    "Rule",
    "RuleDifference",
    "RuleError",
    "RuleSet",
    "RuleType",
    "RunDirectory",
    "RunError",
    "Span",
    "TemporalDataset",
    "TemporalExplanation",
    "TemporalFacts",
    "TemporalInterpolator",
    "TemporalLearner",
    "TemporalMetrics",
    "TemporalOptions",
    "TemporalReasoner",
    "TemporalRules",
    "Theory",
    "TripleTable",
    "UnknownLabelError",
    "Vocabulary",
    "__version__",
    "build_index",
    "diff",
    "distil",
    "evaluate",
    "examine",
    "explain",
    "export_rules",
    "format_rule",
    "learn",
    "left_out_rules",
    "load_dataset",
    "load_temporal_dataset",
    "make_theory",
    "measure",
    "parse_rule",
    "plan_publishing",
    "predict",
    "publish",
    "rescore",
    "write_theory",
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


def test_import_loads_nothing_heavy() -> None:
    program = "import sys, anyburl; print(sorted({'numpy', 'numba', 'polars', 'rich', 'typer'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"[]\n"


def test_import_loads_two_modules_of_its_own_and_few_others() -> None:
    """What takes time is loading modules; these few, of the standard library, take some milliseconds."""
    program = "import sys; before = {*sys.modules}; import anyburl; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert [name for name in loaded if name.startswith("anyburl")] == ["anyburl"]
    assert len(loaded) < 60


def test_no_public_name_is_defined_twice() -> None:
    """Two things of one name are one thing, or one of them has the wrong name."""
    homes: dict[str, list[str]] = {}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, defined) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    assert twice.pop("main") == ["cli/app.py", "cli/start.py"]  # what Typer runs, and what the shell does
    assert twice == {}
