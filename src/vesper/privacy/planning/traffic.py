"""Number of bytes that a run sends, from public sizes alone.

    one row       = 4 bytes * num_classes * (hops + members)    float32, a column per hop and member
    training      = num_train_nodes * epochs * stages rows      each way: embeddings, gradients
    validation    = num_val_nodes * epochs * stages rows        to the label party
    inference     = num_nodes rows                              to the label party, each node once

`stages` is releases + 1: one before the first release and one after each. Early stopping reduces
the traffic. Sizes depend on configuration only, never on an edge.
"""

from dataclasses import dataclass

from vesper.privacy.accounting.safe_numbers import expect

FLOAT_BYTES, COUNT_BYTES, DEGREE_BINS = 4, 8, 51


@dataclass(frozen=True, kw_only=True)
class TrafficSizes:
    """Public sizes of a run; 0 means unknown and omits the part of the plan that needs it."""

    num_nodes: int = 0
    num_train_nodes: int = 0
    num_val_nodes: int = 0
    num_classes: int = 2
    members: int = 1
    """Ensemble members; each has a column in a row."""
    batch_size: int = 256
    epochs: int = 5
    max_degree: int = 20

    def __post_init__(self) -> None:
        labelled = self.num_train_nodes + self.num_val_nodes
        expect(
            self.num_nodes == 0 or labelled <= self.num_nodes,
            name="num_nodes",
            wanted=f"at least the {labelled} training and validation nodes",
            got=self.num_nodes,
            remedy="give the number of all nodes of the graph",
        )


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes sent in one phase, tensors only."""

    to_label_party: int
    to_data_party: int


@dataclass(frozen=True, kw_only=True)
class PlannedTraffic:
    """Bytes sent between the parties, tensors only."""

    per_batch_each_way: int
    by_phase: dict[str, Traffic]
    total: Traffic


def planned_traffic_of(sizes: TrafficSizes, *, hops: int, releases: int) -> PlannedTraffic | None:
    """Bytes of each phase; None if the number of training nodes is unknown."""
    if not sizes.num_train_nodes:
        return None
    row = FLOAT_BYTES * sizes.num_classes * (hops + sizes.members)
    rounds = sizes.epochs * (releases + 1)
    training = row * sizes.num_train_nodes * rounds
    by_phase = {
        "degree histogram": Traffic(to_label_party=COUNT_BYTES * DEGREE_BINS, to_data_party=0),
        "training": Traffic(to_label_party=training, to_data_party=training),
        "validation": Traffic(to_label_party=row * sizes.num_val_nodes * rounds, to_data_party=0),
        "inference": Traffic(to_label_party=row * sizes.num_nodes, to_data_party=0),
    }
    return PlannedTraffic(
        per_batch_each_way=row * min(sizes.batch_size, sizes.num_train_nodes),
        by_phase=by_phase,
        total=Traffic(
            to_label_party=sum(each.to_label_party for each in by_phase.values()),
            to_data_party=sum(each.to_data_party for each in by_phase.values()),
        ),
    )
