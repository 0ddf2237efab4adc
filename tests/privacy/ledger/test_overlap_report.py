"""The owner reads what two names for much the same edges add up to."""

import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.graph.edges.edge_relation import toggle_edge
from vesper.graph.graph import Graph
from vesper.mechanism.graph_version import version_of_graph
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import PureRelease
from vesper.privacy.ledger.account import open_account
from vesper.privacy.ledger.overlap import ACCEPTED_KIND
from vesper.privacy.ledger.overlap_report import describe_overlaps
from vesper.privacy.ledger.store import Ledger, key_of

NODES = 500
PAIRS = np.random.default_rng(0).integers(0, NODES, (4000, 2)).tolist()
GRAPH = Graph.from_edges(NODES, PAIRS)
ONE_EDGE_MORE = toggle_edge(GRAPH, (0, 1))
UNRELATED = Graph.from_edges(NODES, np.random.default_rng(1).integers(0, NODES, (4000, 2)).tolist())


def opened(ledger: Ledger, name: str, graph: Graph, *, epsilon: float | None) -> None:
    open_account(
        ledger,
        name,
        num_nodes=graph.num_nodes,
        version=version_of_graph(graph, key=key_of(ledger)),
        budget=None if epsilon is None else Budget(epsilon=epsilon, delta=1e-6),
    )


@pytest.mark.parametrize(
    ("second", "share"), [(GRAPH, "all"), (ONE_EDGE_MORE, "about 100%|about 99%")]
)
def test_epsilons_and_deltas_of_both_names_are_added(
    tmp_path: Path, second: Graph, share: str
) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        opened(ledger, "october", GRAPH, epsilon=1.0)
        opened(ledger, "november", second, epsilon=2.5)
        opened(ledger, "elsewhere", UNRELATED, epsilon=4.0)
        (text,) = describe_overlaps(ledger, "november")
        assert describe_overlaps(ledger, "elsewhere") == []
    assert text.startswith("graph 'november' shares ")
    assert "of its edges with graph 'october'" in text
    assert "epsilon 3.5, delta 2e-06" in text
    assert "vesper budget accept" in text
    assert "--graph november --other october" in text
    assert re.search(f"shares ({share}) of", text)


def test_without_budgets_what_was_spent_counts(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        opened(ledger, "october", GRAPH, epsilon=None)
        account = open_account(ledger, "october", num_nodes=NODES)
        account.charge(PureRelease(epsilon=0.25, what="degree histogram"), None, run="degrees")
        opened(ledger, "november", GRAPH, epsilon=2.0)
        (text,) = describe_overlaps(ledger, "november")
    assert "epsilon 2.25, delta 1e-06" in text


def test_a_graph_used_without_a_guarantee_adds_up_to_infinity(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        opened(ledger, "october", GRAPH, epsilon=1.0)
        open_account(ledger, "october", num_nodes=NODES).note_unprotected(run="r", plan="none")
        opened(ledger, "november", GRAPH, epsilon=2.0)
        (text,) = describe_overlaps(ledger, "november")
    assert "epsilon inf" in text


def test_a_decision_is_stated_in_place_of_the_advice(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)) as ledger:
        opened(ledger, "october", GRAPH, epsilon=1.0)
        opened(ledger, "november", GRAPH, epsilon=2.0)
        with ledger.transaction():
            facts = {"kind": ACCEPTED_KIND, "other": "october", "by": "J. Doe"}
            ledger.append(graph="november", run="", facts=facts, cost=0, encoded_receivers=b"")
        for name in ("october", "november"):
            (text,) = describe_overlaps(ledger, name)
            assert text.endswith("accepted by J. Doe")
            assert "budget accept" not in text
