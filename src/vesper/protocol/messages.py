"""Everything that may be sent between the parties. One batch, stop 4 of 5.

The set is closed: a value that is not a field here cannot be sent. Tensors carry only released or
edge-free values; their shapes depend on batch size and configuration, never on edges.

Next: src/vesper/party/label_party.py
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[np.float32]
WireTensor = Annotated[Tensor, "sent in the format of the contract: float32, or rounded"]
IdTexts = tuple[str, ...]


class Purpose(IntEnum):
    """What embeddings are for."""

    TRAIN = 0
    EVALUATE = 1


@dataclass(frozen=True, eq=False)
class DataHello:
    """Data to label, first message: protocol version, shared settings as text, public sizes."""

    version: int
    contract: str
    num_nodes: int
    num_features: int


@dataclass(frozen=True, eq=False)
class LabelHello:
    """Label to data, first message: version, shared settings, number of outputs of the model."""

    version: int
    contract: str
    num_outputs: int


@dataclass(frozen=True, eq=False)
class Roster:
    """Label to data: labelled ids by split, which are public in the threat model.

    `label_posteriors` has one row per training node, the node's label as class probabilities, which
    replaces the model's prediction in its messages. It has no rows if the contract keeps labels at
    the label party.
    """

    train: IdTexts
    val: IdTexts
    test: IdTexts
    label_posteriors: Tensor


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Data to label: embeddings of the roots of one step, (B, width, stages)."""

    step: int
    purpose: Purpose
    roots_digest: bytes
    values: WireTensor


@dataclass(frozen=True, eq=False)
class Gradients:
    """Label to data: gradient of the loss with respect to each embedding, (B, width, stages)."""

    step: int
    values: WireTensor


class Verdict(IntEnum):
    """Result of an evaluation at the label party: a function of released values."""

    CONTINUE = 0
    BEST = 1
    STOP = 2


@dataclass(frozen=True, eq=False)
class EvaluationReply:
    """Label to data: acknowledges embeddings to evaluate; says whether training continues."""

    step: int
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class SessionFinished:
    """Data to label: all steps of the contract are done."""


@dataclass(frozen=True, eq=False)
class Farewell:
    """Label to data: last message; neither side will send anything more."""


@dataclass(frozen=True, eq=False)
class EmbeddingServerHello:
    """Data to label, after training: which session made the model, and which graph is served.

    `snapshot` is a random name: it shows whether two answers are about one graph, nothing else.
    """

    version: int
    contract: str
    session: str
    snapshot: str


@dataclass(frozen=True, eq=False)
class EmbeddingClientHello:
    """Label to data, after training: version, contract, session, and the selected stage."""

    version: int
    contract: str
    session: str
    stage: int


@dataclass(frozen=True, eq=False)
class EmbeddingQuery:
    """Label to data: asks for embeddings of these nodes or, without ids, for the balance."""

    number: int
    ids: IdTexts


@dataclass(frozen=True, eq=False)
class QueryAnswer:
    """Data to label: embeddings, (known ids, width, stages), in the order of the query.

    Epsilons are those of the run that the answer comes from: what it may use, and what it has spent
    and left.
    """

    number: int
    epsilon: float
    delta: float
    spent_epsilon: float
    left_epsilon: float
    ids_digest: bytes
    unknown: IdTexts
    values: Tensor


Message = (
    DataHello
    | LabelHello
    | Roster
    | Embeddings
    | Gradients
    | EvaluationReply
    | SessionFinished
    | Farewell
    | EmbeddingServerHello
    | EmbeddingClientHello
    | EmbeddingQuery
    | QueryAnswer
)
