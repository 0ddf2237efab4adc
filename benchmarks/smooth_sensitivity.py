"""Could noise shrink with the local sensitivity of a graph? The numbers of decision 0026.

    python -m benchmarks.smooth_sensitivity [FOLDER ...]

Prints, for max pooling of unit class messages (as S-MAX, floor 0), the largest smoothing parameter
that any (epsilon, delta) allows, and for every FOLDER with nodes.parquet and edges.parquet the
share of rows whose smooth sensitivity is below 0.9.

    LS_k(v)  = largest move of row v by one edge, after k other edges were changed
    S(v)     = max over k of exp(-beta k) LS_k(v)                noise of row v: noise_std S(v)
    beta     : N(0, I) and N(0, exp(2 beta) I) in 2 width dimensions are (epsilon, delta)-close

The last condition is necessary: one edge scales the noise of two rows. Sufficient conditions ask
for much more. So the S(v) printed here are too small, in favour of smooth sensitivity.

A row of such messages says which classes are among the neighbours. One edge moves it by 1 unless
every class is there twice, and with one class there fewer than k + 2 times, after k changes.
"""

import argparse
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc

Counts = NDArray[np.int64]

EPSILON, DELTA = 4.0, 1e-6


def dilation_delta(beta: float, *, dimensions: int, epsilon: float) -> float:
    """Delta at epsilon of N(0, I) against N(0, exp(2 beta) I), the worse of both directions."""
    variance = math.exp(2 * beta)
    precision = 1 - 1 / variance
    half = dimensions / 2
    # log p/q = n beta - precision |x|^2 / 2 under the narrow law; its square length has n degrees.
    inner = max((dimensions * beta - epsilon) * 2 / precision, 0.0)
    narrow = float(
        gammainc(half, inner / 2) - math.exp(epsilon) * gammainc(half, inner / 2 / variance)
    )
    outer = (dimensions * beta + epsilon) * 2 / precision
    wide = float(
        gammaincc(half, outer / 2 / variance) - math.exp(epsilon) * gammaincc(half, outer / 2)
    )
    return max(narrow, wide, 0.0)


def largest_beta(width: int, *, epsilon: float = EPSILON, delta: float = DELTA) -> float:
    """Largest smoothing parameter for which scaling the noise of two rows is still private."""
    low, high = 1e-9, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        if dilation_delta(middle, dimensions=2 * width, epsilon=epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def gaussian_of_nissim(
    width: int, *, rows: int, epsilon: float, delta: float
) -> tuple[float, float]:
    """Beta and noise multiplier of the published Gaussian calibration, for all rows at once.

    beta = epsilon / (4 (n + ln(2 / delta))), noise 5 sqrt(2 ln(2 / delta)) / epsilon (Nissim et
    al. 2007, lemma 2.7 and 2.9), in n = rows x width dimensions.
    """
    log = math.log(2 / delta)
    return epsilon / (4 * (rows * width + log)), 5 * math.sqrt(2 * log) / epsilon


def class_counts(folder: Path) -> Counts:
    """Count the classes among the neighbours of each node: (num_nodes, num_classes)."""
    nodes = pq.read_table(folder / "nodes.parquet", columns=["id", "label"])
    edges = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
    ids = nodes["id"].to_numpy()
    labels = nodes["label"].to_numpy(zero_copy_only=False)
    labels = np.nan_to_num(labels.astype(float), nan=-1).astype(np.int64)
    order = np.argsort(ids)
    ends = [
        order[np.searchsorted(ids, edges[name].to_numpy(), sorter=order)] for name in ("src", "dst")
    ]
    counts = np.zeros((len(ids), labels.max() + 1), dtype=np.int64)
    for receivers, senders in (ends, ends[::-1]):
        known = labels[senders] >= 0
        np.add.at(counts, (receivers[known], labels[senders][known]), 1)
    return counts


def smooth_sensitivity(counts: Counts, beta: float) -> NDArray[np.float64]:
    """S(v) of max pooling of unit class messages."""
    changes = np.maximum(counts.min(axis=1) - 1, 0)  # until one class is there at most once
    smooth: NDArray[np.float64] = np.exp(-beta * changes)
    return smooth


def shares(counts: Counts, beta: float) -> tuple[float, float]:
    """Share of rows with S(v) < 0.9, and share of those that show anything but every class."""
    small = smooth_sensitivity(counts, beta) < 0.9
    informative = (counts[small] == 0).any(axis=1)
    return float(small.mean()), float(informative.mean()) if small.any() else 0.0


def main() -> None:
    """Print the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    request = parser.parse_args()
    for width in (5, 6, 7, 16, 64):
        beta, factor = gaussian_of_nissim(width, rows=15_374, epsilon=EPSILON, delta=DELTA)
        print(
            f"width {width}: beta at most {largest_beta(width):.3f} per row; "
            f"published, all rows: {beta:.1e}, noise {factor:.2f}"
        )
    for folder in request.folders:
        counts = class_counts(folder)
        beta = largest_beta(counts.shape[1])
        small, informative = shares(counts, beta)
        print(
            f"{folder.name}: {counts.shape[1]} classes, beta {beta:.3f}, S < 0.9 in "
            f"{100 * small:.2f} % of rows, of which {100 * informative:.2f} % lack a class"
        )


if __name__ == "__main__":
    main()
