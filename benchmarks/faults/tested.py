"""What docs/reliability.md says of the tests themselves: mutation and coverage, from the stored JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MUTATION = """## Mutation

Would the tests notice a mistake? cosmic-ray changes one place of a module at a time (an operator, a number, a
condition, a decorator), and the module's tests are run on each of these mutants, with kernels interpreted. The
*score* is the share of mutants that make a test fail; mutants of annotations, which are never evaluated, do not
count. Modules with many mutants are sampled at random (`python scripts/mutation.py --most N`): where few were tested,
the score says little. Modules have the names here that they had when they were tested; some have moved since.
"""


def mutation_section(results: Path) -> str:
    """Return the scores of the modules, and why some mutants survive."""
    found = json.loads((results / "mutation.json").read_text("utf-8"))["results"]
    file = results / "mutation-survivors.json"
    reasons = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    lines = ["| module | mutants | tested | score | survivors | explained |", "| --- " * 6 + "|"]
    explained = list[str]()
    for name, module in sorted(found.items()):
        survivors, known = module["survivors"], reasons.get(name, [])
        groups = {reason["why"]: [one for one in survivors if is_meant(reason, one)] for reason in known}
        n_explained = sum(any(is_meant(reason, one) for reason in known) for one in survivors)
        lines.append(
            f"| `{module['module']}` | {module['mutants']} | {module['tested']} | {100 * module['score']:.1f} % "
            f"| {len(survivors)} | {n_explained} |"
        )
        explained += [f"- `{module['module']}`, {len(ones)}: {why}" for why, ones in groups.items() if ones]
    why = "Why mutants survive:\n\n" + "\n".join(explained) + "\n" if explained else ""
    return f"{MUTATION}\n" + "\n".join(lines) + f"\n\n{why}"


def is_meant(reason: dict[str, Any], survivor: dict[str, Any]) -> bool:
    """Tell whether a reason is about a survivor: one of its texts occurs in what was changed."""
    changed = "\n".join(survivor["change"])
    return any(text in changed for text in reason["changes"])


def coverage_section(results: Path) -> str:
    """Return how much of the package tests run."""
    stored = json.loads((results / "coverage.json").read_text("utf-8"))
    found = stored["results"]
    return (
        f"## Coverage\n\n{found['lines_covered']:,} of {found['lines']:,} lines and {found['branches_covered']:,} of "
        f"{found['branches']:,} branches of the package are covered by tests, with kernels interpreted: "
        f"{found['percent']:.1f} % overall ({stored['date']}, commit {stored['commit']}, `scripts/coverage`).\n"
    )
