"""The options shared by all commands that ask questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from anyburl.cli.arguments import (
    Aggregation,
    BlockConnected,
    Escaped,
    Fallback,
    Json,
    Names,
    Quiet,
    RankingIdentity,
    Smoothing,
    Threads,
    Weights,
    WithScores,
)
from anyburl.cli.consoles import PlainConsole, note_console
from anyburl.cli.flags import with_flags
from anyburl.cli.reasoning import Source, parse_weights
from anyburl.ranking.options import RankOptions

DEFAULTS = RankOptions()


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of such a command besides its own arguments; each field is an option with its default."""

    names: Names = None
    aggregation: Aggregation = DEFAULTS.aggregation
    smoothing: Smoothing = DEFAULTS.smoothing
    weights: Weights = ""
    block_connected: BlockConnected = DEFAULTS.block_connected
    object_identity: RankingIdentity = DEFAULTS.object_identity
    fallback: Fallback = DEFAULTS.fallback
    with_scores: WithScores = None
    prepare: Annotated[bool, typer.Option(help="Prepare the run folder, so that later commands open it at once.")] = (
        True
    )
    escaped: Escaped = False
    threads: Threads = None
    quiet: Quiet = False
    json: Json = False
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed for tuning and sampling.")] = 0

    def notes(self) -> PlainConsole:
        """Return where remarks go."""
        return note_console(quiet=self.quiet)

    def options(self, *, top_k: int = DEFAULTS.top_k) -> RankOptions:
        """Return how answers are ranked."""
        return RankOptions(
            aggregation=self.aggregation,
            smoothing=self.smoothing,
            weights=parse_weights(self.weights),
            block_connected=self.block_connected,
            object_identity=self.object_identity,
            fallback=self.fallback,
            top_k=top_k,
            threads=self.threads,
        )

    def source(self, rules: str, data: str | None, **engine: Any) -> Source:
        """Return RULES and DATA, to be made ready."""
        names: Path | None = self.names
        scores: Path | None = self.with_scores
        return Source(
            rules, data, self.notes(), escaped=self.escaped, names=names, scores=scores, prepare=self.prepare, **engine
        )


def asking(*left_out: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the fields of `Asked` as flags to a command, but for some; it takes them as its argument `asked`."""
    return with_flags(Asked, "asked", left_out)
