"""The line every private method must beat: features only, no edge is ever read."""

from collections.abc import Mapping

from vesper.method.base import Promise, Sizes
from vesper.method.certified.method import VesperMethod
from vesper.method.options import refuse_other_decoder
from vesper.method.settings import Config


class MlpMethod(VesperMethod):
    """The same modules with no hop."""

    name = "mlp"
    defaults: Mapping[str, object] = {"label_messages": False}  # nobody listens

    def hops(self, config: Config, sizes: Sizes) -> int:
        """None, whatever is asked for."""
        return 0

    def promise(self, config: Config, sizes: Sizes) -> Promise:
        """No edge is read."""
        refuse_other_decoder(config)
        return Promise(
            plan="edge-free",
            certified_epsilon=0.0,
            claimed_epsilon=None,
            delta=None,
            noise_stds=(),
        )
