"""The line every private method must beat: features only, no edge is ever read."""

from collections.abc import Mapping

from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.certified.method import CertifiedMethod
from vesper.method.options import refuse_other_decoder
from vesper.method.settings import Config


class MlpMethod(CertifiedMethod):
    """The same modules with no hop."""

    name = "mlp"
    defaults: Mapping[str, object] = {"label_messages": False}  # nobody listens

    def hops(self, config: Config, sizes: PublicSizes) -> int:
        """None, whatever is asked for."""
        return 0

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """No edge is read."""
        refuse_other_decoder(config)
        return NoisePlan(
            plan="edge-free",
            certified_epsilon=0.0,
            claimed_epsilon=None,
            delta=None,
            noise_stds=(),
        )
