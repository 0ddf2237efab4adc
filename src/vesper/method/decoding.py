"""Which decoder the settings ask for: only the paper's methods have a choice."""

from vesper.errors import InputError
from vesper.method.settings import Config


def refuse_other_decoder(config: Config) -> None:
    """Refuse a decoder that the method would not use.

    Raises:
        InputError: it is not the only one that the method has.
    """
    if config.run.decoder != "concat":
        raise InputError(
            f"decoder: expected 'concat' for {config.run.method}, got '{config.run.decoder}'; the "
            f"others belong to the paper's methods"
        )
