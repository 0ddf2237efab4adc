import pytest

from vesper.errors import InputError
from vesper.privacy.planning.traffic import Sizes, Traffic, wire_of

SIZES = Sizes(
    num_nodes=1000,
    num_train_nodes=300,
    num_val_nodes=100,
    num_classes=7,
    members=4,
    batch_size=64,
    epochs=10,
)
ROW = 4 * 7 * 6  # float32, 7 classes, two stages before and four members of the newest


def test_bytes_of_each_phase() -> None:
    wire = wire_of(SIZES, hops=2, releases=2)
    assert wire is not None
    assert wire.per_batch_each_way == 64 * ROW
    training = 300 * ROW * 10 * 3
    assert wire.by_phase == {
        "degree histogram": Traffic(to_label_party=51 * 8, to_data_party=0),
        "training": Traffic(to_label_party=training, to_data_party=training),
        "validation": Traffic(to_label_party=100 * ROW * 10 * 3, to_data_party=0),
        "inference": Traffic(to_label_party=1000 * ROW, to_data_party=0),
    }
    assert wire.total.to_data_party == training
    assert wire.total.to_label_party == 408 + training + 100 * ROW * 30 + 1000 * ROW


def test_unknown_sizes() -> None:
    assert wire_of(Sizes(num_nodes=10), hops=2, releases=2) is None
    assert Sizes(num_train_nodes=5).num_nodes == 0
    with pytest.raises(InputError, match="at least the 400"):
        Sizes(num_nodes=399, num_train_nodes=300, num_val_nodes=100)
