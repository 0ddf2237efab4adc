"""MLP on features alone, which every private method must beat: no edge is ever read."""

from collections.abc import Mapping

from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.certified.method import CertifiedMethod
from vesper.method.options import refuse_other_decoder
from vesper.method.settings import Config


class MlpMethod(CertifiedMethod):
    """The certified method without any hop."""

    name = "mlp"
    defaults: Mapping[str, object] = {"label_messages": False}  # no messages are sent

    def hops(self, config: Config, sizes: PublicSizes) -> int:
        """Return 0, whatever the settings."""
        return 0

    def noise_plan(self, config: Config, sizes: PublicSizes) -> NoisePlan:
        """Make a plan without releases: no edge is read."""
        refuse_other_decoder(config)
        return NoisePlan(
            plan="edge-free",
            certified_epsilon=0.0,
            claimed_epsilon=None,
            delta=None,
            noise_stds=(),
        )
