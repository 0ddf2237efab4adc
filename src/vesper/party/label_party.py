"""The label party: decodes embeddings, computes the loss and returns gradients.

    learn(embeddings):    loss of decoder(embeddings) against the labels of the roots; one step of
                          the decoder; the gradient of the loss for each embedding is returned
    run_local_updates():  more steps of the decoder on the same embeddings, while gradients travel
    score(embeddings):    the decoder's output, for evaluation
    verdict_of(scores):   are these the best so far on validation nodes?
    select_stage():       the stage that validation chooses becomes the model

It sees embeddings, which are released values, and labels. It never sees an edge.
"""

import copy
import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import RemoteProtocolError, VesperError
from vesper.model.decoders import Decoder
from vesper.model.objective import Objective
from vesper.party import state
from vesper.party.stage_selection import StageResult, select_stage
from vesper.protocol.fields import digest_of_roots
from vesper.protocol.messages import Embeddings, Gradients, Verdict

DIVERGED_MESSAGE = (
    "training diverged: expected a finite loss and finite scores; lower learning_rate"
)


class LabelParty:
    """Holds labels and decoder; receives `Embeddings` and sends `Gradients`.

    Args:
        objective: holds the labels, and defines the loss and the metric.
        decoder: turns embeddings into scores.
        learning_rate: learning rate of Adam.
        weight_decay: weight decay of Adam.
        patience: epochs without a better metric before a stage ends.
        local_updates: optimiser steps on the embeddings of one exchange.
        keep_last: keep the weights of the last epoch, whatever validation says.
    """

    def __init__(
        self,
        objective: Objective,
        decoder: Decoder,
        *,
        learning_rate: float,
        weight_decay: float,
        patience: int,
        local_updates: int = 1,
        keep_last: bool = False,
    ) -> None:
        self._objective, self._decoder, self._patience = objective, decoder, patience
        self._learning_rate, self._weight_decay = learning_rate, weight_decay
        self._local_updates, self._keep_last = local_updates, keep_last
        self._last_batch: tuple[Tensor, NDArray[np.int64]] | None = None
        self.last_loss = self.last_metric = self.best_metric = float("nan")
        self._stage = 0
        self._stage_results: list[StageResult] = []  # one per finished stage
        self._validation_rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.chosen_stage = 0

    def begin_stage(self, stage: int) -> None:
        """Start a stage with a new optimiser; scores are those of this stage from now on."""
        self._stage = stage
        self.best_metric, self._epochs_without_gain = -math.inf, 0
        self._optimizer = torch.optim.Adam(
            self._decoder.module.parameters(),
            lr=self._learning_rate,
            weight_decay=self._weight_decay,
            fused=True,  # one pass over the weights: half the time
        )
        self._best_weights = copy.deepcopy(self._decoder.module.state_dict())
        self._best_scores = np.zeros((0, 0), dtype=np.float32)

    def state_arrays(self) -> state.Arrays:
        """Return everything that `load_state_arrays` needs between two steps."""
        arrays = {
            **state.state_arrays(self._decoder.module, self._optimizer),
            **state.with_prefix("best", state.arrays_of(self._best_weights)),
            "best_scores": self._best_scores,
            "validation_rows": self._validation_rows,
            "best_metric": np.array(self.best_metric),
            "epochs_without_gain": np.array(self._epochs_without_gain),
        }
        for stage, result in enumerate(self._stage_results):
            arrays |= state.with_prefix(f"finished/{stage}", state.arrays_of(result.weights))
            arrays[f"metric/{stage}"] = np.array(result.metric)
            arrays[f"scores/{stage}"] = result.scores
        return arrays

    def load_state_arrays(self, arrays: state.Arrays, *, stage: int) -> None:
        """Continue as if nothing had happened since `state_arrays` in this stage."""
        self.begin_stage(stage)
        state.load_state_arrays(self._decoder.module, self._optimizer, arrays)
        self._best_weights = state.weights_of(state.without_prefix("best", arrays))
        self._best_scores, self._validation_rows = arrays["best_scores"], arrays["validation_rows"]
        self.best_metric, self._epochs_without_gain = (
            float(arrays["best_metric"]),
            int(arrays["epochs_without_gain"]),
        )
        self._stage_results = [
            StageResult(
                metric=float(arrays[f"metric/{each}"]),
                weights=state.weights_of(state.without_prefix(f"finished/{each}", arrays)),
                scores=arrays[f"scores/{each}"],
            )
            for each in range(len(state.without_prefix("metric", arrays)))
        ]

    def verdict_of(self, scores: NDArray[np.float64], roots: NDArray[np.int64]) -> Verdict:
        """Decide whether validation has improved, or has not improved for too long."""
        metric = self.last_metric = self._objective.evaluate(scores, roots)
        if self._keep_last or metric > self.best_metric:
            self.best_metric, self._epochs_without_gain = metric, 0
            self._best_weights = copy.deepcopy(self._decoder.module.state_dict())
            self._best_scores, self._validation_rows = scores.astype(np.float32), roots
            return Verdict.BEST
        self._epochs_without_gain += 1
        return Verdict.STOP if self._epochs_without_gain >= self._patience else Verdict.CONTINUE

    def restore_best(self) -> None:
        """End a stage: restore the weights that were best on validation."""
        self._decoder.module.load_state_dict(self._best_weights)
        self._stage_results.append(
            StageResult(
                metric=self.best_metric, weights=self._best_weights, scores=self._best_scores
            )
        )

    def evaluate(self, scores: NDArray[np.float64], roots: NDArray[np.int64]) -> float:
        """Return the metric of the scores of these roots."""
        return self._objective.evaluate(scores, roots)

    def select_stage(self) -> int:
        """Choose a stage by validation, and decode with it from now on."""
        self._stage = select_stage(
            self._stage_results,
            self._validation_rows,
            self._objective.evaluate,
            effective_rows=self._objective.effective_rows(self._validation_rows),
        )
        self._decoder.module.load_state_dict(self._stage_results[self._stage].weights)
        self.chosen_stage = self._stage
        return self._stage

    def chosen_validation_scores(self) -> NDArray[np.float64]:
        """Return the scores of the chosen stage on validation nodes, in the roster's order."""
        scores = self._stage_results[self.chosen_stage].scores
        return scores[np.argsort(self._validation_rows, kind="stable")].astype(np.float64)

    def learn(self, embeddings: Embeddings, roots: NDArray[np.int64]) -> Gradients:
        """Take one step, and return the gradient for each embedding."""
        values = self._checked(embeddings, roots).requires_grad_()  # (B, width, depth)
        self._update(values, roots)
        gradient, self._last_batch = values.grad, (values.detach(), roots)
        assert gradient is not None
        if not bool(torch.isfinite(gradient).all()):
            raise VesperError(DIVERGED_MESSAGE)
        return Gradients(step=embeddings.step, values=gradient.numpy())

    def run_local_updates(self) -> None:
        """Take the other local updates of this exchange; their gradients are not sent."""
        if self._last_batch is not None:
            for _ in range(self._local_updates - 1):
                self._update(*self._last_batch)
            self._last_batch = None

    def _update(self, values: Tensor, roots: NDArray[np.int64]) -> None:
        self._decoder.module.train()
        scores = self._decoder.decode(values, self._stage)  # (members * B, outputs)
        members = len(scores) // len(roots)
        loss = members * self._objective.loss(scores, np.tile(roots, members))
        if not bool(torch.isfinite(loss)):
            raise VesperError(DIVERGED_MESSAGE)
        self._optimizer.zero_grad()
        torch.autograd.backward([loss])
        self._optimizer.step()
        self.last_loss = loss.item()

    def progress_note(self) -> str:
        """Return loss and best metric so far, as text for progress reports."""
        best = self.best_metric  # not finite before the first validation
        metric = f"{self._objective.metric} {best:.2f}" if math.isfinite(best) else ""
        loss = f"loss {self.last_loss:.3f}" if math.isfinite(self.last_loss) else ""
        return "  ".join(part for part in (loss, metric) if part)

    @torch.no_grad()
    def score(self, embeddings: Embeddings, roots: NDArray[np.int64]) -> NDArray[np.float64]:
        """Decode without learning: (B, outputs)."""
        self._decoder.module.eval()
        scores = self._decoder.decode(self._checked(embeddings, roots), self._stage)
        if not bool(torch.isfinite(scores).all()):
            raise VesperError(DIVERGED_MESSAGE)
        return scores.double().numpy()

    def _checked(self, embeddings: Embeddings, roots: NDArray[np.int64]) -> Tensor:
        """Refuse embeddings of other roots than these, in another order, or of another shape."""
        if embeddings.roots_digest != digest_of_roots(roots):
            raise RemoteProtocolError(
                f"step {embeddings.step}: the peer sent embeddings of other roots than expected"
            )
        expected = (len(roots), *self._decoder.embedding_shape)
        if embeddings.values.shape != expected:
            raise RemoteProtocolError(
                f"step {embeddings.step}: expected embeddings of shape {expected}, the peer sent "
                f"{embeddings.values.shape}"
            )
        return torch.from_numpy(embeddings.values.copy())
