"""The label party's own graph answers the label party: a thread of the same process.

Answers are made of what was released and charged in training, as those of any other data party.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event

from vesper.errors import PeerLostError
from vesper.protocol.asking_turns import ASKING
from vesper.protocol.turns import Role
from vesper.run.ends.link import Link
from vesper.run.network.own_graph import PATIENCE, MetInMemory
from vesper.run.network.own_state import held
from vesper.run.serving.answering import open_answerer
from vesper.run.serving.conversation import converse
from vesper.run.setup.party_config import PartyConfig
from vesper.transport.channel import closing_in_words
from vesper.transport.memory import MemoryMeeting


@contextmanager
def own_answers(config: PartyConfig) -> Iterator[MetInMemory]:
    """Answer about the graph of training until the block ends.

    Raises:
        InputError: the run is not finished, or its graph has changed.
    """
    meeting, ready = MemoryMeeting(patience=PATIENCE), Event()

    def answer() -> None:  # all of it in one thread: a ledger belongs to the one that opened it
        with held(config.party.state), open_answerer(config) as answerer:
            ready.set()
            while not meeting.is_over:
                with suppress(PeerLostError), closing_in_words(meeting.connect(0, None)) as channel:
                    converse(answerer, Link(Role.DATA, channel, ASKING))

    def over(_: object) -> None:
        meeting.leave()
        ready.set()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(answer)
        answering.add_done_callback(over)
        ready.wait()
        if answering.done():
            answering.result()
        try:
            yield MetInMemory(meeting)
        finally:
            meeting.leave()
        answering.result()
