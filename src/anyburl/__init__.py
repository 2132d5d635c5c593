"""anyburl: anytime bottom-up rule learning for knowledge graph completion.

    import anyburl

    data = anyburl.load_dataset("geo")
    rules = anyburl.learn(data, seconds=10, seed=1)
    for rule in rules.top(10):
        print(rule)

Names are imported on first use, so `import anyburl` takes almost no time.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's would have to be imported first, see `anyburl.cli.early`
if TYPE_CHECKING:
    from typing import Any

    from anyburl.calibration.calibration import Calibration
    from anyburl.calibration.report import CalibrationReport
    from anyburl.completion.options import CompleteOptions
    from anyburl.doctor.examine import examine
    from anyburl.doctor.findings import Finding
    from anyburl.doctor.options import DoctorOptions
    from anyburl.doctor.report import Report
    from anyburl.errors import (
        AnyburlError,
        DataError,
        InvalidOptionError,
        MissingExtraError,
        OptionError,
        RuleError,
        RunError,
        UnknownLabelError,
    )
    from anyburl.evaluation.metrics import Metrics
    from anyburl.explanation.explanation import Explanation
    from anyburl.explanation.record import Reason
    from anyburl.export.export import ExportReport, export_rules
    from anyburl.export.options import ExportOptions
    from anyburl.graph.dataset_index import build_index
    from anyburl.learning.learn import learn
    from anyburl.learning.learner import Learner, Span
    from anyburl.learning.options import LearnOptions
    from anyburl.learning.run import RunDirectory
    from anyburl.paths.profile import PathProfile
    from anyburl.publishing.options import PublishOptions
    from anyburl.publishing.publish import plan_publishing, publish
    from anyburl.ranking.options import RankOptions
    from anyburl.reasoning.answers import Answer, Answers
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.reasoning.shortcuts import evaluate, explain, predict
    from anyburl.review.log import ReviewLog
    from anyburl.rules.rule import Atom, Rule
    from anyburl.rules.syntax import format_rule, parse_rule
    from anyburl.rules.types import RuleType
    from anyburl.ruleset.difference import RuleDifference, diff
    from anyburl.ruleset.rescore import measure, rescore
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.dataset import Dataset, load_dataset
    from anyburl.triples.read_options import ReadOptions
    from anyburl.triples.table import TripleTable
    from anyburl.triples.vocabulary import Vocabulary

_HOMES = {
    "Answer": "reasoning.answers",
    "Answers": "reasoning.answers",
    "AnyburlError": "errors",
    "Atom": "rules.rule",
    "Calibration": "calibration.calibration",
    "CalibrationReport": "calibration.report",
    "CompleteOptions": "completion.options",
    "DataError": "errors",
    "Dataset": "triples.dataset",
    "DoctorOptions": "doctor.options",
    "Explanation": "explanation.explanation",
    "ExportOptions": "export.options",
    "ExportReport": "export.export",
    "Finding": "doctor.findings",
    "InvalidOptionError": "errors",
    "LearnOptions": "learning.options",
    "Learner": "learning.learner",
    "Metrics": "evaluation.metrics",
    "MissingExtraError": "errors",
    "OptionError": "errors",
    "PathProfile": "paths.profile",
    "PublishOptions": "publishing.options",
    "RankOptions": "ranking.options",
    "ReadOptions": "triples.read_options",
    "Reason": "explanation.record",
    "Reasoner": "reasoning.reasoner",
    "Report": "doctor.report",
    "ReviewLog": "review.log",
    "Rule": "rules.rule",
    "RuleDifference": "ruleset.difference",
    "RuleError": "errors",
    "RuleSet": "ruleset.ruleset",
    "RuleType": "rules.types",
    "RunDirectory": "learning.run",
    "RunError": "errors",
    "Span": "learning.learner",
    "TripleTable": "triples.table",
    "UnknownLabelError": "errors",
    "Vocabulary": "triples.vocabulary",
    "build_index": "graph.dataset_index",
    "diff": "ruleset.difference",
    "evaluate": "reasoning.shortcuts",
    "examine": "doctor.examine",
    "explain": "reasoning.shortcuts",
    "export_rules": "export.export",
    "format_rule": "rules.syntax",
    "learn": "learning.learn",
    "load_dataset": "triples.dataset",
    "measure": "ruleset.rescore",
    "parse_rule": "rules.syntax",
    "plan_publishing": "publishing.publish",
    "predict": "reasoning.shortcuts",
    "publish": "publishing.publish",
    "rescore": "ruleset.rescore",
}

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Answers",
    "AnyburlError",
    "Atom",
    "Calibration",
    "CalibrationReport",
    "CompleteOptions",
    "DataError",
    "Dataset",
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
    "ReviewLog",
    "Rule",
    "RuleDifference",
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
    "diff",
    "evaluate",
    "examine",
    "explain",
    "export_rules",
    "format_rule",
    "learn",
    "load_dataset",
    "measure",
    "parse_rule",
    "plan_publishing",
    "predict",
    "publish",
    "rescore",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyburl' has no attribute {name!r}")
    value = getattr(import_module(f"anyburl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
