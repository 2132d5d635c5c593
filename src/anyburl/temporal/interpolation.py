"""Answer questions about moments of the past, from the facts before and after them alike.

Rules are learned twice, along the clock and against it, in a history whose times are mirrored; the score of an answer
is the mean of what both say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anyburl.base.checking import whole
from anyburl.base.errors import DataError
from anyburl.temporal.facts import NEVER, TemporalDataset, TemporalFacts
from anyburl.temporal.learner import TemporalLearner
from anyburl.temporal.reasoner import TemporalAnswer, TemporalReasoner


@dataclass(frozen=True)
class TemporalInterpolator:
    """Answers questions about the past by two reasoners: one looks back from the moment, one ahead."""

    back: TemporalReasoner
    ahead: TemporalReasoner

    @classmethod
    def of(cls, reasoner: TemporalReasoner) -> TemporalInterpolator:
        """Learn the rules of the mirrored history of a reasoner's data, without a model."""
        options = replace(reasoner.rules.options, model="none")
        data = mirrored(reasoner.dataset, reasoner.last)
        rules = TemporalLearner(data, options).learn()
        with_all = replace(data, test=mirror_facts(reasoner.dataset.test, reasoner.last))
        ahead = TemporalReasoner(rules, with_all, aggregation="sum", threads_used=reasoner.threads)
        rules_back = reasoner.rules
        back = TemporalReasoner(rules_back, reasoner.dataset, aggregation="sum", threads_used=reasoner.threads)
        return cls(back, ahead)

    def predict(
        self,
        subject: str | None,
        relation: str,
        object: str | None,
        at: str | int,
        *,
        top: int = 10,
        include_known: bool = False,
    ) -> list[TemporalAnswer]:
        """Return the `top` best answers at a moment of the history, as `TemporalReasoner.predict` does."""
        whole("top", top, 1)
        clock = self.back.dataset.clock
        step = at if isinstance(at, int) else clock.step(at)
        first, last = int(self.back.facts.times[0]), self.back.last
        if not first <= step <= last:
            raise DataError(
                f"expected a moment of the history, from {clock.label(first)} to {clock.label(last)}, "
                f"got {clock.label(step)}: later ones are for predict"
            )
        sides = [(self.back, step)] if step > first else []
        sides += [(self.ahead, last - step)] if step < last else []
        if not sides:
            raise DataError("the history has one moment only: there is nothing before or after it")
        n_kept = max(top, self.back.rules.options.candidates)
        scores: dict[str, float] = {}
        known: set[str] = set()
        for reasoner, moment in sides:
            for answer in reasoner.predict(subject, relation, object, moment, top=n_kept, include_known=include_known):
                scores[answer.entity] = scores.get(answer.entity, 0.0) + answer.score / len(sides)
                known |= {answer.entity} if answer.known else set()
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:top]
        label = clock.label(step)
        return [
            TemporalAnswer(
                entity,
                score,
                rank,
                (entity, relation, str(object), label) if subject is None else (subject, relation, entity, label),
                entity in known,
            )
            for rank, (entity, score) in enumerate(best, 1)
        ]


def mirrored(dataset: TemporalDataset, last: int) -> TemporalDataset:
    """Return the train and valid facts of a data set as train, in a history that runs the other way."""
    parts = [mirror_facts(facts, last) for facts in (dataset.train, dataset.valid) if len(facts)]
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in ("subjects", "relations", "objects")]
    times = np.concatenate([part.times for part in parts])
    ends = None if parts[0].ends is None else np.concatenate([part.ends for part in parts if part.ends is not None])
    nothing = TemporalFacts.none(with_ends=ends is not None)
    return replace(dataset, train=TemporalFacts.of(columns, times, ends), valid=nothing, test=nothing)


def mirror_facts(facts: TemporalFacts, last: int) -> TemporalFacts:
    """Return facts with times counted back from `last`; an interval ends where it began."""
    columns = [facts.subjects, facts.relations, facts.objects]
    if facts.ends is None:
        return TemporalFacts.of(columns, last - facts.times)
    ends = np.where(facts.ends == NEVER, last, facts.ends)
    return TemporalFacts.of(columns, last - ends, last - facts.times)
