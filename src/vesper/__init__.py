"""VESPER: train a graph neural network across two institutions with certified edge privacy.

The data party holds a graph and edge-free features, the label party holds labels. Everything that
depends on an edge leaves the data party through one door, with noise added, after it has been
charged to a ledger. The label party cannot determine whether any single edge exists, beyond a
stated (epsilon, delta).

    >>> import vesper
    >>> graph = vesper.Graph.from_edges(3, [(0, 1), (1, 2)])
    >>> graph.num_nodes, graph.num_edges
    (3, 2)

Names are loaded on first use, so that importing the package is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vesper.version import VERSION as __version__

if TYPE_CHECKING:
    from vesper.api.estimator import Vesper
    from vesper.api.regressor import VesperRegressor
    from vesper.errors import BudgetError, InputError, PeerError, VesperError
    from vesper.graph.graph import Graph
    from vesper.graph.holdings import DataHoldings, open_data
    from vesper.graph.labels import LabelHoldings, open_labels
    from vesper.method.settings import Config
    from vesper.privacy.accounting.budget import Budget
    from vesper.session.config import load_config
    from vesper.session.result import Result
    from vesper.simulation.simulate import simulate

__all__ = [
    "Budget",
    "BudgetError",
    "Config",
    "DataHoldings",
    "Graph",
    "InputError",
    "LabelHoldings",
    "PeerError",
    "Result",
    "Vesper",
    "VesperError",
    "VesperRegressor",
    "__version__",
    "load_config",
    "open_data",
    "open_labels",
    "simulate",
]

_HOMES = {
    "Budget": "vesper.privacy.accounting.budget",
    "BudgetError": "vesper.errors",
    "Config": "vesper.method.settings",
    "DataHoldings": "vesper.graph.holdings",
    "Graph": "vesper.graph.graph",
    "InputError": "vesper.errors",
    "LabelHoldings": "vesper.graph.labels",
    "PeerError": "vesper.errors",
    "Result": "vesper.session.result",
    "Vesper": "vesper.api.estimator",
    "VesperError": "vesper.errors",
    "VesperRegressor": "vesper.api.regressor",
    "load_config": "vesper.session.config",
    "open_data": "vesper.graph.holdings",
    "open_labels": "vesper.graph.labels",
    "simulate": "vesper.simulation.simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vesper' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
