"""The data party's side of a session: greet, check the roster, open the door, run.

Everything that the peer sends is checked before it is used, and all of it before anything is
charged:

| part | refused when |
| --- | --- |
| outputs | there are none, or logits of all nodes would not fit into memory |
| bytes, ids | there are more than in a roster that names every node |
| ids | one is unknown or occurs twice, or training or validation has none |
| label posteriors | they contradict the contract, are missing, or are not distributions |
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from vesper.errors import RemoteProtocolError, first_three
from vesper.graph.holdings import DataHoldings
from vesper.graph.ids import Ids
from vesper.mechanism.door import Door
from vesper.method.base import PublicSizes
from vesper.method.settings import Config
from vesper.party.data_party import DataParty
from vesper.party.representation import Nodes, Representation
from vesper.protocol.codec import MAX_FRAME_BYTES, Limits
from vesper.protocol.messages import DataHello, LabelHello, Roster
from vesper.session.checkpoint import Checkpoints
from vesper.session.contract import contract_text
from vesper.session.loop import NO_CHECKPOINTS, run_data_side
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.session.peer import PROTOCOL_VERSION, Link, refuse_other_contract
from vesper.session.run_spec import RunSpec, make_run_spec

MAX_OUTPUTS = 1 << 16
BYTES_PER_OUTPUT = 16
"""Memory per node and output: logits, beliefs, messages and sums of one stage."""
_DIGITS = 20  # of an integer with its sign
_HEAD = 64  # bytes of the headers of frame and tensor


def refuse_outputs(outputs: int, *, num_nodes: int, memory: int | None = None) -> None:
    """Refuse a model whose outputs for all nodes would not fit into `memory` bytes."""
    memory = physical_memory() if memory is None else memory
    if not 1 <= outputs <= MAX_OUTPUTS or outputs * num_nodes * BYTES_PER_OUTPUT > memory:
        raise RemoteProtocolError(
            f"the peer wants a model with {outputs} outputs for {num_nodes} nodes; expected at "
            f"least one, at most {MAX_OUTPUTS}, and no more than fit into this machine's memory"
        )


def roster_limits(ids: Ids, *, outputs: int) -> Limits:
    """Limits of the largest roster: every node once, each with label posteriors."""
    lengths = None if ids.are_integers else pc.call_function("binary_length", [ids.values])
    longest = _DIGITS if lengths is None else int(pc.max(lengths).as_py() or 0)
    frame = _HEAD + len(ids) * (4 + longest + 4 * outputs)
    return Limits(ids=len(ids), frame=min(frame, MAX_FRAME_BYTES))


def roster_nodes(data: DataHoldings, roster: Roster) -> Nodes:
    """Find the nodes of a roster: training, validation, test.

    Raises:
        RemoteProtocolError: an id is unknown or occurs twice, or training or validation is empty.
    """
    ids = roster.train + roster.val + roster.test
    nodes = data.ids.find_texts(ids)
    unknown = np.flatnonzero(nodes < 0)
    if len(unknown):
        raise RemoteProtocolError(
            f"the peer's roster has {len(unknown)} ids that are not nodes here "
            f"({first_three(ids[k] for k in unknown)}); "
            f"{_other_type(data.ids, [ids[k] for k in unknown])}"
        )
    if len(np.unique(nodes)) < len(nodes):
        raise RemoteProtocolError("the peer's roster contains an id twice")
    if not (roster.train and roster.val):
        raise RemoteProtocolError("the peer's roster has no training or no validation nodes")
    return nodes


def _other_type(own: Ids, unknown: Sequence[str]) -> str:
    """Say what to do about unknown ids: often one side has numbers, and the other one text."""
    are_numbers = [re.fullmatch(r"0|-?[1-9][0-9]*", text) is not None for text in unknown]
    if own.are_integers and not all(are_numbers):
        strange = unknown[are_numbers.index(False)]
        return (
            f"ids here are whole numbers, theirs are text such as '{strange}': prepare the same "
            f"column of ids on both sides (as text, 7, 07 and 7.0 are three ids)"
        )
    if not own.are_integers and all(are_numbers):
        return (
            "ids here are text, theirs look like whole numbers: prepare the same column of ids on "
            "both sides (as text, 7, 07 and 7.0 are three ids)"
        )
    return "`vesper align` lists them all"


def refuse_wrong_label_posteriors(roster: Roster, *, outputs: int, labels_are_shared: bool) -> None:
    """Refuse posteriors that the contract does not share, and rows that are not distributions.

    Messages are made of them, and one large row would move the mean of all.
    """
    expected = (len(roster.train) if labels_are_shared else 0, outputs)
    if roster.label_posteriors.shape != expected:
        raise RemoteProtocolError(
            f"expected label posteriors of shape {expected}, the peer sent "
            f"{roster.label_posteriors.shape}"
        )
    inside = (roster.label_posteriors >= 0) & (roster.label_posteriors <= 1)
    if not inside.all() or not np.allclose(roster.label_posteriors.sum(axis=1), 1, atol=1e-3):
        raise RemoteProtocolError(
            "expected label posteriors whose rows are distributions, the peer sent rows that are "
            "not"
        )


def physical_memory() -> int:
    """Return the physical memory of this machine in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


