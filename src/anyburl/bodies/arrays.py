"""Bodies and what is harvested from them, in columns.

Where paths start, and a batch of sampled straight paths.
"""

from __future__ import annotations

from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.kernel import GraphArrays, Ints, count_relations, find_widest
from anyburl.rules.types import MAX_LENGTH, RuleType

# The kind of a body is the code of the type of its rules, and one more: GROUNDED is a U_c body whose heads have its own
# constant (from a cyclic path), CONSTANT one whose heads have another (from an acyclic path).
BINARY = RuleType.BINARY.code
CONSTANT = RuleType.UNARY_CONSTANT.code
DANGLING = RuleType.UNARY_DANGLING.code
ZERO = RuleType.ZERO.code  # of rules only
VALUE = RuleType.UNARY_VALUE.code  # likewise
GROUNDED = len(RuleType)

ALL_HEADS = -1

GROUNDING = np.dtype(
    [
        ("under_way", np.bool_),  # whether a body is being grounded
        ("starts", np.int64),  # how many it has
        ("visited", np.int64),  # of the starts
        ("counted", np.int64),  # of those visited; the others were given up
        ("position", np.int64),  # of the next start
        ("stride", np.int64),  # from there to the one after
        ("groundings", np.int64),  # pairs, or members
        ("touched", np.int64),  # heads
        ("work", np.int64),  # edges touched
        ("clock", np.int64),  # of the stamps
        ("side", np.int64),  # of `levels` with the members
        ("most_through", np.int64),  # members that satisfy the body only through one entity
        ("ended", np.int64),  # entities that pairs end in
        ("noted", np.int64),  # in `PcaArrays.members`
        ("sampled", np.int64),  # of the starts counted: those whose ends were sampled
        ("clusters", np.int64),  # of starts, see `TallyArrays`
        ("cluster_starts", np.int64),  # in the cluster under way
        ("cluster_pairs", np.int64),
        ("cluster_heads", np.int64),  # with a count in it
        ("pairs_squared", np.float64),  # the sum over all clusters
        ("most_pairs", np.int64),  # of a cluster
        ("widest", np.float64),  # as many ends a start may have that was not seen yet
        ("looks", np.int64),  # taken
        ("next_look", np.int64),  # after so many starts
        ("hubs", np.int64),  # of the starts: those that are visited first, see `kernel_sample`
        ("hub_pairs", np.int64),  # of the pairs: theirs
        ("hub_spread", np.float64),  # the variance of those, if they were sampled
        ("hubs_sampled", np.int64),
        ("share", np.int64),  # of the last start: how many edges each sampled one stands for; 0 if it was not sampled
        ("weight", np.int64),  # how many ends
    ],
    align=True,
)
"""How far the grounding of a body is: the record in `Scratch.grounding`."""

NO_LIMIT = 2**62  # of work
HUBS = 4  # of a directed relation, which are always visited
HASHED_PLACES = 4096  # for the entities that a start leads to, if it may lead to a quarter of that at most


class BodyArrays(NamedTuple):
    """A batch of bodies of one length. A body is a path of directed relations that starts at the head's variable.

    `heads` and `head_constants` name the one head of a body (the paper's literal mode), or are ALL_HEADS.
    """

    kinds: NDArray[np.uint8]
    relations: NDArray[np.int32]  # (n, length)
    constants: NDArray[np.int32]  # where a U_c body ends; -1 otherwise
    heads: NDArray[np.int32]
    head_constants: NDArray[np.int32]
    keys: NDArray[np.uint64]  # the same for a B body and its reversal

    def take(self, rows: NDArray[np.int64]) -> BodyArrays:
        """Return the bodies at `rows`."""
        return BodyArrays(
            self.kinds[rows],
            self.relations[rows],
            self.constants[rows],
            self.heads[rows],
            self.head_constants[rows],
            self.keys[rows],
        )


class HarvestArrays(NamedTuple):
    """Rules as a harvest yields them. `bodies` counts into the batch; from its length on, the reversed
    bodies follow.
    """

    bodies: NDArray[np.int32]
    heads: NDArray[np.int32]
    head_constants: NDArray[np.int32]
    predictions: NDArray[np.int64]
    supports: NDArray[np.int32]
    exact: NDArray[np.bool_]
    margins: NDArray[np.float32]  # the confidence is within so much of the estimated one, with 95 % certainty
    pca_predictions: NDArray[np.int64]  # without room unless they are counted, see `Limits.pca`


