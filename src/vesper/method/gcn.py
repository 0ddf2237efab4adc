"""GCN without privacy: weights by degree, all nodes heard."""

from vesper.method.gnn import GnnMethod


class GcnMethod(GnnMethod):
    """Degree-weighted sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gcn", aggregator="gcn")
