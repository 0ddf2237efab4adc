"""What else is charged to the graph of a run: it never makes the run fail once it has started."""

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.fixtures.observers import CallingObserver
from typer.testing import CliRunner

from vesper.cli.app import app
from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.errors import BudgetError, VesperError
from vesper.export.writer import export_features
from vesper.mechanism.noise.noise_source import NoiseSource
from vesper.mechanism.release_store import ReleaseStore
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.session.contract import approve

if TYPE_CHECKING:
    from tests.fixtures.both_parties import Both

GRAPH = "payments"


def degrees(config: PartyConfig, *, epsilon: float = 0.5, folder: Path | None = None) -> int:
    """Run `vesper degrees` on the graph of a party; return the exit code."""
    own = config.party
    options = ["--epsilon", str(epsilon), "--graph", GRAPH, "--ledger", str(own.ledger)]
    result = CliRunner().invoke(app, ["degrees", str(folder or own.folder), *options, "--json"])
    if isinstance(result.exception, VesperError):
        return result.exception.exit_code
    return result.exit_code


def elsewhere(config: PartyConfig, state: str, **privacy: object) -> PartyConfig:
    """Settings of another run on the same graph, approved."""
    shared = config.shared.model_copy(
        update={"privacy": config.shared.privacy.model_copy(update=privacy)}
    )
    party = config.party.model_copy(update={"state": config.party.state.with_name(state)})
    approve(party.state, shared)
    return config.model_copy(update={"party": party, "shared": shared})


def with_other_nodes(config: PartyConfig) -> Path:
    """Write a later version of the graph, with fewer nodes."""
    folder = config.party.state.with_name("later")
    folder.mkdir()
    for name, rows in (("nodes", 50), ("edges", 49)):
        table = pq.read_table(config.party.folder / f"{name}.parquet")
        pq.write_table(table.slice(0, rows), folder / f"{name}.parquet")
    return folder


def other_charges(data: PartyConfig) -> dict[str, Callable[[], object]]:
    """Everything that could spend what the run needs."""

    def unseen(*_: object, **__: object) -> Any:
        pytest.fail("the peer could see this side")

    def run_again(state: str, **privacy: object) -> None:
        run_data_party(elsewhere(data, state, **privacy), connector=unseen)

    def export() -> None:
        out, own = data.party.state.with_name("out.parquet"), data.party
        export_features(own.folder, data.shared, out, graph_name=GRAPH, ledger=own.ledger)

    return {
        "degrees": lambda: degrees(data),
        "degrees of other nodes": lambda: degrees(data, folder=with_other_nodes(data)),
        "another run": lambda: run_again("another"),
        "half a run": lambda: run_again("half", epsilon=2.0),
        "an export": export,
        "an unprotected run": lambda: run_again("unprotected", epsilon=float("inf")),
    }