class Limits(NamedTuple):
    """What a harvest keeps, and how much work it may do.

    `budget` is the number of edges that grounding one body may touch before its counts are estimated from the start
    entities visited so far; of one that takes more than `start` edges alone, the ends are sampled. A B body that takes
    more than `first_look` edges is looked at now and then, and done as soon as the confidence of every head is known
    within `precision`, or five times that share of it. `work` bounds one kernel call. Rules whose support times
    confidence is below `floor` are left out. With `pca`, the predictions that the partial completeness assumption can
    judge are counted as well.
    """

    min_support: int
    min_confidence: float
    object_identity: bool
    budget: int
    work: int
    start: int
    pca: bool = False
    first_look: int = NO_LIMIT
    precision: float = 0.02
    floor: float = 0.0


class Batch(NamedTuple):
    """What one kernel call works on."""

    heads: HeadArrays
    bodies: BodyArrays
    limits: Limits


class HeadArrays(NamedTuple):
    """Which heads rules may have. A unary head d(X, c) has a dense number: the segment of c for d read backward."""

    selected: NDArray[np.bool_]  # directed relation -> whether rules may have this head
    edge_counts: NDArray[np.int64]  # directed relation -> its edges
    functional: NDArray[np.bool_]  # directed relation -> whether it is the more functional direction of its relation
    widest: NDArray[np.int64]  # directed relation -> the most entities that it leads to from one
    hubs: NDArray[np.int32]  # (directed relations, HUBS): the entities with most edges that have it; then -1


class LevelArrays(NamedTuple):
    """The levels of a walk, two of them in turn or all: the entities reached, each with witnesses, the inner
    entities of a few ways to it.
    """

    nodes: NDArray[np.int32]  # (levels, room)
    stamps: NDArray[np.int64]  # (levels, entities)
    slots: NDArray[np.int32]  # (levels, entities)
    n_witnesses: NDArray[np.int32]  # (levels, room)
    full: NDArray[np.bool_]  # (levels, room): whatever comes later avoids one of the witnesses
    witnesses: NDArray[np.int32]  # (levels, room, most witnesses and one candidate, longest way)
    chosen: NDArray[np.int64]  # (2, 16): stacks of the search for a hitting set
    cut: NDArray[np.int32]  # entities that all ways share


class PcaArrays(NamedTuple):
    """Input of counting under the partial completeness assumption: which entities have a fact of which relation."""

    having: NDArray[np.int64]  # (2, directed relations): pairs whose start (0) or end (1) has it; zero between bodies
    end_pairs: NDArray[np.int32]  # entity -> pairs that end in it; zero between bodies
    ended: NDArray[np.int32]  # the entities that pairs end in
    members: NDArray[np.int32]  # of a unary body, those that satisfy it only through some entity
    earlier: NDArray[np.int32]  # position in `members` -> that of the member before, for the same entity; or -1
    latest: NDArray[np.int32]  # entity -> position of its last one; counts only where `Scratch.through` does


class TallyArrays(NamedTuple):
    """What the interval of an estimated confidence takes: sums over clusters of a few starts, by directed relation.

    All but `counts` and `heads` count only where `Scratch.relation_counts` does.
    """

    counts: NDArray[np.int64]  # support in the cluster under way; zero between bodies
    heads: NDArray[np.int32]  # the relations with a count in it
    squares: NDArray[np.float64]  # the sum of support squared
    products: NDArray[np.float64]  # the sum of support times pairs
    most: NDArray[np.int64]  # support in a cluster
    hub_counts: NDArray[np.int64]  # support of the hubs, which are no part of the sums above
    hub_spreads: NDArray[np.float64]  # the variance of that, if they were sampled


class Scratch(NamedTuple):
    """What one worker's kernels write to. Stamps hold the clock of the last visit, so nothing is ever cleared."""

    clock: NDArray[np.int64]
    ends: NDArray[np.int64]  # stamp: entity is reached as the end of the body
    end_keys: NDArray[np.int32]  # which entity has this slot, where few ends are hashed, see `kernel_hashed`
    middles: NDArray[np.int64]  # stamp: entity is reached half-way (B of length 3)
    middle_keys: NDArray[np.int32]
    first_witness: NDArray[np.int32]
    second_witness: NDArray[np.int32]
    listed: NDArray[np.int32]  # entities reached half-way (B of length 3)
    reached: NDArray[np.int32]  # entities reached as the end of the body
    members: NDArray[np.int64]  # stamp: entity satisfies the unary body
    through_stamps: NDArray[np.int64]
    through: NDArray[np.int32]  # how many members satisfy the unary body only through this entity
    relation_counts: NDArray[np.int64]  # directed relation -> support; zero between bodies
    tally: TallyArrays
    segment_counts: NDArray[np.int32]  # unary head -> support; zero between bodies
    touched: Ints  # the unary heads with a count, of the type that numbers segments
    touched_constants: NDArray[np.int32]  # their constants
    body: NDArray[np.int32]  # the body being walked
    rows: NDArray[np.int32]  # (2, entities, 2): rows of an entity's edges along its second and its third relation,
    rows_of: NDArray[np.int32]  # which these two are; -1 before the first,
    is_listed: NDArray[np.bool_]  # and whether they are those of the body being walked
    coming: NDArray[np.int32]  # the next starts of a B body
    coming_places: NDArray[np.int64]  # in `GraphArrays.domains`: of these, and of those after them
    hubs: NDArray[np.int32]  # those starts of a B body that have most edges
    swapped: NDArray[np.bool_]  # whether a B body is walked from its far end
    grounding: np.recarray[Any, Any]  # one record of type GROUNDING: how far the grounding of the body is
    levels: LevelArrays
    pca: PcaArrays


