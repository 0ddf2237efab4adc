"""The first words of a session: same version, same contract, or none at all."""

from vesper.errors import InputError, PeerError
from vesper.protocol.messages import AnswererHello, AskerHello, DataHello, LabelHello
from vesper.run.setup.contract import differences

PROTOCOL_VERSION = 3

Hello = DataHello | LabelHello | AnswererHello | AskerHello


def refuse_other(hello: Hello, contract: str) -> None:
    """Refuse a peer of another version, or with other shared settings.

    Raises:
        PeerError: the versions differ.
        InputError: the settings differ; the message says which.
        RemoteProtocolError: what the peer sent is no contract.
    """
    if hello.version != PROTOCOL_VERSION:
        raise PeerError(
            f"the peer speaks version {hello.version} of the protocol, this side version "
            f"{PROTOCOL_VERSION}; install the same vesper on both sides"
        )
    different = differences(contract, hello.contract)
    if different:
        more = f" and {len(different) - 5} more" if len(different) > 5 else ""
        raise InputError(
            f"the contracts differ in {len(different)} settings: {'; '.join(different[:5])}{more}. "
            f"Agree on one, then approve it on both sides with `vesper contract --approve`"
        )
