"""The line every private method must beat: features only, no edge is ever read."""

from vesper.method.vesper import VesperMethod


class MlpMethod(VesperMethod):
    """The same modules with no hop."""

    name = "mlp"
    plan = "edge-free"

    def hops(self, wanted: int) -> int:
        """None, whatever is asked for."""
        return 0
