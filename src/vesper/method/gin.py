"""GIN without privacy: the line that private methods approach."""

from vesper.method.gnn import GnnMethod


class GinMethod(GnnMethod):
    """Sum over sampled neighbours."""

    def __init__(self) -> None:
        super().__init__("gin", aggregator="gin")
