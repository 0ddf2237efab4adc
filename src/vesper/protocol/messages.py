"""Everything that may cross between the parties. One batch, stop 4 of 5.

The set is closed: a value that is not a field here has no way out. Tensors carry released or
edge-free values only; shapes depend on batch size and configuration, never on edges.

Next: src/vesper/party/label_party.py
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

Tensor = NDArray[np.float32]
WireTensor = Annotated[Tensor, "crosses as the contract says: float32, or rounded"]
IdTexts = tuple[str, ...]


class Purpose(IntEnum):
    """What the label party is to do with embeddings."""

    TRAIN = 0
    EVALUATE = 1


@dataclass(frozen=True, eq=False)
class DataHello:
    """First word of the data party: protocol version, shared settings as text, public sizes."""

    version: int
    contract: str
    num_nodes: int
    num_features: int


@dataclass(frozen=True, eq=False)
class LabelHello:
    """First word of the label party: the same, and how many outputs a model needs."""

    version: int
    contract: str
    num_outputs: int


@dataclass(frozen=True, eq=False)
class Roster:
    """Label to data: which ids are labelled, by split. Public by the threat model.

    `label_posteriors` is what training nodes say to their neighbours instead of the model's guess: their
    labels, one row a training node; no rows when the contract keeps labels at the label party.
    """

    train: IdTexts
    val: IdTexts
    test: IdTexts
    label_posteriors: Tensor


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Data to label: released representations of the roots of one step, (B, width, stages)."""

    step: int
    purpose: Purpose
    roots_digest: bytes
    values: WireTensor


@dataclass(frozen=True, eq=False)
class Gradients:
    """Label to data: gradient of the loss by each embedding, (B, width, stages)."""

    step: int
    values: WireTensor


class Verdict(IntEnum):
    """What the label party says after it has evaluated: a function of released values."""

    CONTINUE = 0
    BEST = 1
    STOP = 2


@dataclass(frozen=True, eq=False)
class EvaluationReply:
    """Label to data: embeddings to evaluate have arrived, and whether training should go on."""

    step: int
    verdict: Verdict


@dataclass(frozen=True, eq=False)
class SessionFinished:
    """Data to label: the contract is fulfilled."""


@dataclass(frozen=True, eq=False)
class Farewell:
    """Label to data: so it is; nothing more will come from either side."""


@dataclass(frozen=True, eq=False)
class EmbeddingServerHello:
    """Data to label, after training: whose model this is, and of which graph it answers.

    `snapshot` is a random name: it says whether two answers are of one graph, and nothing else.
    """

    version: int
    contract: str
    session: str
    snapshot: str


@dataclass(frozen=True, eq=False)
class EmbeddingClientHello:
    """Label to data, after training: the same, and which stage validation chose."""

    version: int
    contract: str
    session: str
    stage: int


@dataclass(frozen=True, eq=False)
class EmbeddingQuery:
    """Label to data: what are these nodes like? Without ids: what is left of the budget?"""

    number: int
    ids: IdTexts


@dataclass(frozen=True, eq=False)
class QueryReply:
    """What every reply says: which query it is to, and the budget of the graph after it."""

    number: int
    epsilon: float
    delta: float
    spent_epsilon: float
    left_epsilon: float


@dataclass(frozen=True, eq=False)
class QueryAnswer(QueryReply):
    """Data to label: released representations, (known ids, width, stages), in the order asked."""

    ids_digest: bytes
    unknown: IdTexts
    values: Tensor


@dataclass(frozen=True, eq=False)
class QueryRefusal(QueryReply):
    """Data to label: the budget does not allow what an answer would need."""

    reason: str


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
    | QueryRefusal
)
