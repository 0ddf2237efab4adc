"""The data party (A): encode, extract, charge, perturb. One batch, stop 2 of 5.

    begin_stage(k):  what the method does before stage k; releases are charged there, once
    release(roots):  embeddings of the roots, kept until their gradients come
    learn(grads):    an optimiser step, or several; in the certified plan gradients stop at released
                     values

What a method makes of nodes is its `Representation`; the certified one is the extractor below.

Next: src/vesper/model/pre.py
"""

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import RemoteProtocolError, VesperError
from vesper.party import state
from vesper.party.representation import Nodes, Representation, query_nodes_of
from vesper.protocol.messages import Embeddings, Gradients, Purpose
from vesper.protocol.tensor import digest_of_roots

DIVERGED_MESSAGE = (
    "training diverged: expected finite embeddings, got NaN or infinite ones; lower learning_rate"
)


class DataParty:
    """Holds a representation of the private graph; speaks in `Embeddings`.

    Args:
        representation: what the method makes of nodes.
        learning_rate: of Adam.
        weight_decay: of Adam.
        local_updates: optimiser steps with the gradients of one exchange.
    """

    def __init__(
        self,
        representation: Representation,
        *,
        learning_rate: float,
        weight_decay: float,
        local_updates: int = 1,
    ) -> None:
        self._representation, self._local_updates = representation, local_updates
        self._learning_rate, self._weight_decay = learning_rate, weight_decay
        self._roster: Nodes = np.zeros(0, dtype=np.int64)
        self._step = 0
        self._awaiting_gradients: Tensor | None = None
        self._roots: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def receive_roster(
        self,
        roster: Nodes,
        label_posteriors: NDArray[np.float32],
        *,
        num_nodes: int,
        num_test: int = 0,
    ) -> None:
        """Take the label party's roster: roots are rows of it, `roster[row]` is the node.

        Args:
            roster: the labelled nodes: training, validation, test.
            label_posteriors: what the training nodes say, (num_train, num_classes); no rows if labels stay.
            num_nodes: of the graph, labelled or not.
            num_test: how many of the roster, at its end, are test nodes.
        """
        self._roster = roster
        query_nodes = query_nodes_of(roster, num_test=num_test, num_nodes=num_nodes)
        self._representation.set_labels(
            roster[: len(label_posteriors)], label_posteriors, query_nodes
        )

    def begin_stage(self, stage: int) -> None:
        """Begin a stage with a fresh optimiser."""
        self._representation.begin_stage(stage)
        self._optimizer = torch.optim.Adam(
            self._representation.module.parameters(),
            lr=self._learning_rate,
            weight_decay=self._weight_decay,
            fused=True,  # one pass over the weights: half the time
        )
        self.save_best()

    def state_arrays(self) -> state.Arrays:
        """Everything that `load_state_arrays` needs, between two steps; released values are kept elsewhere."""
        return {
            **state.state_arrays(self._representation.module, self._optimizer),
            **state.with_prefix("kept", state.arrays_of(self._best_weights)),
            **state.with_prefix("representation", self._representation.state_arrays()),
            **state.with_prefix("fitted", self._representation.fitted_arrays()),
            "step": np.array(self._step),
        }

    def load_state_arrays(self, arrays: state.Arrays, *, stage: int) -> None:
        """Go on as if nothing had happened since `state_arrays` in this stage.

        Stages before have their final weights in the memory, so beginning them anew, with releases
        that were kept, makes the same inputs again. What was fitted, and found out by asking, is
        kept to: judged on another processor it might fall to the other side of a threshold.
        """
        if fitted := state.without_prefix(
            "fitted", arrays
        ):  # none in checkpoints of earlier versions
            self._representation.load_fitted(fitted)
        module = self._representation.module
        state.load_weights(module, state.weights_of(state.without_prefix("weights", arrays)))
        for each in range(stage + 1):
            self.begin_stage(each)
        state.load_state_arrays(module, self._optimizer, arrays)
        self._representation.load_state_arrays(state.without_prefix("representation", arrays))
        self._best_weights = state.weights_of(state.without_prefix("kept", arrays))
        self._step = int(arrays["step"])

    def save_best(self) -> None:
        """Keep the weights as they are: the label party has found them best so far."""
        self._best_weights = copy.deepcopy(self._representation.module.state_dict())

    def restore_best(self) -> None:
        """Go back to the weights kept last."""
        self._representation.module.load_state_dict(self._best_weights)

    def embed_batch(self, roots: NDArray[np.int64], *, purpose: Purpose) -> Embeddings:
        """Embed the roots; they are kept until their gradients come."""
        training = purpose is Purpose.TRAIN
        self._representation.module.train(training)
        with torch.set_grad_enabled(training):
            embeddings = self._embed(roots, training=training)
        if not bool(torch.isfinite(embeddings).all()):
            raise VesperError(DIVERGED_MESSAGE)
        self._awaiting_gradients, self._roots = embeddings if training else None, roots
        self._step += 1
        return Embeddings(
            step=self._step,
            purpose=purpose,
            roots_digest=digest_of_roots(roots),
            values=embeddings.detach().numpy(),  # (B, width, depth)
        )

    def learn(self, gradients: Gradients) -> None:
        """Step with the gradients of the embeddings sent last.

        Further local updates embed the same roots again, with the weights as they have become, and
        take the gradients as they came. What is embedded again is not sent.
        """
        if self._awaiting_gradients is None or gradients.step != self._step:
            raise RemoteProtocolError(f"step {gradients.step}: gradients without embeddings")
        if gradients.values.shape != tuple(self._awaiting_gradients.shape):
            raise RemoteProtocolError(
                f"step {gradients.step}: expected gradients of shape {tuple(self._awaiting_gradients.shape)}, "
                f"the peer sent {gradients.values.shape}"
            )
        received = torch.from_numpy(gradients.values.copy())  # (B, width, depth)
        embeddings, self._awaiting_gradients = self._awaiting_gradients, None
        for update in range(self._local_updates):
            if update > 0:
                embeddings = self._embed(self._roots, training=True)
            self._optimizer.zero_grad()
            torch.autograd.backward([embeddings], [received])
            self._optimizer.step()

    def _embed(self, roots: NDArray[np.int64], *, training: bool) -> Tensor:
        return self._representation.embed(self._roster[roots], training=training)
