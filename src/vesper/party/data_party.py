"""The data party: embeds nodes for the label party, and learns from the gradients that come back.

    begin_stage(k):      what the method does before stage k; releases are charged there, once
    embed_batch(roots):  embeddings of the roots, stored until their gradients arrive
    learn(gradients):    one or several optimiser steps; in the certified plan gradients stop at
                         released values

How nodes are embedded is up to the method's `Representation`.
"""

import copy

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import RemoteProtocolError, VesperError
from vesper.party import state
from vesper.party.representation import Nodes, Representation, query_nodes_of
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Embeddings, Gradients, Purpose

DIVERGED_MESSAGE = (
    "training diverged: expected finite embeddings, got NaN or infinite ones; lower learning_rate"
)


class DataParty:
    """Holds a representation of the private graph; sends `Embeddings` and receives `Gradients`.

    Args:
        representation: embeds nodes as the method defines.
        learning_rate: learning rate of Adam.
        weight_decay: weight decay of Adam.
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
        """Take the label party's roster: a root is a row of it, and `roster[row]` is the node.

        Args:
            roster: the nodes on the roster: training, validation, test.
            label_posteriors: (num_train, num_classes) label posteriors of the training nodes; no
                rows if labels are not shared.
            num_nodes: number of nodes of the graph, on the roster or not.
            num_test: number of test nodes, which are the end of the roster.
        """
        self._roster = roster
        query_nodes = query_nodes_of(roster, num_test=num_test, num_nodes=num_nodes)
        self._representation.set_labels(
            roster[: len(label_posteriors)], label_posteriors, query_nodes
        )

    def begin_stage(self, stage: int) -> None:
        """Start a stage with a new optimiser."""
        self._representation.begin_stage(stage)
        self._optimizer = torch.optim.Adam(
            self._representation.module.parameters(),
            lr=self._learning_rate,
            weight_decay=self._weight_decay,
            fused=True,  # one pass over the weights: half the time
        )
        self.save_best()

    def state_arrays(self) -> state.Arrays:
        """Return what `load_state_arrays` needs between two steps, except released values."""
        return {
            **state.state_arrays(self._representation.module, self._optimizer),
            **state.with_prefix("best", state.arrays_of(self._best_weights)),
            **state.with_prefix("representation", self._representation.state_arrays()),
            **state.with_prefix("fitted", self._representation.fitted_arrays()),
            "step": np.array(self._step),
        }

    def load_state_arrays(self, arrays: state.Arrays, *, stage: int) -> None:
        """Continue as if nothing had happened since `state_arrays` in this stage.

        Weights of earlier stages are final, so starting these stages again, with stored releases,
        makes the same inputs. Fitted constants and what the probe decided are loaded and not
        computed again: another processor might put a value on the other side of a threshold.
        """
        # Checkpoints of earlier versions have none.
        if fitted := state.without_prefix("fitted", arrays):
            self._representation.load_fitted(fitted)
        module = self._representation.module
        state.load_weights(module, state.weights_of(state.without_prefix("weights", arrays)))
        for each in range(stage + 1):
            self.begin_stage(each)
        state.load_state_arrays(module, self._optimizer, arrays)
        self._representation.load_state_arrays(state.without_prefix("representation", arrays))
        self._best_weights = state.weights_of(state.without_prefix("best", arrays))
        self._step = int(arrays["step"])

    def save_best(self) -> None:
        """Save the current weights: the label party found them the best so far."""
        self._best_weights = copy.deepcopy(self._representation.module.state_dict())

    def restore_best(self) -> None:
        """Restore the weights that were saved last."""
        self._representation.module.load_state_dict(self._best_weights)

    def embed_batch(self, roots: NDArray[np.int64], *, purpose: Purpose) -> Embeddings:
        """Embed the roots; the embeddings are stored until their gradients arrive."""
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

        Further local updates embed the same roots again with the updated weights, and reuse the
        gradients. These embeddings are not sent.
        """
        if self._awaiting_gradients is None or gradients.step != self._step:
            raise RemoteProtocolError(
                f"step {gradients.step}: the peer sent gradients that match no pending embeddings"
            )
        if gradients.values.shape != tuple(self._awaiting_gradients.shape):
            raise RemoteProtocolError(
                f"step {gradients.step}: expected gradients of shape "
                f"{tuple(self._awaiting_gradients.shape)}, the peer sent {gradients.values.shape}"
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
