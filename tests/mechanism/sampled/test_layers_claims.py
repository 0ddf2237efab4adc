"""The sensitivities that the paper's plan is calibrated with, which are only *claimed*."""

import math

import pytest

from vesper.errors import InputError
from vesper.mechanism.reference.gcn import eta
from vesper.mechanism.sampled.layers import layer_sensitivity, vfgnn_sensitivity


def test_layers() -> None:
    assert layer_sensitivity("gin", min_degree=1, max_degree=20) == math.sqrt(2)
    assert layer_sensitivity("truncated-gcn", min_degree=10, max_degree=20) == eta(10)


def test_refuses_what_the_paper_does_not_bound() -> None:
    with pytest.raises(InputError, match="truncated"):
        layer_sensitivity("gcn", min_degree=5, max_degree=20)
    with pytest.raises(InputError, match="min_degree"):
        layer_sensitivity("truncated-gcn", min_degree=1, max_degree=20)
    with pytest.raises(InputError, match="max_degree=20, got 21"):
        layer_sensitivity("truncated-gcn", min_degree=21, max_degree=20)


def test_vfgnn_differs_where_the_paper_is_wrong() -> None:
    def squared(aggregator: str, as_published: bool) -> float:
        return (
            vfgnn_sensitivity(
                "gin" if aggregator == "gin" else "gcn",
                max_degree=20,
                num_layers=1,
                norm=3.0,
                as_published=as_published,
            )
            ** 2
        )

    assert squared("gin", True) == pytest.approx(8 * 9)
    assert squared("gin", False) == pytest.approx(8 * 9)
    assert squared("gcn", True) == pytest.approx(8 * 9)
    assert squared("gcn", False) == pytest.approx(160 * 9)
