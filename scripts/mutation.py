"""Mutation testing by cosmic-ray, kernels interpreted: which changes of a module does no test notice?

    python scripts/mutation.py rewards metrics      all modules if none is named
    python scripts/mutation.py --most 100 ranks     a hundred mutants at most, drawn at random

Each module is mutated in a copy of the tree, build/mutation/NAME; tests run in forked processes, in which only anyburl
is imported anew. Counts and survivors are kept in benchmarks/results/mutation.json;
`benchmarks/results/mutation-survivors.json` says why those that stay do.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

ROOT = Path(__file__).resolve().parents[1]
WORK, RESULTS = ROOT / "build" / "mutation", ROOT / "benchmarks" / "results" / "mutation.json"
SECONDS = 300  # of a processor, for the tests of one module
GIVE_UP = 3600  # seconds: tests that wait for something without end

KERNELS = ("kernel", "part", "inlined", "merged")
PREFETCHING = ("prefetch", "expect", "expect_edges", "expect_steps", "expect_targets")

SLOW = (
    *("long", "many_ways", "length_3", "in_any_company", "right_on_average"),
    *("same_sample", "need_the_support", "wanted_head", "visiting"),
)
"""Tests of harvests that take seconds each where kernels are interpreted."""

MODULES = {
    "measures": ("rules/columns.py", ["tests/rules/test_measures.py", "-k", "not short_run"]),
    "rewards": ("learning/policy.py", ["tests/learning/test_rewards.py"]),
    "policies": ("learning/policy.py", ["tests/learning/test_policies.py"]),
    "aggregation": ("ranking/options.py", ["tests/ranking/test_aggregations.py"]),
    "ranks": ("ranking/queries.py", ["tests/ranking/test_ranks.py"]),
    "metrics": (
        "reasoning/metrics.py",
        ["tests/reasoning/evaluation/test_metrics.py", "tests/reasoning/evaluation/test_metrics_shown.py"],
    ),
    "calibration": ("models/calibration.py", ["tests/models/test_calibration.py"]),
    "scoring": (
        "bodies/kernel.py",
        [
            *(f"tests/bodies/test_{name}.py" for name in ("harvest_by_hand", "rule_scores", "pca", "harvest")),
            *(f"tests/bodies/test_{name}.py" for name in ("harvest_bounded", "harvest_limits")),
            *("-k", f"not ({' or '.join(SLOW)})"),
        ],
    ),
    "reach": ("bodies/kernel_ends.py", ["tests/bodies/test_reach.py"]),
}


class Outcome(NamedTuple):
    """How tests ended: 0 if all passed; and the seconds of a processor that they took."""

    status: int
    seconds: float


class Mutant(NamedTuple):
    """A module with one change."""

    operator: str
    occurrence: int
    line: int


def main() -> None:
    """Mutate the modules that were named."""
    os.environ.update(NUMBA_DISABLE_JIT="1", POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="NAME")
    parser.add_argument("--most", type=int, default=None, help="mutants of a module")
    arguments = parser.parse_args()
    for name in arguments.modules or MODULES:
        if name not in MODULES:
            sys.exit(f"there is no module {name!r}: expected one of {', '.join(MODULES)}")
        for found in mutate(name, arguments.most):
            kept = keep(name, found)
        print(json.dumps({name: kept}), flush=True)


def mutate(name: str, most: int | None) -> Iterator[dict[str, Any]]:
    """Run the tests of a module on its mutants; yield what became of them, now and then and in the end."""
    module, tests = MODULES[name]
    tree = WORK / name
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "tests", "pyproject.toml"):
        (tree / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, tree / part)
    source = tree / "src" / "anyburl" / module
    for imported in (tree / "imported.json", None):
        unchanged = outcome_of(tree, tests, imported=imported)
        if unchanged.status:
            sys.exit(f"{name}: the tests fail without any mutation, see {tree / 'said.txt'}")
        if imported:
            preload(json.loads(imported.read_text("utf-8")))
        forget_compiled(source)
    before = source.read_text("utf-8")
    mutants = list(mutants_of(before))
    random.Random(1).shuffle(mutants)
    found: dict[str, Any] = {"module": module, "tests": tests, "mutants": len(mutants), "tested": 0, "survivors": []}
    for mutant in mutants:
        text = mutated(before, mutant)
        if not is_python(text):
            found["mutants"] -= 1
            continue
        source.write_text(text, "utf-8")
        if not outcome_of(tree, tests, 5 + 3 * unchanged.seconds).status:
            found["survivors"].append(described(mutant, before, text))
        found["tested"] += 1
        if found["tested"] % 20 == 0:
            state = f"{found['tested']} tested, {len(found['survivors'])} survive, tests take {unchanged.seconds:.1f} s"
            print(f"{name}: {state}", file=sys.stderr, flush=True)
            yield found
        if found["tested"] == most:
            break
    source.write_text(before, "utf-8")
    yield found


def mutants_of(code: str) -> Iterator[Mutant]:
    """Return all mutants of cosmic-ray but those of what does nothing where kernels are interpreted."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes, spans = list(ast_nodes(get_ast(code))), list(idle_spans(code))
    for operator in operator_names():
        kind = get_operator(operator)
        if kind.arguments():
            continue
        places = [place for node in nodes for place in kind().mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if not any(first <= start < last for first, last in spans):
                yield Mutant(operator, occurrence, start[0])


def is_python(code: str) -> bool:
    """Whether a mutant is a program: without that it would be killed whatever the tests."""
    try:
        ast.parse(code)
    except SyntaxError:
        return False
    return True


def idle_spans(code: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Return where code starts and ends that does nothing: lines, which count from 1, and columns.

    Annotations, which are never evaluated; decorators of kernels and prefetching, with its conditions, which do nothing
    unless they are compiled.
    """
    for node in ast.walk(ast.parse(code)):
        found = node.returns if isinstance(node, ast.FunctionDef) else getattr(node, "annotation", None)
        idle = [found] if found is not None else []
        if isinstance(node, ast.FunctionDef):
            idle += [one for one in node.decorator_list if isinstance(one, ast.Name) and one.id in KERNELS]
        if isinstance(node, ast.stmt) and only_prefetches(node):
            idle.append(node)
        for one in idle:
            yield (one.lineno, one.col_offset - isinstance(node, ast.FunctionDef)), (one.end_lineno, one.end_col_offset)


def only_prefetches(statement: ast.stmt) -> bool:
    """Whether a statement does nothing else."""
    if isinstance(statement, ast.If):
        return not statement.orelse and all(map(only_prefetches, statement.body))
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in PREFETCHING


def mutated(code: str, mutant: Mutant) -> str:
    """Return the text of a mutant."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    return str(mutate_code(code, get_operator(mutant.operator)(), mutant.occurrence))


def outcome_of(tree: Path, tests: list[str], seconds: float = SECONDS, imported: Path | None = None) -> Outcome:
    """Run tests in a child of this process, which has imported everything but anyburl."""
    pid = os.fork()
    if not pid:
        _run_tests(tree, tests, seconds, imported)
    _, status, used = os.wait4(pid, 0)
    return Outcome(status, used.ru_utime + used.ru_stime)


def _run_tests(tree: Path, tests: list[str], seconds: float, imported: Path | None) -> NoReturn:
    """End this process with the exit code of pytest, or by a signal if tests take too many seconds of a processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    signal.alarm(GIVE_UP)
    os.chdir(tree)
    said = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.path[:0] = [str(tree / "src"), str(tree / "tests")]
    sys.dont_write_bytecode = imported is None
    code = 99
    try:
        import pytest

        plugins = [word for name in ("xdist", "cacheprovider", "cov") for word in ("-p", f"no:{name}")]
        options = ["-x", "-q", "-o", "addopts=", "--hypothesis-profile=unshrunk", *plugins]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *tests]))
        if imported:
            foreign = [name for name, module in sys.modules.items() if _is_foreign(name, module)]
            imported.write_text(json.dumps(foreign), "utf-8")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _is_foreign(name: str, module: Any) -> bool:
    file = getattr(module, "__file__", None) or ""
    return "site-packages" in file and not name.startswith(("anyburl", "xdist"))


def forget_compiled(source: Path) -> None:
    """Remove what Python has kept of a module: it would be taken for a mutant of the same size and second."""
    for file in (source.parent / "__pycache__").glob(f"{source.stem}.*"):
        file.unlink()


def preload(names: list[str]) -> None:
    """Import what tests import of others, so that each mutant finds it there."""
    for name in names:
        with suppress(Exception):
            import_module(name)


def described(mutant: Mutant, before: str, after: str) -> dict[str, Any]:
    """Return what was changed."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return {"line": mutant.line, "operator": mutant.operator, "change": changed}


def keep(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Store what was found of one module."""
    killed = found["tested"] - len(found["survivors"])
    found["score"] = round(killed / found["tested"], 4) if found["tested"] else None
    found["date"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M}"
    stored = json.loads(RESULTS.read_text("utf-8"))["results"] if RESULTS.is_file() else {}
    stored[name] = found
    told = {"command": "python scripts/mutation.py", "results": dict(sorted(stored.items()))}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return {key: found[key] for key in ("mutants", "tested", "score")}


if __name__ == "__main__":
    main()
