"""The paper's training configurations, one a dataset.

| preset | hidden units | epochs | learning rate | D | D_min |
| --- | --- | --- | --- | --- | --- |
| products | 128 | 5 | 0.001 | 20 | 10 |
| reddit | 512 | 5 | 0.001 | 20 | 10 |
| finance | 256 | 2 | 0.001 | 10 | 3 |

Where the paper tunes D and D_min over a range, the first value of the range. It gives no batch size
for its main table; 256 lies in the middle of its ablation.
"""

from collections.abc import Mapping
from typing import Any

from vesper.errors import InputError

PAPER: Mapping[str, Any] = {
    "learning_rate": 0.001,
    "batch_size": 256,
    "patience": 5,
    "weight_decay": 0.0,
    "dropout": 0.0,
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "products": {**PAPER, "width": 128, "epochs": 5, "max_degree": 20, "min_degree": 10},
    "reddit": {**PAPER, "width": 512, "epochs": 5, "max_degree": 20, "min_degree": 10},
    "finance": {**PAPER, "width": 256, "epochs": 2, "max_degree": 10, "min_degree": 3},
}


def find_preset(name: str) -> Mapping[str, Any]:
    """Give the settings of a preset."""
    if name not in PRESETS:
        raise InputError(f"--preset: expected one of {', '.join(PRESETS)}, got '{name}'")
    return PRESETS[name]
