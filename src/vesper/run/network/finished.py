"""A run that is finished here, and may not be at the peer's."""

from vesper.errors import PeerLostError
from vesper.progress import Progress, silent
from vesper.run.network.meet import Place, meeting_place, waiting_shown
from vesper.run.network.own_state import held
from vesper.run.network.party_channel import Lost, party_channel
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.channel import closing_in_words


def is_finished(config: PartyConfig) -> bool:
    """Whether this side of the run is complete."""
    return (config.party.state / "result").exists()


def stay_for_peer(
    config: PartyConfig,
    *,
    progress: Progress = silent,
    lost: Lost = lambda why: None,
    place: Place = meeting_place,
) -> bool:
    """Give a peer that was cut off at the very end what it has not got; False if none has come."""
    with (
        held(config.party.state),
        place(config, waiting=waiting_shown(config, progress)) as connect,
        closing_in_words(party_channel(config, connect, lost)) as channel,
    ):
        channel.finish(patience=config.party.patience)
        try:
            channel.meet()
        except PeerLostError:
            return False  # it is most likely finished, too
        if not channel.is_level:
            channel.linger(is_word_due=config.party.role == "data")  # the farewell
    return True
