"""A ledger passed to `Vesper`: charged once; it also records fits without a guarantee."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper import BudgetError, Graph, InputError, Vesper
from vesper.privacy.ledger.account_reader import accounts
from vesper.privacy.ledger.ledger_file import open_to_read

if TYPE_CHECKING:
    from tests.api.conftest import Communities


def length_of(ledger: Path) -> int:
    reader = open_to_read(ledger)
    try:
        return reader.head()[0]
    finally:
        reader.close()


def test_other_labels_need_another_ledger(communities: "Communities", tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    settings = {"epochs": 1, "label_epsilon": 2.0}
    communities.fit(ledger=ledger, graph_name="one", settings=settings)
    other = Graph.from_edges(600, [(k, k + 1) for k in range(599)])
    labels = np.roll(communities.labels, 1)
    with pytest.raises(InputError, match="use a separate ledger file"):
        Vesper(epsilon=8.0, ledger=ledger, graph_name="two", settings=settings).fit(
            other, communities.features, labels, train=communities.train
        )


def test_a_ledger_is_charged_once_and_refuses_a_second_fit(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    fast = {"epochs": 1}
    model = communities.fit(ledger=ledger, graph_name="one", settings=fast)
    assert model.privacy_.run_charges is not None
    assert len(model.privacy_.run_charges.charges) == 3  # a probe and two hops
    charged = length_of(ledger)
    model.predict_proba(np.arange(600))
    model.report(tmp_path / "report.html")
    assert length_of(ledger) == charged, "predictions cost nothing"
    other = Graph.from_edges(600, [(k, k + 1) for k in range(599)])
    rest = (communities.features, communities.labels)

    def fit_other(graph_name: str, epochs: int = 1) -> None:
        settings = {"epochs": epochs}
        again = Vesper(epsilon=8.0, ledger=str(ledger), graph_name=graph_name, settings=settings)
        again.fit(other, *rest, train=communities.train)

    with pytest.raises(BudgetError, match="does not allow this"):
        communities.fit(ledger=str(ledger), graph_name="one", settings={"epochs": 2})
    with pytest.raises(BudgetError, match="does not allow this"):
        fit_other("one", epochs=2)  # the budget belongs to the name, whatever the edges are by now
    assert length_of(ledger) == charged
    fit_other("two")
    assert length_of(ledger) > charged, "another name has its own budget"


def test_a_fit_that_charges_a_ledger_needs_the_name_of_its_graph(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger, fast = tmp_path / "ledger.sqlite", {"epochs": 1}
    for method in ("certified", "edgerand", "gin", "paper-gin"):
        with pytest.raises(InputError, match=r"expected a name for the graph.*with graph_name"):
            communities.fit(ledger=ledger, method=method, settings=fast)
    for name, message in (("two words", "letters, digits"), (5, "expected a text, got int")):
        with pytest.raises(InputError, match=message):
            communities.fit(ledger=ledger, graph_name=name, settings=fast)
    assert not list(tmp_path.iterdir())


def test_simulated_noise_never_charges_a_ledger(communities: "Communities", tmp_path: Path) -> None:
    ledger, fast = tmp_path / "ledger.sqlite", {"epochs": 1}
    for name in (None, "one"):
        with pytest.raises(InputError, match=r"^ledger: expected none with simulated noise"):
            communities.fit(ledger=ledger, graph_name=name, simulate_noise=True, settings=fast)
    assert not list(tmp_path.iterdir())
    communities.fit(simulate_noise=True, graph_name="one", settings=fast)


def test_a_seed_does_not_make_noise_public(communities: "Communities", tmp_path: Path) -> None:
    """The fit is charged and certified; its first weights can be repeated, its noise cannot."""
    nodes, fits = np.arange(600), []
    for name in ("a", "b"):
        ledger = tmp_path / f"{name}.sqlite"
        fit = {"ledger": ledger, "graph_name": "one", "seed": 3, "settings": {"epochs": 1}}
        model = communities.fit(**fit)
        assert model.privacy_.is_private
        assert not model.privacy_.simulated
        assert model.privacy_.plan == "certified"
        with closing(open_to_read(ledger)) as reader:
            (balance,) = accounts(reader)
        assert not balance.simulated
        fits.append(model.predict_proba(nodes))
    assert not np.array_equal(fits[0], fits[1])
    alike = [
        communities.fit(method="mlp", seed=3, settings={"epochs": 1}).predict_proba(nodes)
        for _ in range(2)
    ]
    assert np.array_equal(alike[0], alike[1]), "without edges there is no noise"


def test_a_report_shows_this_fit_alone(communities: "Communities", tmp_path: Path) -> None:
    """Nothing in it tells whether the same edges were charged for under another name."""
    fits = []
    for number, earlier in enumerate((False, True)):
        ledger = tmp_path / f"{number}.sqlite"
        if earlier:
            communities.fit(ledger=ledger, graph_name="earlier", settings={"epochs": 1})
        model = communities.fit(ledger=ledger, graph_name="one", settings={"epochs": 1})
        assert model.privacy_.run_charges is not None
        fits.append(model.privacy_.run_charges)
    alone, after = (replace(each, charges=()) for each in fits)
    assert alone == after
    first, second = ([charge.what for charge in each.charges] for each in fits)
    assert first == second


def test_an_interrupted_fit_returns_what_it_has_not_used(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"

    def stop(task: str, done: int, total: int, note: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        communities.fit(ledger=ledger, graph_name="one", settings={"epochs": 1}, progress=stop)
    with closing(open_to_read(ledger)) as reader:
        (balance,) = accounts(reader)
        kinds = [entry.facts["kind"] for entry in reader.entries()]
    assert (balance.reservations, kinds[-1]) == ({}, "returned")


def test_a_fit_without_a_guarantee_is_recorded_and_rules_out_certified_fits(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger, fast = tmp_path / "ledger.sqlite", {"epochs": 1}
    alone = communities.fit(ledger=ledger, method="mlp", settings=fast)
    assert "what other fits read is in ledger.sqlite" in alone.privacy_.covers
    before = length_of(ledger)
    raw = communities.fit(ledger=ledger, graph_name="one", method="gin", settings=fast)
    assert raw.privacy_.covers.startswith("nothing")
    with closing(open_to_read(ledger)) as reader:
        kinds = [entry.facts["kind"] for entry in reader.entries(after=before)]
    assert kinds == ["graph", "version", "reserved", "unprotected", "returned"]
    with pytest.raises(BudgetError, match="without a guarantee"):
        communities.fit(ledger=ledger, graph_name="one", settings=fast)


@pytest.mark.parametrize("method", ["paper-gin", "vfgnn", "gap"])
def test_claimed_plans_are_recorded_as_unprotected(
    communities: "Communities", tmp_path: Path, method: str
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    settings = {"epochs": 1} | ({"accounting": "as-published"} if method == "gap" else {})
    communities.fit(ledger=ledger, graph_name="one", method=method, settings=settings)
    with closing(open_to_read(ledger)) as reader:
        noted, last = list(reader.entries())[-2:]
    assert (noted.facts["kind"], noted.facts["plan"], noted.cost) == ("unprotected", "paper", 0)
    assert last.facts["kind"] == "returned"
