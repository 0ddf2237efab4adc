"""The channel of a party to its peer: what crosses is kept in its state folder."""

from collections.abc import Callable

from vesper.run.setup.party_config import PartyConfig
from vesper.transport.lasting import LastingChannel
from vesper.transport.meetings import Connect

Lost = Callable[[str], None]
"""Is told why this side waits for another connection, each time it does."""


def party_channel(config: PartyConfig, connect: Connect, lost: Lost) -> LastingChannel:
    """Open it; it connects when it is first used, and again whenever it must."""
    is_data = config.party.role == "data"
    directions = ("data>label", "label>data")
    return LastingChannel(
        connect,
        config.party.state,
        begins=is_data,
        directions=directions if is_data else directions[::-1],
        waits=config.party.when_lost == "wait",
        lost=lost,
    )
