import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.errors import InputError
from vesper.mechanism import label_response
from vesper.mechanism.label_response import respond
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.noise_span import BLOCK
from vesper.privacy.randomized_response import transition

DRAWS = 200_000


def p_value(counts: NDArray[np.int64], label: int, epsilon: float) -> float:
    """Chi-square of what was seen of one label against the claimed channel."""
    chances = transition(epsilon=epsilon, num_classes=len(counts))[label]
    return float(stats.chisquare(counts, chances / chances.sum() * DRAWS).pvalue)


@pytest.mark.parametrize(("num_classes", "epsilon"), [(2, 1.0), (5, 2.0), (47, 4.0)])
def test_the_channel_is_accepted_and_another_epsilon_is_rejected(
    num_classes: int, epsilon: float
) -> None:
    for label in (0, num_classes - 1):
        seen = respond(
            np.full(DRAWS, label),
            epsilon=epsilon,
            num_classes=num_classes,
            noise=NoiseSource.for_simulation(label),
        )
        counts = np.bincount(seen, minlength=num_classes)

        assert p_value(counts, label, epsilon) > 1e-3
        assert p_value(counts, label, 0.95 * epsilon) < 1e-6
        assert p_value(counts, label, 1.05 * epsilon) < 1e-6


def test_labels_are_drawn_apart_and_not_changed() -> None:
    labels = np.arange(3 * BLOCK) % 3
    before = labels.copy()
    source = NoiseSource.for_simulation(0)
    first = respond(labels, epsilon=1.0, num_classes=3, noise=source)
    second = respond(labels, epsilon=1.0, num_classes=3, noise=source)
    assert (labels == before).all()
    assert 0.3 < (first == second).mean() < 0.6  # 0.42 for independent draws
    assert set(first.tolist()) == {0, 1, 2}
    nobody = respond(labels[:0], epsilon=1.0, num_classes=3, noise=source)
    assert nobody.shape == (0,)


def test_words_beyond_the_last_multiple_are_thrown_away() -> None:
    class Script(NoiseSource):
        def __init__(self) -> None:
            self.left = [[2**64 - 1, 7], [9]]  # 2^64 - 1 is a multiple of 3, so the word is beyond

        def words(self, count: int) -> NDArray[np.uint64]:
            drawn = np.array(self.left.pop(0), dtype=np.uint64)
            assert len(drawn) == count
            return drawn

    source = Script()
    assert label_response._below(3, 2, source).tolist() == [0, 1]
    assert source.left == []


def test_what_is_no_label_is_refused() -> None:
    for labels in ([0, 3], [-1, 0]):
        with pytest.raises(InputError, match="classes from 0 to 2"):
            respond(
                np.array(labels), epsilon=1.0, num_classes=3, noise=NoiseSource.for_simulation(0)
            )
