import pickle
from itertools import pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from vesper.errors import InputError
from vesper.mechanism.noise.noise_source import (
    COUNTS_PER_TIE,
    DRAWS_PER_BLOCK,
    TIE_STREAM_START,
    NoiseSource,
    NoiseSpan,
)

KEY = bytes(range(32))
COUNT = 2 * DRAWS_PER_BLOCK + 5


def block_of_cipher(key: bytes, counts: int) -> list[int]:
    """Slow reference: one block of the cipher is two words."""
    encryptor = Cipher(AES(key), ECB()).encryptor()
    block = encryptor.update(counts.to_bytes(16, "big"))
    return [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]


@pytest.mark.parametrize("start", [0, 1, 6, 7])
def test_words_are_those_of_the_cipher_from_start(start: int) -> None:
    stream = [word for counts in range(10) for word in block_of_cipher(KEY, counts)]
    assert NoiseSpan(KEY, start=start, count=9).words().tolist() == stream[start : start + 9]


def test_words_for_a_tie_come_from_a_stream_of_the_entry() -> None:
    span = NoiseSpan(KEY, start=11, count=3)
    further = span._further_words(2)
    counts = TIE_STREAM_START + COUNTS_PER_TIE * 13
    assert [further() for _ in range(4)] == [
        *block_of_cipher(KEY, counts),
        *block_of_cipher(KEY, counts + 1),
    ]


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize(
    "cuts",
    [
        [1],
        [2, 3],
        [DRAWS_PER_BLOCK - 1, DRAWS_PER_BLOCK + 2],
        [7, DRAWS_PER_BLOCK, 2 * DRAWS_PER_BLOCK + 4],
    ],
)
def test_an_entry_gets_the_same_noise_whoever_draws_it(start: int, cuts: list[int]) -> None:
    span = NoiseSpan(KEY, start=start, count=COUNT)
    whole = np.zeros(COUNT, dtype=np.int32)
    span.add_gaussian_to(whole, scale=20.0)
    ends = [0, *cuts, COUNT]
    parts = [np.zeros(b - a, dtype=np.int32) for a, b in pairwise(ends)]
    copy = pickle.loads(pickle.dumps(span))
    for first, part in reversed(list(zip(ends, parts, strict=False))):
        copy.add_gaussian_to(part, scale=20.0, first=first)
    assert np.array_equal(np.concatenate(parts), whole)


def test_each_span_of_a_source_has_its_own_bits() -> None:
    source, whole = NoiseSource.for_simulation(1), NoiseSource.for_simulation(1)
    spans = [source.span(count) for count in (3, 4, 2)]
    assert np.concatenate([span.words() for span in spans]).tolist() == whole.words(9).tolist()
    private = NoiseSource.from_os()
    keys = {private.span(3).key for _ in range(5)}
    assert len(keys) == 5


def test_entries_outside_the_span_are_refused() -> None:
    span = NoiseSpan(KEY, start=0, count=4)
    for first, size in ((0, 5), (4, 1), (-1, 2)):
        with pytest.raises(InputError, match="Expected entries within a release of 4"):
            span.add_gaussian_to(np.zeros(size, dtype=np.int32), scale=5.0, first=first)


def test_the_key_is_not_in_the_repr() -> None:
    assert repr(NoiseSpan(KEY, start=0, count=4)) == "NoiseSpan(start=0, count=4)"
