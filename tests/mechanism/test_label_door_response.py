import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from vesper.errors import InputError
from vesper.mechanism import label_door
from vesper.mechanism.label_door import Words, respond
from vesper.mechanism.noise.noise_source import DRAWS_PER_BLOCK, NoiseSource
from vesper.privacy.accounting.randomized_response import transition

DRAWS = 200_000


def words_of(seed: int) -> Words:
    noise = NoiseSource.for_simulation(seed)
    return lambda rows: noise.words(len(rows))


def p_value(counts: NDArray[np.int64], label: int, epsilon: float) -> float:
    """Chi-square test of the responses to one label against the claimed channel."""
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
            words=words_of(label),
        )
        counts = np.bincount(seen, minlength=num_classes)

        assert p_value(counts, label, epsilon) > 1e-3
        assert p_value(counts, label, 0.95 * epsilon) < 1e-6
        assert p_value(counts, label, 1.05 * epsilon) < 1e-6


def test_responses_are_independent_and_labels_unchanged() -> None:
    labels = np.arange(3 * DRAWS_PER_BLOCK) % 3
    before = labels.copy()
    words = words_of(0)
    first = respond(labels, epsilon=1.0, num_classes=3, words=words)
    second = respond(labels, epsilon=1.0, num_classes=3, words=words)
    assert (labels == before).all()
    assert 0.3 < (first == second).mean() < 0.6  # 0.42 for independent draws
    assert set(first.tolist()) == {0, 1, 2}
    empty = respond(labels[:0], epsilon=1.0, num_classes=3, words=words)
    assert empty.shape == (0,)


def test_words_beyond_the_last_multiple_are_rejected() -> None:
    scripted_words = [[2**64 - 1, 7], [9]]  # 2^64 - 1 is a multiple of 3, so the word is beyond
    requests = []

    def script(rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        requests.append(rows.tolist())
        return np.array(scripted_words.pop(0), dtype=np.uint64)

    assert label_door._uniform_below(3, np.array([4, 6]), script).tolist() == [0, 1]
    assert (scripted_words, requests) == ([], [[4, 6], [4]])


def test_labels_that_are_not_classes_are_refused() -> None:
    for labels in ([0, 3], [-1, 0]):
        with pytest.raises(InputError, match="classes from 0 to 2"):
            respond(np.array(labels), epsilon=1.0, num_classes=3, words=words_of(0))
