"""Who this side is and whom it trusts, for mutual TLS."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Identity:
    """PEM texts: own certificate and key, and the authority that both sides trust."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes
