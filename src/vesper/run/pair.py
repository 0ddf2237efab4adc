"""Two parties in one process, trained through session, protocol and a memory channel.

What both know before anything is sent is the `Agreement`; what comes out is `Trained`: both sides
with the weights that validation chose, and how good each stage was.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from vesper.errors import PeerError
from vesper.graph.holdings import DataHoldings
from vesper.graph.labels import LabelHoldings
from vesper.mechanism.door import Door
from vesper.model.decoder import Decoder
from vesper.model.objective import Objective
from vesper.model.objectives import Responses
from vesper.party.label_party import LabelParty
from vesper.party.representation import Representation
from vesper.progress import Progress, silent
from vesper.protocol.messages import Farewell
from vesper.protocol.turns import Role
from vesper.run.agreement import Agreement
from vesper.run.ends.data_end import data_end
from vesper.run.ends.label_end import LabelOutcome, label_end, note_of
from vesper.run.ends.link import Link
from vesper.run.ends.told import UNTOLD, Told
from vesper.transport.memory import memory_pair


@dataclass(frozen=True)
class Trained:
    """Both sides after training, and what was measured on the way."""

    data_side: Representation
    label_side: Decoder
    """With the weights of the best stage."""
    metric: str
    stages: list[dict[str, float]]
    """Validation and test metric a stage."""
    bytes_to_label_party: int
    bytes_to_data_party: int

    @property
    def best_stage(self) -> int:
        """The stage that is best on validation."""
        return int(np.argmax([stage["validation"] for stage in self.stages]))


def train(
    agreement: Agreement,
    data: DataHoldings,
    labels: LabelHoldings,
    door: Door,
    *,
    progress: Progress = silent,
    told: Told = UNTOLD,
    responses: Responses | None = None,
) -> Trained:
    """Let the two ends meet in two threads; the label end tells how it goes."""
    # Both sides approved the same settings; noise may be planned for less than their epsilon.
    config = agreement.config
    data_channel, label_channel = memory_pair()
    data_link, label_link = Link(Role.DATA, data_channel), Link(Role.LABEL, label_channel)
    watched: list[tuple[LabelParty, Objective]] = []

    def label_thread() -> LabelOutcome:
        try:
            return label_end(
                config,
                labels,
                label_link,
                method=agreement.method,
                watch=lambda party, objective: watched.append((party, objective)),
                told=told,
                responses=responses,
            )
        finally:
            label_channel.close()

    with ThreadPoolExecutor(max_workers=1) as pool:
        answering = pool.submit(label_thread)
        try:
            ours = data_end(
                config,
                data,
                data_link,
                prepare=lambda agreed: (door, agreement),
                progress=progress,
                note=lambda: note_of(*watched[0]) if watched else "",
            )
            data_link.expect(Farewell)
        except PeerError:
            data_channel.close()
            answering.result()  # the cause, when the label side failed first
            raise
        finally:
            data_channel.close()
        theirs = answering.result()
    ours.data_side.settle(theirs.best_stage)
    return Trained(
        data_side=ours.data_side,
        label_side=theirs.label_side,
        metric=theirs.metric,
        stages=theirs.stages,
        bytes_to_label_party=data_link.bytes_sent,
        bytes_to_data_party=label_link.bytes_sent,
    )
