"""Raw features reach the encoder as they are."""

import numpy as np
import torch

from vesper.model.feature_scaling import FeatureScaling, Inputs


def test_raw_features_are_not_changed() -> None:
    features = np.array([[1.0, -300.0], [2.0, 5.0], [4.0, 7.0]], dtype=np.float32)
    scaling = FeatureScaling(features, raw=True)
    assert scaling.width == 2
    rows = Inputs(features, scaling).rows(np.array([2, 0]))
    assert torch.equal(rows, torch.from_numpy(features[[2, 0]]))
