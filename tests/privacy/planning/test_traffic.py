import pytest

from vesper.errors import InputError
from vesper.privacy.planning.traffic import Traffic, TrafficSizes, planned_traffic_of

SIZES = TrafficSizes(
    num_nodes=1000,
    num_train_nodes=300,
    num_val_nodes=100,
    num_classes=7,
    members=4,
    batch_size=64,
    epochs=10,
)
ROW = 4 * 7 * 6  # float32, 7 classes, two hops and four members


def test_bytes_of_each_phase() -> None:
    planned_traffic = planned_traffic_of(SIZES, hops=2, releases=2)
    assert planned_traffic is not None
    assert planned_traffic.per_batch_each_way == 64 * ROW
    training = 300 * ROW * 10 * 3
    assert planned_traffic.by_phase == {
        "degree histogram": Traffic(to_label_party=51 * 8, to_data_party=0),
        "training": Traffic(to_label_party=training, to_data_party=training),
        "validation": Traffic(to_label_party=100 * ROW * 10 * 3, to_data_party=0),
        "inference": Traffic(to_label_party=1000 * ROW, to_data_party=0),
    }
    assert planned_traffic.total.to_data_party == training
    assert planned_traffic.total.to_label_party == 408 + training + 100 * ROW * 30 + 1000 * ROW


def test_unknown_sizes() -> None:
    assert planned_traffic_of(TrafficSizes(num_nodes=10), hops=2, releases=2) is None
    assert TrafficSizes(num_train_nodes=5).num_nodes == 0
    with pytest.raises(InputError, match="at least the 400"):
        TrafficSizes(num_nodes=399, num_train_nodes=300, num_val_nodes=100)
