"""A ledger passed to `Vesper`: charged once; it also records fits without a guarantee."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper import BudgetError, Graph, InputError, Vesper
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
    communities.fit(ledger=ledger, settings=settings)
    other = Graph.from_edges(600, [(k, k + 1) for k in range(599)])
    labels = np.roll(communities.labels, 1)
    with pytest.raises(InputError, match="use a separate ledger file"):
        Vesper(epsilon=8.0, ledger=ledger, settings=settings).fit(
            other, communities.features, labels, train=communities.train
        )


def test_a_ledger_is_charged_once_and_refuses_a_second_fit(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    fast = {"epochs": 1}
    model = communities.fit(ledger=ledger, settings=fast)
    assert model.privacy_.run_charges is not None
    assert model.privacy_.run_charges.head is not None
    assert len(model.privacy_.run_charges.charges) == 3  # a probe and two hops
    charged = length_of(ledger)
    model.predict_proba(np.arange(600))
    model.report(tmp_path / "report.html")
    assert length_of(ledger) == charged, "predictions cost nothing"
    with pytest.raises(BudgetError, match="does not allow this release"):
        communities.fit(ledger=str(ledger), settings=fast)
    assert length_of(ledger) == charged
    other = Graph.from_edges(600, [(k, k + 1) for k in range(599)])
    rest = (communities.features, communities.labels)
    Vesper(epsilon=8.0, ledger=ledger, settings=fast).fit(other, *rest, train=communities.train)
    assert length_of(ledger) > charged, "another graph has its own budget"


def test_a_fit_without_a_guarantee_is_recorded_and_rules_out_certified_fits(
    communities: "Communities", tmp_path: Path
) -> None:
    ledger, fast = tmp_path / "ledger.sqlite", {"epochs": 1}
    alone = communities.fit(ledger=ledger, method="mlp", settings=fast)
    assert "what other fits read is in ledger.sqlite" in alone.privacy_.covers
    before = length_of(ledger)
    raw = communities.fit(ledger=ledger, method="gin", settings=fast)
    assert raw.privacy_.covers.startswith("nothing")
    assert length_of(ledger) == before + 2, "the graph, and how it was used"
    with pytest.raises(BudgetError, match="without a guarantee"):
        communities.fit(ledger=ledger, settings=fast)


@pytest.mark.parametrize("method", ["paper-gin", "vfgnn", "gap"])
def test_claimed_plans_are_recorded_as_unprotected(
    communities: "Communities", tmp_path: Path, method: str
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    settings = {"epochs": 1} | ({"accounting": "as-published"} if method == "gap" else {})
    communities.fit(ledger=ledger, method=method, settings=settings)
    with closing(open_to_read(ledger)) as reader:
        last = list(reader.entries())[-1]
    assert (last.facts["kind"], last.facts["plan"], last.cost) == ("unprotected", "paper", 0)
