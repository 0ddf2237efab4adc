"""The data party answers the label party: one conversation after the other, until it is stopped."""

from collections.abc import Callable
from pathlib import Path

from vesper.errors import (
    InputError,
    PeerError,
    PeerLostError,
    PeerStoppedError,
    RemoteProtocolError,
)
from vesper.mechanism.noise import NoiseSource
from vesper.progress import Progress, silent
from vesper.protocol.asking_turns import ASKING
from vesper.protocol.messages import Answer, AskerHello, Query, Refusal
from vesper.protocol.turns import Role
from vesper.run.ends.link import Link
from vesper.run.ends.opening import refuse_other
from vesper.run.network.meet import meeting_place
from vesper.run.network.own_state import held
from vesper.run.serving.answering import Answerer, open_answerer
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.channel import closing_in_words

Said = Callable[[str], None]
"""Is told what happens, line by line."""


def converse(answerer: Answerer, link: Link, *, said: Said = lambda line: None) -> None:
    """Answer one peer until it says farewell.

    Raises:
        PeerError: the peer is gone, has other settings, or sent something that it may not send.
    """
    link.send(answerer.hello)
    hello = link.expect(AskerHello)
    try:
        refuse_other(hello, answerer.hello.contract)
    except InputError as error:
        raise PeerError(str(error)) from None
    if hello.session != answerer.hello.session:
        raise PeerError("the peer asks about the model of another run than this one")
    if not 0 <= hello.stage < answerer.stages:
        raise RemoteProtocolError(f"the peer asks for stage {hello.stage} of {answerer.stages}")
    while isinstance(query := link.receive(), Query):
        reply = answerer.reply(query, stage=hello.stage)
        link.send(reply)
        if query.ids:
            said(_in_words(query, reply))


def answer_queries(
    config: PartyConfig,
    *,
    snapshot: Path | None = None,
    noise: NoiseSource | None = None,
    progress: Progress = silent,
    said: Said = lambda line: None,
) -> None:
    """Answer the label party's queries until the process is stopped.

    Args:
        config: the data party's file, of a finished run.
        snapshot: folder with `nodes` and `edges` that came after training; default: the graph of
            training.
        noise: where noise for a snapshot comes from; by default the operating system.
        progress: is told how far reading the tables is.
        said: is told who asked and what was answered.
    """
    peer = config.party.peer
    with (
        held(config.party.state),
        meeting_place(config) as connect,  # an idle peer is nothing to be told of
        open_answerer(config, snapshot=snapshot, noise=noise, progress=progress) as answerer,
    ):
        for line in answerer.subject.in_words():
            said(line)
        said(f"answering {peer}; stop with Ctrl-C")
        while True:
            try:
                with closing_in_words(connect(None)) as channel:
                    said(f"{peer} is here")
                    converse(answerer, Link(Role.DATA, channel, ASKING), said=said)
                    said(f"{peer} has left")
            except (PeerLostError, PeerStoppedError) as error:
                said(str(error))
            except PeerError as error:
                said(f"{peer} was sent away: {error}")


def _in_words(query: Query, reply: Answer | Refusal) -> str:
    spent = f"epsilon {reply.spent_epsilon:.3g} of {reply.epsilon:g}"
    if isinstance(reply, Refusal):
        return f"refused {len(query.ids)} nodes: {reply.reason} ({spent})"
    unknown = f", {len(reply.unknown)} unknown" if reply.unknown else ""
    return f"answered about {len(query.ids) - len(reply.unknown)} nodes{unknown} ({spent})"
