"""Neighbouring relations: one edge, all edges of one node, or one label.

| relation | two worlds differ by | rows that move | what may be charged |
| --- | --- | --- | --- |
| `EdgeRelation` | one edge {a, b} | 2: a and b | everything |
| `NodeRelation` | all edges of one node | D + row_norm^2: neighbours, itself | `ClippedRelease` |
| `LabelRelation` | the label of one node | - | a `PureRelease` of labels |

A graph's relation is fixed together with its budget. Rows are counted in rows that move by 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vesper.errors import InputError
from vesper.privacy.accounting.participation import EDGE_ROWS, node_rows
from vesper.privacy.accounting.safe_numbers import expect, expect_count
from vesper.privacy.events import CLIPPED_KIND, PURE_KIND, SUM, ClippedRelease, GaussianRelease


@dataclass(frozen=True)
class EdgeRelation:
    """One graph is the other with one edge added or removed."""

    def __str__(self) -> str:
        """Phrase for use in a sentence."""
        return "one edge"

    @property
    def rows(self) -> float:
        """Factor from the largest charge of a node to mu^2."""
        return EDGE_ROWS

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger records."""
        return {"relation": "edge"}

    def admits(self, facts: Mapping[str, Any]) -> bool:
        """Whether the cost of an event with these facts was proved for this relation."""
        return True

    def shift(self, *, rounding: float) -> float:
        """Largest distance that a row moves which `rows` counts once."""
        return 1.0

    def sums(self, *, noise_std: float, rounding: float, aggregation: str = SUM) -> GaussianRelease:
        """Event of releasing sums of unit-norm messages; whole numbers need no rounding."""
        return GaussianRelease(noise_std=noise_std, aggregation=aggregation)


LARGEST_ROW_NORM = 1 << 12
"""Largest row norm for which floating point stays within what claim N-NODE allows for clipping."""


@dataclass(frozen=True, kw_only=True)
class NodeRelation:
    """One graph is the other with all edges of one node removed (claim N-NODE).

    Args:
        max_degree: public bound on the degree in every possible graph; the mechanism checks it.
        row_norm: norm that rows are clipped to before noise is added; sqrt(max_degree) is a good
            choice.
    """

    max_degree: int
    row_norm: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_degree", int(self.max_degree))
        object.__setattr__(self, "row_norm", float(self.row_norm))
        expect_count("max_degree", self.max_degree, at_least=1)
        expect(
            1 <= self.row_norm <= min(self.max_degree, LARGEST_ROW_NORM),
            name="row_norm",
            wanted=f"1 <= row_norm <= max_degree = {self.max_degree}, at most {LARGEST_ROW_NORM}",
            got=self.row_norm,
            remedy="try sqrt(max_degree)",
        )

    def __str__(self) -> str:
        """Phrase for use in a sentence."""
        return f"one node of at most {self.max_degree} edges, rows clipped to {self.row_norm:g}"

    @property
    def rows(self) -> float:
        """max_degree + row_norm^2."""
        return node_rows(max_degree=self.max_degree, row_norm=self.row_norm)

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger records."""
        return {"relation": "node", "max_degree": self.max_degree, "row_norm": self.row_norm}

    def admits(self, facts: Mapping[str, Any]) -> bool:
        """Sums clipped to at most `row_norm`; other costs are proved for one edge only."""
        return facts["kind"] == CLIPPED_KIND and float(facts["row_norm"]) <= self.row_norm

    def shift(self, *, rounding: float) -> float:
        """A neighbour's row moves by 1, plus what rounding adds after clipping."""
        return 1.0 + rounding

    def sums(self, *, noise_std: float, rounding: float, aggregation: str = SUM) -> ClippedRelease:
        """Event of releasing clipped sums of unit-norm messages.

        Raises:
            InputError: the sensitivity of this aggregation is proved for one edge only.
        """
        expect(
            aggregation == SUM,
            name="aggregation",
            wanted=f"a {SUM}, to protect all edges of a node at once",
            got=aggregation,
            remedy="use aggregator 'gin', 'gcn' or 'mean', or protect edges",
        )
        return ClippedRelease(noise_std=noise_std, row_norm=self.row_norm, rounding=rounding)


LABELS = "labels"
"""Value of `what` in a `PureRelease` of labels."""


@dataclass(frozen=True)
class LabelRelation:
    """One table of labels is the other with one node's label changed (claim LABEL-RR)."""

    def __str__(self) -> str:
        """Phrase for use in a sentence."""
        return "one label"

    @property
    def rows(self) -> float:
        """2, as for one edge: a `PureRelease` charges every node half of its mu^2."""
        return EDGE_ROWS

    @property
    def facts(self) -> dict[str, Any]:
        """What the ledger records."""
        return {"relation": "label"}

    def admits(self, facts: Mapping[str, Any]) -> bool:
        """Randomised responses for labels, and nothing else."""
        return bool(facts["kind"] == PURE_KIND and facts["what"] == LABELS)


GraphRelation = EdgeRelation | NodeRelation
Relation = GraphRelation | LabelRelation


def relation_of(facts: Mapping[str, Any]) -> Relation:
    """Read a relation back from the facts of a budget.

    >>> relation_of(NodeRelation(max_degree=9, row_norm=3.0).facts).rows
    18.0
    """
    match facts:
        case {"relation": "edge"}:
            return EdgeRelation()
        case {"relation": "label"}:
            return LabelRelation()
        case {"relation": "node", "max_degree": int(degree), "row_norm": float(norm)}:
            return NodeRelation(max_degree=degree, row_norm=norm)
        case _:
            raise InputError(f"Expected a budget for edges, nodes or labels, got {dict(facts)}.")