DoorOpener = Callable[[RunSpec], tuple[Door, RunSpec]]
"""Opens the door for a run spec; returns it with the run spec that the budget allows."""


@dataclass(frozen=True)
class DataOutcome:
    """What the data party has after a session."""

    run_spec: RunSpec
    door: Door
    data_side: Representation
    roster: Roster


def run_data_session(
    config: Config,
    data: DataHoldings,
    link: Link,
    *,
    door_opener: DoorOpener,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
    observer: SessionObserver = NO_OBSERVER,
) -> DataOutcome:
    """Run a session as the data party, up to but not including the peer's `Farewell`.

    Args:
        config: approved settings.
        data: graph and features.
        link: connection to the label party.
        door_opener: opens the door once the run spec is known.
        checkpoints: where the run resumes.
        observer: receives progress, epochs and warnings.
    """
    contract = contract_text(config)
    link.send(
        DataHello(
            version=PROTOCOL_VERSION,
            contract=contract,
            num_nodes=data.graph.num_nodes,
            num_features=data.features.shape[1],
        )
    )
    hello = link.expect(LabelHello)
    refuse_other_contract(hello, contract)
    refuse_outputs(hello.num_outputs, num_nodes=data.graph.num_nodes)
    link.set_wire_format(config.run.wire, seed=config.run.seed)
    roster = link.expect(Roster, roster_limits(data.ids, outputs=hello.num_outputs))
    nodes = roster_nodes(data, roster)
    refuse_wrong_label_posteriors(
        roster, outputs=hello.num_outputs, labels_are_shared=config.run.label_messages
    )
    sizes = PublicSizes(
        num_nodes=data.graph.num_nodes,
        num_train=len(roster.train),
        num_features=data.features.shape[1],
        num_classes=hello.num_outputs,
    )
    agreed = make_run_spec(config, sizes, num_val=len(roster.val), num_test=len(roster.test))
    door, agreed = door_opener(agreed)
    observer.agreed(agreed.noise_plan, agreed.schedule.max_work)
    run = agreed.config.run
    data_side = agreed.method.make_representation(
        agreed.config, sizes, noise_plan=agreed.noise_plan, features=data.features, door=door
    )
    party = DataParty(
        data_side,
        learning_rate=run.learning_rate,
        weight_decay=run.weight_decay,
        local_updates=run.local_updates,
    )
    party.receive_roster(
        nodes, roster.label_posteriors, num_nodes=data.graph.num_nodes, num_test=len(roster.test)
    )
    run_data_side(
        party, link, agreed.schedule, door=door, checkpoints=checkpoints, observer=observer
    )
    return DataOutcome(agreed, door, data_side, roster)
