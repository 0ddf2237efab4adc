"""Which types and channels of activity get feature columns of their own.

The number of features is fixed, the words in the table are not: a wallet has top-ups, a bank has
standing orders. Each kind of word has a fixed number of slots. The most frequent words of the train
window take them, in alphabetical order; when there are more words than slots, the last slot is
`other`; when there are fewer, the spare slots are called `spare_1`, ... and their features are 0.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from vesper.datasets.prepare.edge_free import normalise


@dataclass(frozen=True)
class Vocabulary:
    """Words and the slots they go to.

    Args:
        slots: Name of each slot, as it appears in feature names.
        slot_of: Slot number of each word, as written in the table.
    """

    slots: tuple[str, ...]
    slot_of: dict[str, int]


def choose_slots(words: Sequence[tuple[str, int]], *, num_slots: int, spare: str) -> Vocabulary:
    """Give slots to the most frequent words; spellings such as `Top-Up` and `top_up` are one word.

    Args:
        words: Each word in the table with how often the train window has it.
        num_slots: How many slots there are.
        spare: Prefix for slots that no word takes.

    >>> choose_slots([("pay", 3), ("Log-In", 5), ("log in", 1)], num_slots=3, spare="type_").slots
    ('log_in', 'pay', 'type_spare_1')
    """
    spelled = {word: normalise(word) or "unnamed" for word, _ in words}
    frequency: Counter[str] = Counter()
    for word, count in words:
        frequency[spelled[word]] += count
    ranked = sorted(frequency, key=lambda name: (-frequency[name], name))
    if len(ranked) <= num_slots:
        slots = sorted(ranked)
        slots += [f"{spare}spare_{k}" for k in range(1, num_slots - len(slots) + 1)]
    else:
        named = [name for name in ranked if name != "other"]
        slots = [*sorted(named[: num_slots - 1]), "other"]
    number = {name: k for k, name in enumerate(slots)}
    return Vocabulary(
        slots=tuple(slots),
        slot_of={word: number.get(name, num_slots - 1) for word, name in spelled.items()},
    )
