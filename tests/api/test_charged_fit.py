"""Fits that charge a ledger: saved at once, resumed after any end, never charged twice."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper import BudgetError, InputError, Vesper
from vesper.privacy.ledger.ledger_file import open_to_read

if TYPE_CHECKING:
    from tests.api.conftest import Communities

ALL = np.arange(600)
FAST = {"epochs": 1}


def charges_of(ledger: Path) -> int:
    with closing(open_to_read(ledger)) as reader:
        return sum(entry.cost > 0 for entry in reader.entries())


def folders_of(ledger: Path) -> list[Path]:
    return list(ledger.with_name(f"{ledger.name}.fits").glob("*"))


def test_a_charged_fit_is_saved_at_once(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    model = communities.fit(ledger=ledger, graph_name="one", settings=FAST)
    (folder,) = folders_of(ledger)
    loaded = Vesper.load(folder / "model.npz")
    assert np.array_equal(loaded.predict_proba(ALL), model.predict_proba(ALL))
    assert loaded.graph_name == "one"
    assert (folder.stat().st_mode | folder.parent.stat().st_mode) & 0o077 == 0
    assert not list(folder.rglob("*.key")), "no source of noise is left"


@pytest.mark.parametrize("seed", [None, 5])
def test_the_same_fit_again_costs_nothing(
    communities: "Communities", tmp_path: Path, seed: int | None
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    given = {"ledger": ledger, "graph_name": "one", "seed": seed, "settings": FAST}
    first = communities.fit(**given)
    before = charges_of(ledger)
    (folder,) = folders_of(ledger)
    again = communities.fit(**given)
    assert np.array_equal(again.predict_proba(ALL), first.predict_proba(ALL))
    (folder / "model.npz").unlink()  # as if the process had died before it was written
    trained = communities.fit(**given)
    assert np.array_equal(trained.predict_proba(ALL), first.predict_proba(ALL))
    (folder / "model.npz").write_bytes(b"PK damaged")
    with pytest.warns(UserWarning, match="fitted again from its releases, at no cost"):
        communities.fit(**given)
    assert charges_of(ledger) == before
    with pytest.raises(BudgetError):
        communities.fit(**given | {"seed": 7})
    assert folders_of(ledger) == [folder], "what was refused leaves nothing"


KILLED = """
import os, signal, sys
import numpy as np
from vesper import Vesper
given = np.load(sys.argv[1])
def stop(task, done, total, note=""):
    if done == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
settings = {"epochs": 2, "width": 16, "batch_size": 320, "learning_rate": 0.03}
model = Vesper(epsilon=8.0, ledger=sys.argv[2], graph_name="one", settings=settings, progress=stop)
model.fit(given["edges"], given["features"], given["labels"], train=given["train"])
"""


def test_a_killed_fit_loses_no_budget(communities: "Communities", tmp_path: Path) -> None:
    ledger, given = tmp_path / "ledger.sqlite", tmp_path / "given.npz"
    names = ("edges", "features", "labels", "train")
    np.savez(given, **{name: getattr(communities, name) for name in names})
    charged = []
    for step in (3, 6, 10):  # in stages 0, 1 and 2
        command = [sys.executable, "-c", KILLED, str(given), str(ledger), str(step)]
        result = subprocess.run(command, check=False, env=os.environ, capture_output=True)
        assert result.returncode == -signal.SIGKILL, result.stderr
        charged.append(charges_of(ledger))
    assert charged == [0, 2, 3]
    model = communities.fit(ledger=ledger, graph_name="one", settings={"epochs": 2})
    assert charges_of(ledger) == 3
    assert model.privacy_.is_private
    assert model.privacy_.epsilon == 8.0
    (folder,) = folders_of(ledger)
    assert (folder / "model.npz").exists()


def test_an_interrupted_fit_continues(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"

    def stop(task: str, done: int, total: int, note: str = "") -> None:
        if done == 6:
            raise KeyboardInterrupt

    given = {"ledger": ledger, "graph_name": "one", "settings": {"epochs": 2}}
    with pytest.raises(KeyboardInterrupt):
        communities.fit(**given, progress=stop)
    assert charges_of(ledger) == 2
    communities.fit(**given)
    assert charges_of(ledger) == 3


def test_changed_edges_lead_to_a_warning_and_to_no_charge(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    model = Vesper(epsilon=8.0, ledger=ledger, graph_name="one", settings=FAST)
    rest = (communities.features, communities.labels)
    model.fit(communities.edges, *rest, train=communities.train)
    before, expected = charges_of(ledger), model.predict_proba(ALL)
    with pytest.warns(UserWarning, match="graph 'one' has other edges than when"):
        model.fit(communities.edges[:, 1:], *rest, train=communities.train)
    assert charges_of(ledger) == before
    assert np.array_equal(model.predict_proba(ALL), expected)


def test_other_labels_or_features_are_another_fit(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    model = Vesper(epsilon=8.0, ledger=ledger, graph_name="one", settings=FAST)
    edges, features, labels = communities.edges, communities.features, communities.labels
    model.fit(edges, features, labels, train=communities.train)
    for changed in ((features + 1, labels), (features, np.roll(labels, 1))):
        with pytest.raises(BudgetError, match="does not allow this"):
            model.fit(edges, *changed, train=communities.train)
    with pytest.raises(BudgetError, match="does not allow this"):
        model.fit(edges, features, labels, train=communities.train[1:])


def test_two_processes_are_never_at_one_fit(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    given = {"ledger": ledger, "graph_name": "one", "settings": FAST}
    refused: list[bool] = []

    def again(task: str, done: int, total: int, note: str = "") -> None:
        if not refused:
            with pytest.raises(InputError, match="another process is fitting the same model"):
                communities.fit(**given)
            refused.append(True)

    communities.fit(**given, progress=again)
    assert refused


def test_fits_without_charges_leave_no_folder(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    communities.fit(ledger=ledger, method="mlp", settings=FAST)
    communities.fit(ledger=ledger, graph_name="two", method="gin", settings=FAST)
    assert folders_of(ledger) == []
