"""LinkTeller (Wu et al. 2022): change the features of one node and see whose prediction changes.

    score(u, v) = |p_u(x) - p_u(x with x_v changed)|  +  the same with u and v swapped

The attacker may query predictions as often as it likes, with features of its choice. If predictions
are computed from releases, a changed feature is in no release and changes only the node's own
prediction; a new release would be charged.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from vesper.attack.rerun import Rerun
from vesper.graph.edges import Pairs
from vesper.mechanism.sampled import LayerNoise, SampledGraph
from vesper.method.baselines.sampled import SampledMethod, SampledRepresentation, num_layers_of
from vesper.model.feature_scaling import FeatureScaling, Inputs
from vesper.simulation.recording import row_noise_of, set_row_noise

INFLUENCE_KNOWS = "predictions for any features"

STEP = 1.0
"""Change of each feature of a node, in standard deviations of the feature."""


@torch.no_grad()
def score_influence(run: Rerun, pairs: Pairs) -> NDArray[np.float64]:
    """Score each pair; (num_pairs,)."""
    if not isinstance(run.recorder.inner, SampledRepresentation):
        return np.zeros(len(pairs))  # no prediction depends on the current features of other nodes
    model = _QueriedModel(run)
    scores = np.zeros(len(pairs))
    ends = np.concatenate([pairs, pairs[:, ::-1]])  # queried node, changed node
    rows = np.tile(np.arange(len(pairs)), 2)
    for changed in np.unique(ends[:, 1]):
        here = ends[:, 1] == changed
        nodes, places = np.unique(ends[here, 0], return_inverse=True)
        moved = model.predict(nodes, changed=int(changed)) - model.predict(nodes, changed=None)
        np.add.at(scores, rows[here], np.linalg.norm(moved, axis=1)[places])
    return scores


class _QueriedModel:
    """The trained model, which can be queried with other features."""

    def __init__(self, run: Rerun) -> None:
        self._run, self._config = run, run.run_spec.config
        self._features = np.asarray(run.data.features, dtype=np.float32)
        self._scaling = FeatureScaling(run.data.features)
        noise = row_noise_of(run.recorder.inner)
        if noise is not None:  # every prediction gets fresh noise
            seed = self._config.run.seed
            set_row_noise(run.recorder.inner, LayerNoise(noise_std=noise.noise_std, seed=seed))
        self._unchanged = self._build(Inputs(self._features, self._scaling))

    def predict(self, nodes: NDArray[np.int64], *, changed: int | None) -> NDArray[np.float64]:
        """Class probabilities: (nodes, num_classes)."""
        queried = self._unchanged
        if changed is not None:
            features = self._features.copy()
            features[changed] += STEP * self._scaling.scale.numpy()
            queried = self._build(Inputs(features, self._scaling, max_bytes=0))
        trained = self._run.trained
        queried.module.eval()
        trained.label_side.module.eval()
        embeddings = queried.embed(nodes, training=False)
        scores = trained.label_side.decode(embeddings, trained.best_stage)
        probabilities: NDArray[np.float64] = scores.double().softmax(dim=1).numpy()
        return probabilities

    def _build(self, inputs: Inputs) -> SampledRepresentation:
        method, privacy = self._run.run_spec.method, self._config.privacy
        assert isinstance(method, SampledMethod)
        noisy = self._run.door.noisy_graphs
        graph = SampledGraph(
            noisy[0] if noisy else self._run.data.graph,
            aggregator=method.aggregator(self._config),
            num_layers=num_layers_of(self._config),
            max_degree=privacy.max_degree,
            min_degree=privacy.min_degree,
            seed=self._config.run.seed,
        )
        inner = self._run.recorder.inner
        assert isinstance(inner, SampledRepresentation)
        return SampledRepresentation(inner.module, inputs=inputs, graph=graph)
