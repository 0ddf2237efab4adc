"""Rows of one length: the fourth verb of a message-passing layer.

normalized[v] = norm row[v] / ||row[v]||_2,    and 0 for a zero row
"""

import numpy as np

from vesper.errors import InputError, first_three
from vesper.mechanism.weights import Floats
from vesper.privacy.expect import expect_positive


def normalize_rows(rows: Floats, *, norm: float = 1.0) -> Floats:
    """Scale each row to length `norm`; (num_nodes, width) to the same.

    | row | result |
    | --- | --- |
    | zero, as ReLU makes it | zero; the paper divides by 0 |
    | so short that its square underflows | length `norm` |
    | NaN or infinite | InputError |

    >>> normalize_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    expect_positive("norm", norm)
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(broken):
        raise InputError(
            f"rows: expected finite numbers, got {len(broken)} rows without "
            f"({first_three(broken)}); the model that makes them has diverged"
        )
    largest = np.abs(rows).max(axis=1, initial=0.0)[:, None]  # (num_nodes, 1)
    safe = rows / np.where(largest > 0, largest, 1.0)  # entries in [-1, 1]: no square underflows
    lengths = np.sqrt(np.square(safe).sum(axis=1))[:, None]  # (num_nodes, 1)
    scaled: Floats = norm * safe / np.where(lengths > 0, lengths, 1.0)
    return scaled
