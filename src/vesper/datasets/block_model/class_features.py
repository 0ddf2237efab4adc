"""Features that show the class of some nodes better than of others: a Gaussian mixture.

    x_v = family centre + class centre + subcluster centre + noise_v * N(0, I)

The centres are Gaussian with standard deviations `family_std`, `class_std`, `subcluster_std` per
coordinate; a class has `num_subclusters`, and every node lies in one of them. `noise_v` is
lognormal with median 1, so the features describe some nodes well and others badly.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.progress import Progress, no_progress

ROWS_AT_ONCE = 1 << 16


@dataclass(frozen=True, kw_only=True)
class FeatureModel:
    """Distances between classes in feature space, and the noise around them."""

    num_features: int
    num_subclusters: int
    family_std: float
    class_std: float
    subcluster_std: float
    noise_log_std: float

    def centres(self, families: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float32]:
        """Draw one centre per subcluster: `(classes, subclusters, features)`."""
        width = self.num_features
        family = rng.normal(0.0, self.family_std, (int(families.max()) + 1, width))
        of_class = rng.normal(0.0, self.class_std, (len(families), width))
        shape = (len(families), self.num_subclusters, width)
        of_subcluster = rng.normal(0.0, self.subcluster_std, shape)
        return ((family[families] + of_class)[:, None, :] + of_subcluster).astype(np.float32)

    def draw(
        self,
        labels: NDArray[np.int32],
        families: NDArray[np.int64],
        rng: np.random.Generator,
        progress: Progress = no_progress,
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the features of all nodes in order, `ROWS_AT_ONCE` rows at a time."""
        centres = self.centres(families, rng)
        for first in range(0, len(labels), ROWS_AT_ONCE):
            chunk = labels[first : first + ROWS_AT_ONCE]
            subclusters = rng.integers(self.num_subclusters, size=len(chunk))
            noise = rng.lognormal(0.0, self.noise_log_std, size=(len(chunk), 1))
            x = rng.standard_normal((len(chunk), self.num_features), dtype=np.float32)
            x *= noise.astype(np.float32)
            x += centres[chunk, subclusters]
            yield x
            progress("features", first + len(chunk), len(labels))