class SeenArrays(NamedTuple):
    """The table behind `SeenBodies`; a slot is empty while its first span is negative."""

    keys: NDArray[np.uint64]
    first_spans: NDArray[np.int32]
    last_spans: NDArray[np.int32]
    n_rules: NDArray[np.int32]


def types_of(kinds: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the codes of the types of rules that bodies of these kinds have."""
    return np.where(kinds == GROUNDED, np.uint8(CONSTANT), kinds)


def kinds_of(
    types: NDArray[np.uint8], head_constants: NDArray[np.int32], body_constants: NDArray[np.int32]
) -> NDArray[np.uint8]:
    """Return the kinds of the bodies of rules with these types and constants."""
    return np.where((types == CONSTANT) & (body_constants == head_constants), np.uint8(GROUNDED), types)


def empty_harvest(room: int, *, pca: bool = False) -> HarvestArrays:
    """Return room for `room` rules, with `pca` also for what the partial completeness assumption can judge."""
    return HarvestArrays(
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int64),
        np.empty(room, np.int32),
        np.empty(room, np.bool_),
        np.empty(room, np.float32),
        np.empty(room if pca else 0, np.int64),
    )


def head_arrays(graph: GraphArrays, relations: NDArray[np.int64] | None = None) -> HeadArrays:
    """Describe the heads of a graph; `relations` restricts the relations of heads."""
    selected = np.ones(2 * graph.n_relations, np.bool_)
    if relations is not None:
        selected[:] = False
        selected[np.concatenate([relations, relations + graph.n_relations])] = True
    edge_counts: NDArray[np.int64] = np.zeros(2 * graph.n_relations, np.int64)
    count_relations(graph.neighbour_relations, edge_counts)
    subjects, objects = np.split(n_owners(graph), 2)
    functional = np.concatenate([subjects >= objects, subjects < objects])
    widest: NDArray[np.int64] = np.zeros(2 * graph.n_relations, np.int64)
    hubs: NDArray[np.int32] = np.full((2 * graph.n_relations, HUBS), -1, np.int32)
    find_widest(graph, widest, hubs, np.zeros(hubs.shape, np.int64))
    for column in (selected, edge_counts, functional, widest, hubs):
        column.setflags(write=False)  # as in an object store: one compilation serves both
    return HeadArrays(selected, edge_counts, functional, widest, hubs)


def n_owners(graph: GraphArrays) -> NDArray[np.int64]:
    """Return for each directed relation how many entities have it: a relation's subjects, then its objects."""
    owners: NDArray[np.int64] = np.zeros(2 * graph.n_relations, np.int64)
    count_relations(graph.segment_relations[: graph.segment_offsets[graph.n_entities]], owners)
    return owners


def empty_scratch(graph: GraphArrays, longest: int, *, witnessed: bool = True, pca: bool = False) -> Scratch:
    """Return one worker's buffers for bodies up to length `longest`: `witnessed` if ways longer than 3 are walked, with
    `pca` if the partial completeness assumption is counted with.
    """
    entities, segments = graph.n_entities + 1, len(graph.segment_relations)
    positions = max(entities, HASHED_PLACES)
    return Scratch(
        clock=np.zeros(1, np.int64),
        ends=np.zeros(positions, np.int64),
        end_keys=np.zeros(HASHED_PLACES, np.int32),
        middles=np.zeros(positions, np.int64),
        middle_keys=np.zeros(HASHED_PLACES, np.int32),
        first_witness=np.zeros(positions, np.int32),
        second_witness=np.zeros(positions, np.int32),
        listed=np.zeros(entities, np.int32),
        reached=np.zeros(entities, np.int32),
        members=np.zeros(entities, np.int64),
        through_stamps=np.zeros(entities, np.int64),
        through=np.zeros(entities, np.int32),
        relation_counts=np.zeros(2 * graph.n_relations, np.int64),
        tally=empty_tally(2 * graph.n_relations),
        segment_counts=np.zeros(segments, np.int32),
        touched=np.zeros(segments, graph.segment_offsets.dtype),
        touched_constants=np.zeros(segments, np.int32),
        body=np.zeros(MAX_LENGTH, np.int32),
        rows=np.zeros((2, entities, 2), np.int32),
        rows_of=np.full(2, -1, np.int32),
        is_listed=np.zeros(2, np.bool_),
        coming=np.zeros(16, np.int32),
        coming_places=np.zeros(16, np.int64),
        hubs=np.zeros(HUBS, np.int32),
        swapped=np.zeros(1, np.bool_),
        grounding=np.zeros(1, GROUNDING).view(np.recarray),
        levels=empty_levels(entities, longest if witnessed else 1),
        pca=empty_pca(entities if pca else 0, graph.n_relations, longest),
    )


def assign_memory(scratch: Scratch) -> None:
    """Have the system give the memory that short unary bodies write to at random: of a large graph, that takes a second
    or more, which the first time span would lose.
    """
    ends = (column[-1] for column in (scratch.levels.stamps, scratch.levels.slots))
    for array in (scratch.segment_counts, scratch.members, *ends):
        array.fill(0)


def empty_tally(directed: int) -> TallyArrays:
    """Return room for the sums of `directed` relations."""
    return TallyArrays(
        counts=np.zeros(directed, np.int64),
        heads=np.zeros(directed, np.int32),
        squares=np.zeros(directed, np.float64),
        products=np.zeros(directed, np.float64),
        most=np.zeros(directed, np.int64),
        hub_counts=np.zeros(directed, np.int64),
        hub_spreads=np.zeros(directed, np.float64),
    )


def empty_pca(entities: int, n_relations: int, longest: int) -> PcaArrays:
    """Room for unary bodies up to length `longest`: a member can need at most as many entities."""
    return PcaArrays(
        having=np.zeros((2, 2 * n_relations), np.int64),
        end_pairs=np.zeros(entities, np.int32),
        ended=np.zeros(entities, np.int32),
        members=np.zeros(entities * longest, np.int32),
        earlier=np.zeros(entities * longest, np.int32),
        latest=np.zeros(entities, np.int32),
    )


def empty_levels(entities: int, longest: int, sides: int = 2) -> LevelArrays:
    """Room for the witnesses: at most C(p + q, p) ways of p inner entities matter if q more are to come (Bollobás)."""
    most = comb(longest, longest // 2)
    return LevelArrays(
        nodes=np.zeros((sides, entities), np.int32),
        stamps=np.zeros((sides, entities), np.int64),
        slots=np.zeros((sides, entities), np.int32),
        n_witnesses=np.zeros((sides, entities), np.int32),
        full=np.zeros((sides, entities), np.bool_),
        witnesses=np.zeros((sides, entities, most + 1, max(longest, 1)), np.int32),
        chosen=np.zeros((2, 16), np.int64),
        cut=np.zeros(max(longest, 1) + 1, np.int32),
    )


class PathArrays(NamedTuple):
    """One row per path: a head edge from `starts` along `heads` to `others`, then a walk from `starts`.

    The walk goes along the columns of `relations` and arrives at `ends`; on a cyclic path that is `others` again.
    """

    starts: NDArray[np.int32]
    heads: NDArray[np.int32]  # directed relation of the head triple, read from `starts`
    others: NDArray[np.int32]  # the other entity of the head triple, or `self`
    relations: NDArray[np.int32]  # (n, rule length), directed
    ends: NDArray[np.int32]


class HeadTriples(NamedTuple):
    """The triples that paths start from: those listed, or, if `owners` is not empty, all triples of the graph.

    Then a head is an edge drawn by its row, and no list of triples has to be in memory.
    """

    triples: NDArray[np.int32]  # (n, 3)
    owners: NDArray[np.int32]  # block of 64 rows -> the entity that its first row belongs to


def empty_paths(n_paths: int, rule_length: int) -> PathArrays:
    """Return room for `n_paths` paths."""
    return PathArrays(
        starts=np.empty(n_paths, np.int32),
        heads=np.empty(n_paths, np.int32),
        others=np.empty(n_paths, np.int32),
        relations=np.empty((n_paths, rule_length), np.int32),
        ends=np.empty(n_paths, np.int32),
    )
