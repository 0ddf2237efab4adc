"""Every line of the preflight, passed and failed; it writes nothing but an empty state folder."""

import shutil
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vesper.deployment.config.multi_party_config import load_multi_party_config
from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.handshake import PreflightGreeting
from vesper.deployment.identity.authority import make_authority
from vesper.deployment.preflight import Check, Preflight
from vesper.session.contract import approve

if TYPE_CHECKING:
    from tests.conftest import Institutions
    from tests.fixtures.processes import Several


def run(path: Path, *, wait: float = 0.0, approved: bool = True) -> dict[str, Check]:
    config = load_party_config(path)
    if approved:
        approve(config.party.state, config.shared)
    return {check.name: check for check in Preflight(config, wait=wait)}


def run_both(institutions: "Institutions") -> list[dict[str, Check]]:
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(run, path, wait=10.0) for path in institutions.settings]
        return [future.result() for future in running]


def failed(checks: dict[str, Check]) -> dict[str, str]:
    return {name: check.text for name, check in checks.items() if check.outcome == "FAILED"}


def test_two_sides_that_are_ready(institutions: "Institutions") -> None:
    data, label = run_both(institutions)
    assert {check.outcome for side in (data, label) for check in side.values()} == {"PASSED"}
    assert "budget" not in label
    assert data["files"].text == "60 nodes with 1 features"
    assert label["files"].text == "60 labels of 2 kinds"
    assert data["peer"].text.startswith("bank at 127.0.0.1:")
    assert list((institutions.data / "state").iterdir()) == [
        institutions.data / "state" / "contract.json"
    ]
    assert not (institutions.data / "data" / "ledger.sqlite").exists()


def test_contracts_and_clocks_that_differ(
    institutions: "Institutions", monkeypatch: pytest.MonkeyPatch
) -> None:
    label = institutions.settings[1]
    label.write_text(label.read_text().replace("epsilon = 4.0", "epsilon = 2.0"))
    data, bank = run_both(institutions)
    assert "privacy.epsilon: 4.0 here, 2.0 there" in failed(data)["agreement"]
    assert "privacy.epsilon: 2.0 here, 4.0 there" in failed(bank)["agreement"]
    checks = Preflight(load_party_config(label))
    for version, time, message in (("0", 0.0, "has vesper '0', this side"), ("0", 500.0, "500 s")):
        greeting = PreflightGreeting(version, "", time, received=0.0)
        monkeypatch.setattr(checks, "_greeting", lambda greeting=greeting: greeting)
        found = failed({check.name: check for check in checks})
        assert message in found["clock" if time else "agreement"]


def test_one_side_without_the_other(institutions: "Institutions") -> None:
    data, label = (run(path) for path in institutions.settings)
    assert failed(data) == {}
    assert "is free to listen at" in data["peer"].text
    assert failed(label).keys() == {"peer"}
    assert "start `vesper preflight --wait 60` there" in label["peer"].text
    assert label["clock"].outcome == label["agreement"].outcome == "SKIPPED"


def test_files_that_cannot_be_read(institutions: "Institutions") -> None:
    (institutions.data / "data" / "edges.parquet").unlink()
    shutil.rmtree(institutions.label / "label")
    data, label = (run(path) for path in institutions.settings)
    assert "expected edges.parquet or edges.csv" in failed(data)["files"]
    assert data["budget"].outcome == "SKIPPED"
    assert "expected a folder with labels.parquet" in failed(label)["files"]


def test_a_certificate_that_does_not_fit(institutions: "Institutions") -> None:
    make_authority(institutions.root / "other", name="x", now=datetime.now(UTC))
    other = institutions.root / "other" / "authority.pem"
    shutil.copy(other, institutions.label / "tls" / "authority.pem")
    label = run(institutions.settings[1])
    assert "was not signed by" in failed(label)["certificate"]
    assert label["peer"].outcome == "SKIPPED"


def test_a_contract_that_nobody_has_approved(institutions: "Institutions") -> None:
    assert (
        "expected the approved contract"
        in (failed(run(institutions.settings[0], approved=False))["contract"])
    )


def test_state_folders(institutions: "Institutions", monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = institutions.settings[0], institutions.data / "state"
    state.mkdir()
    (state / "session").touch()
    started = run(path)
    assert "a run has started here" in started["state"].text
    assert started["budget"].outcome == "SKIPPED"
    (state / "result").mkdir()
    assert "a run has finished here" in failed(run(path))["state"]
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(5 << 20))
    assert "5 MiB are free, expected 256" in failed(run(path))["state"]
    shutil.rmtree(state)
    state.write_text("a file")
    assert "cannot be written" in failed(run(path, approved=False))["state"]


def test_an_own_graph_needs_no_certificate_and_no_connection(several: "Several") -> None:
    several.write_multi_party_config(own="")
    graph = load_multi_party_config(several.label_file).graph
    assert graph is not None
    approve(graph.party.state, graph.shared)
    found = {check.name: check.outcome for check in Preflight(graph)}
    assert found == dict.fromkeys(("versions", "files", "state", "budget", "contract"), "PASSED")