@pytest.mark.parametrize("step", [1, 7])  # of 6 per stage: before any release, and after one
def test_nothing_else_can_make_a_started_run_fail(both: "Both", step: int) -> None:
    data, label = both.configs()
    outcomes: dict[str, object] = {}

    def interfere(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == step and not outcomes:
            for name, act in other_charges(data).items():
                try:
                    outcomes[name] = act()
                except BudgetError as error:
                    outcomes[name] = type(error)

    for side in both.run(data, label, observer=CallingObserver(progress=interfere)):
        side.result()
    counted = [outcomes.pop(name) for name in ("degrees", "degrees of other nodes")]
    assert counted == [BudgetError.exit_code] * 2
    assert set(outcomes.values()) == {BudgetError}
    assert len(outcomes) == 4
    assert both.charged(data) == 3
    with closing(open_to_read(data.party.ledger)) as ledger:
        (balance,) = accounts(ledger)
    assert balance.reservations == {}
    assert 3.9 < balance.spent_epsilon() <= 4.0


@pytest.mark.parametrize("method", ["edgerand", "lapgraph"])
def test_noisy_edges_are_resumed_after_counts(
    both: "Both", monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """The run's own charge is not counted as if another had spent it."""
    both.change('method = "certified"', f'method = "{method}"')
    data, label = both.configs()
    assert degrees(data) == 0
    put, calls = ReleaseStore.put, []

    def fail_once(store: ReleaseStore, number: int, arrays: dict[str, Any]) -> str:
        calls.append(number)
        if len(calls) == 1:
            raise VesperError("the disk is full")
        return put(store, number, arrays)

    monkeypatch.setattr(ReleaseStore, "put", fail_once)
    ours, theirs = both.run(data, label)
    with pytest.raises(VesperError, match="the disk is full"):
        ours.result()
    assert theirs.exception() is not None
    assert both.charged(data) == 2
    with ThreadPoolExecutor(2) as pool:
        again = pool.submit(run_data_party, data, resume=True)
        other = pool.submit(run_label_party, label, resume=True)
        assert again.result().privacy.certified_epsilon == 4.0
        assert other.result().method == method
    assert both.charged(data) == 2
    with closing(open_to_read(data.party.ledger)) as ledger:
        assert accounts(ledger)[0].spent_epsilon() == pytest.approx(4.0)


@pytest.mark.parametrize("step", [3, 8, 15])  # of 6 per stage
def test_a_resumed_run_continues_with_its_releases_whatever_has_changed(
    both: "Both", step: int
) -> None:
    """A refusal, or a frame that differs from one sent before, would reveal the change."""
    data, label = both.configs()
    noise = NoiseSource.for_simulation(7)

    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if task == "training" and done == step:
            raise KeyboardInterrupt

    ours, theirs = both.run(data, label, noise=noise, observer=CallingObserver(progress=stop))
    with pytest.raises(KeyboardInterrupt):
        ours.result()
    assert theirs.exception() is not None
    before = {path.name: path.read_bytes() for path in releases(data)}
    edges = data.party.folder / "edges.parquet"
    pq.write_table(pq.read_table(edges).slice(0, 40), edges)
    warnings: list[str] = []
    at_label: list[str] = []
    for side in both.run(
        data,
        label,
        noise=noise,
        resume=True,
        observer=CallingObserver(warning=warnings.append),
        of_label={"resume": True, "observer": CallingObserver(warning=at_label.append)},
    ):
        side.result()
    assert ["has other edges than when this run began" in text for text in warnings] == [True]
    assert at_label == []
    after = {path.name: path.read_bytes() for path in releases(data)}
    assert before.items() <= after.items()
    assert len(after) == both.charged(data) == 3


def releases(config: PartyConfig) -> list[Path]:
    return sorted((config.party.state / "releases").glob("*.npz"))


def test_a_copied_folder_is_charged_to_the_same_ledger(both: "Both", state_home: Path) -> None:
    path = both.settings[0]
    path.write_text(re.sub(r"(?m)^ledger = .*$", "", path.read_text()))
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    assert data.party.ledger == state_home / "vesper" / "ledger.sqlite"
    copy = path.parent.with_name("copy")
    shutil.copytree(path.parent, copy, ignore=shutil.ignore_patterns("state"))
    again = load_party_config(copy / path.name)
    approve(again.party.state, again.shared)
    with pytest.raises(BudgetError, match="graph 'payments' does not allow this"):
        run_data_party(again)
    assert both.charged(again) == 3
    assert not list(copy.rglob("*.sqlite"))


def test_two_names_for_the_same_edges_are_two_budgets_and_the_owner_is_warned(both: "Both") -> None:
    data, label = both.configs()
    for side in both.run(data, label):
        side.result()
    both.change(f'graph = "{GRAPH}"', 'graph = "other"')
    both.change('state = "state"', 'state = "second"')
    warnings: list[str] = []
    at_label: list[str] = []
    for side in both.run(
        *both.configs(),
        observer=CallingObserver(warning=warnings.append),
        of_label={"observer": CallingObserver(warning=at_label.append)},
    ):
        side.result()
    assert len(warnings) == 1
    assert "graph 'other' shares all of its edges with graph 'payments'" in warnings[0]
    assert "both add up to epsilon 8" in warnings[0]
    assert at_label == []
    one, two = (
        np.load(data.party.state.with_name(state) / "result" / "data_party.npz").files
        for state in ("state", "second")
    )
    assert one == two
