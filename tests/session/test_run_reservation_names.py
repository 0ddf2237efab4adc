"""A run belongs to one name from its reservation to its end."""

from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import InputError
from vesper.graph.graph import Graph
from vesper.method.base import PublicSizes
from vesper.privacy.ledger.reservation import open_runs, return_unused
from vesper.privacy.ledger.store import Ledger
from vesper.session.config import load_config
from vesper.session.run_reservation import noise_plans_for, reserve_run

RING = Graph.from_edges(12, [(k, (k + 1) % 12) for k in range(12)])
SIZES = PublicSizes(num_nodes=12, num_train=6, num_features=4, num_classes=0)


def reserve(ledger: Ledger, name: str, method: str) -> None:
    config = load_config(None, {"method": method, "epsilon": 2.0, "delta": 1e-6})
    plans = noise_plans_for(config, SIZES)
    reserve_run(config, plans, RING, ledger, name=name, run="r", is_simulated=False)


@pytest.mark.parametrize("method", ["certified", "edgerand", "gin"])
def test_a_run_is_not_continued_under_another_name(tmp_path: Path, method: str) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        reserve(ledger, "october", method)
        head = ledger.head()
        for _ in range(2):
            with pytest.raises(InputError, match="began under 'october', got 'november'"):
                reserve(ledger, "november", method)
            assert ledger.head() == head
            assert open_runs(ledger) == {"r": "october"}
            return_unused(ledger, run="r")
            reserve(ledger, "october", method)
            head = ledger.head()
