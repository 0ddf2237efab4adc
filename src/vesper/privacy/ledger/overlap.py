"""Overlap: whether a graph shares its edges with a graph of another name. For its owner only.

    version of a graph = number of nodes, keyed digests of node ids and of edges, sketch of edges
    sketch             = the smallest keyed hash of an edge in each of 256 bins
    Jaccard index J    = share of bins that agree                          (one-permutation MinHash)
    shared             = 2 J / (1 + J)         edges in both, relative to the mean size of the two

A budget belongs to a name, so two names for the same edges are two budgets, and what both guarantee
together is the sum. Whether that is intended is for a person to decide: it is displayed at the data
party and recorded in its ledger, but nothing that a peer could observe depends on it (claim
NON-INTERFERENCE).
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from vesper.errors import InputError
from vesper.privacy.ledger.reader import Entry

VERSION_KIND = "version"
"""Entry that records which version of a graph was opened under a name."""

ACCEPTED_KIND = "accepted overlap"
"""Entry that records the decision of a person to use two names for the same edges."""

SLOT_DIGITS = 8
EMPTY_SLOT = "0" * SLOT_DIGITS
SMALLEST_SHARE = 0.5
"""Smaller shares are not reported."""


@dataclass(frozen=True, kw_only=True)
class GraphVersion:
    """What the ledger records of a graph each time it is opened; everything is keyed."""

    num_nodes: int
    ids: str
    """Digest of the node ids in their order."""
    edges: str
    """Digest of the edges: the fingerprint."""
    sketch: str
    """Bins of the sketch, `SLOT_DIGITS` hexadecimal digits each."""

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger records."""
        return {"kind": VERSION_KIND, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Edges that two names share."""

    other: str
    share: float
    """From 0 to 1; 1 if the edges of two versions are equal."""
    accepted_by: str | None
    """Who has decided that two budgets for these edges are intended; None: nobody."""


def version_of(facts: dict[str, Any]) -> GraphVersion:
    """Read a version back from the facts of its entry.

    Raises:
        InputError: they are not those of a version.
    """
    match facts:
        case {
            "num_nodes": int(num_nodes),
            "ids": str(ids),
            "edges": str(edges),
            "sketch": str(sketch),
        } if num_nodes > 0:
            return GraphVersion(num_nodes=num_nodes, ids=ids, edges=edges, sketch=sketch)
        case _:
            raise InputError(
                f"Expected the version of a graph with digests of its nodes and edges, got "
                f"{str(facts)[:80]}; the ledger was tampered with or damaged, run `vesper budget "
                f"verify`"
            )


def shared_edges(one: GraphVersion, other: GraphVersion) -> float:
    """Estimate the share of edges in both, relative to the mean number of edges of the two.

    >>> empty = GraphVersion(num_nodes=2, ids="", edges="a", sketch=EMPTY_SLOT)
    >>> shared_edges(empty, empty)
    1.0
    """
    if one.edges == other.edges:
        return 1.0
    pairs = [
        (one.sketch[k : k + SLOT_DIGITS], other.sketch[k : k + SLOT_DIGITS])
        for k in range(0, min(len(one.sketch), len(other.sketch)), SLOT_DIGITS)
    ]
    used = [pair for pair in pairs if pair != (EMPTY_SLOT, EMPTY_SLOT)]
    if not used:
        return 0.0
    agreeing = sum(a == b for a, b in used)
    jaccard = min(agreeing, len(used) - 0.5) / len(used)  # not quite all: the edges differ
    return 2 * jaccard / (1 + jaccard)


def overlaps_of(graph: str, entries: Iterable[Entry]) -> list[Overlap]:
    """List the other names in a ledger that share edges with any version of a graph.

    The largest share of any two versions counts.
    """
    versions: dict[str, dict[str, GraphVersion]] = {}
    accepted: dict[frozenset[str], str] = {}
    for entry in entries:
        if entry.facts["kind"] == VERSION_KIND:
            version = version_of(entry.facts)
            versions.setdefault(entry.graph, {})[version.edges] = version
        elif entry.facts["kind"] == ACCEPTED_KIND:
            pair = frozenset((entry.graph, str(entry.facts.get("other"))))
            accepted[pair] = str(entry.facts.get("by"))
    own = versions.pop(graph, {})
    found = []
    for other, theirs in versions.items():
        shares = [shared_edges(a, b) for a in own.values() for b in theirs.values()]
        share = max(shares, default=0.0)
        if share >= SMALLEST_SHARE:
            by = accepted.get(frozenset((graph, other)))
            found.append(Overlap(other=other, share=share, accepted_by=by))
    return found
