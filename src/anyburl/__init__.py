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

TYPE_CHECKING = False  # typing's would have to be imported first, see `anyburl.cli.start`
if TYPE_CHECKING:
    from typing import Any

    from anyburl.base.errors import (
        AnyburlError,
        DataError,
        InvalidOptionError,
        MissingExtraError,
        OptionError,
        RuleError,
        RunError,
        UnknownLabelError,
    )
    from anyburl.bodies.rescore import measure, rescore
    from anyburl.data.clock import Clock
    from anyburl.data.dataset import Dataset, load_dataset
    from anyburl.data.options import ReadOptions
    from anyburl.data.table import TripleTable
    from anyburl.data.vocabulary import Vocabulary
    from anyburl.graph.stored import build_index
    from anyburl.learning.learner import Learner, Span
    from anyburl.learning.options import DistilOptions, LearnOptions, TemporalOptions
    from anyburl.learning.run import RunDirectory
    from anyburl.models.calibration import Calibration
    from anyburl.models.distilling.distil import Distilled
    from anyburl.models.distilling.keeping import learn, left_out_rules
    from anyburl.ranking.options import RankOptions
    from anyburl.reasoning.completion.options import CompleteOptions
    from anyburl.reasoning.completion.promises import CalibrationReport
    from anyburl.reasoning.explanation.explain import Explanation
    from anyburl.reasoning.explanation.record import Reason
    from anyburl.reasoning.metrics import Metrics
    from anyburl.reasoning.queries import Answer, Answers
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.reasoning.shortcuts import distil, evaluate, explain, predict
    from anyburl.rules.difference import RuleDifference, diff
    from anyburl.rules.rule import Atom, Rule, format_rule, parse_rule
    from anyburl.rules.ruleset import RuleSet
    from anyburl.rules.types import PathProfile, RuleType
    from anyburl.temporal.evaluation import TemporalMetrics
    from anyburl.temporal.explanation import TemporalExplanation
    from anyburl.temporal.facts import TemporalDataset, TemporalFacts, load_temporal_dataset
    from anyburl.temporal.interpolation import TemporalInterpolator
    from anyburl.temporal.learner import TemporalLearner
    from anyburl.temporal.reasoner import TemporalReasoner
    from anyburl.temporal.rules import TemporalRules
    from anyburl.tools.doctor.examine import examine
    from anyburl.tools.doctor.findings import Finding, Report
    from anyburl.tools.options import DoctorOptions, ExportOptions, PublishOptions, ReportOptions
    from anyburl.tools.publishing import ExportReport, export_rules, plan_publishing, publish
    from anyburl.tools.report.files import write_theory
    from anyburl.tools.report.record import Theory
    from anyburl.tools.report.theory import make_theory
    from anyburl.tools.review import ReviewLog

_HOMES = {
    name: module
    for module, names in {
        "base.errors": "AnyburlError DataError InvalidOptionError MissingExtraError OptionError RuleError RunError "
        "UnknownLabelError",
        "bodies.rescore": "measure rescore",
        "data.clock": "Clock",
        "data.dataset": "Dataset load_dataset",
        "data.options": "ReadOptions",
        "data.table": "TripleTable",
        "data.vocabulary": "Vocabulary",
        "graph.stored": "build_index",
        "learning.learner": "Learner Span",
        "learning.options": "DistilOptions LearnOptions TemporalOptions",
        "learning.run": "RunDirectory",
        "models.calibration": "Calibration",
        "models.distilling.distil": "Distilled",
        "models.distilling.keeping": "learn left_out_rules",
        "ranking.options": "RankOptions",
        "reasoning.completion.options": "CompleteOptions",
        "reasoning.completion.promises": "CalibrationReport",
        "reasoning.explanation.explain": "Explanation",
        "reasoning.explanation.record": "Reason",
        "reasoning.metrics": "Metrics",
        "reasoning.queries": "Answer Answers",
        "reasoning.reasoner": "Reasoner",
        "reasoning.shortcuts": "distil evaluate explain predict",
        "rules.difference": "RuleDifference diff",
        "rules.rule": "Atom Rule format_rule parse_rule",
        "rules.ruleset": "RuleSet",
        "rules.types": "PathProfile RuleType",
        "temporal.evaluation": "TemporalMetrics",
        "temporal.explanation": "TemporalExplanation",
        "temporal.facts": "TemporalDataset TemporalFacts load_temporal_dataset",
        "temporal.interpolation": "TemporalInterpolator",
        "temporal.learner": "TemporalLearner",
        "temporal.reasoner": "TemporalReasoner",
        "temporal.rules": "TemporalRules",
        "tools.doctor.examine": "examine",
        "tools.doctor.findings": "Finding Report",
        "tools.options": "DoctorOptions ExportOptions PublishOptions ReportOptions",
        "tools.publishing": "ExportReport export_rules plan_publishing publish",
        "tools.report.files": "write_theory",
        "tools.report.record": "Theory",
        "tools.report.theory": "make_theory",
        "tools.review": "ReviewLog",
    }.items()
    for name in names.split()
}

__version__ = "0.1.0"

__all__ = [
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'anyburl' has no attribute {name!r}")
    value = getattr(import_module(f"anyburl.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
