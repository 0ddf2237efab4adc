"""Which encoder the settings ask for, of all methods that let one choose."""

from vesper.method.method import Sizes
from vesper.method.settings import Config
from vesper.model.encoders import EncoderShape


def encoder_shape_of(
    config: Config, sizes: Sizes, *, num_inputs: int, normalized: bool = False
) -> EncoderShape:
    """What the encoder has to fit; its masks have a seed of their own."""
    run = config.run
    return EncoderShape(
        num_inputs=num_inputs,
        num_features=sizes.num_features,
        steps=run.steps,
        width=run.width,
        dropout=run.dropout,
        seed=run.seed + 2,
        normalized=normalized,
    )
