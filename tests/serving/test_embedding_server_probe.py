"""Predictions reuse what the probe of training decided."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.fixtures import finished_run

from vesper.deployment.saved_run import read_saved_data_run
from vesper.graph.holdings import open_data
from vesper.mechanism.fingerprint import fingerprint
from vesper.method.certified.probe import Probe
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.reader import DEGREES
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.protocol.messages import QueryAnswer

if TYPE_CHECKING:
    from tests.fixtures.finished_run import FinishedRun


@pytest.fixture
def recorded_probes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Makes probes possible on few nodes; collects the noise of each probe that runs."""
    noise_stds: list[float] = []
    real = Probe.run

    def record(self: Probe, *args: Any, **kwargs: Any) -> Any:
        assert self.settings.noise_std is not None
        noise_stds.append(self.settings.noise_std)
        return real(self, *args, **kwargs)

    monkeypatch.setattr("vesper.method.certified.probe_size.NODES_PER_COLUMN", 1)
    monkeypatch.setattr("vesper.method.certified.probe_size.MIN_EVIDENCE", 0.0)
    monkeypatch.setattr(Probe, "run", record)
    return noise_stds


def trained(root: Path, *, counts: float, **settings: object) -> "FinishedRun":
    """Train two parties after a count of the graph, as `vesper degrees` makes it."""
    if counts:
        ids = [f"u{k:02d}" for k in range(finished_run.NODES)]
        finished_run.write_graph(root / "counted", ids=ids, step=3)
        graph = open_data(root / "counted").graph
        with closing(Ledger(root / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
            name = fingerprint(graph, key=key_of(ledger))
            account = open_account(ledger, name, num_nodes=graph.num_nodes)
            account.charge(PureRelease(epsilon=counts, what=DEGREES), None, run="degrees")
    labels = [k // 3 % 2 for k in range(finished_run.NODES)]
    finished_run._trained(root, dict(settings), labels)
    return finished_run.FinishedRun(root)


@pytest.mark.parametrize("counts", [0.0, 2.0])
@pytest.mark.parametrize("settings", [{}, {"hops": 1, "degree_share": 0.0}], ids=str)
def test_the_graph_of_training_is_served_as_trained(
    tmp_path: Path, recorded_probes: list[float], counts: float, settings: dict[str, object]
) -> None:
    finished = trained(tmp_path, counts=counts, **settings)
    saved = read_saved_data_run(finished.data).arrays
    assert len(recorded_probes) == 1
    before = finished.ledger.read_bytes()
    first = finished.query(("u20", "u21"), stage=1)
    assert isinstance(first, QueryAnswer)
    assert len(recorded_probes) == 2, "read again, not drawn again"
    assert recorded_probes[0] == recorded_probes[1], "planned for what counts had left"
    assert finished.ledger.read_bytes() == before
    again = finished.query(("u20", "u21"), stage=1)
    assert isinstance(again, QueryAnswer)
    assert np.array_equal(first.values, again.values)
    if not settings:
        assert "fitted/constants/degree_share" in saved


def test_a_snapshot_uses_the_findings_of_training_and_runs_no_probe(
    tmp_path: Path, recorded_probes: list[float]
) -> None:
    finished = trained(tmp_path, counts=0.0)
    before = finished.charges()
    reply = finished.query(("u20", "v1"), snapshot=finished.snapshot(), stage=1)
    assert isinstance(reply, QueryAnswer)
    assert len(recorded_probes) == 1
    assert finished.charges() == before + 1, "the hop alone"
