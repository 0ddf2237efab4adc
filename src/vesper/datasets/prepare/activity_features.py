"""155 numbers that summarise one user's activity in one window, and nothing else.

    64 = 8 types x 8 numbers      count, amounts, active days, night share, recency
    24 = 4 channels x 6 numbers
    32 = 8 types x 4 channels     count
     6 + 7                        share of events in each four hours of the day, on each weekday
    22                            all activity together

Counts and amounts are signed logarithms, sign(x) log(1 + |x|); times are shares of the window or
logarithms of hours; all other features are shares between 0 and 1. Features of events that did not
happen are 0, so no value is ever missing or infinite. Days and hours are UTC.

`choose_slots` decides which types and channels get their own feature columns. The number of
features is fixed, but the words in the table are not: a wallet has top-ups, a bank has standing
orders. Types and channels each have a fixed number of slots. The most frequent words of the train
window take them, in alphabetical order. If there are more words than slots, the last slot is
`other`; if there are fewer, the spare slots are called `spare_1`, ... and their features are 0.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vesper.datasets.prepare.edge_free import normalise
from vesper.datasets.prepare.event_groups import (
    DAY,
    Floats,
    Ints,
    active_days_by,
    busiest_day_by,
    count_by,
    largest_by,
    ratio,
    signed_log,
    smallest_by,
    spread_by,
)

NUM_TYPES = 8
NUM_CHANNELS = 4
NUM_FEATURES = 155

_HOUR = 3_600
_NIGHT_ENDS = 6 * _HOUR
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TYPE_PARTS = "count share amount_sum amount_mean amount_max days night_share recency".split()
_CHANNEL_PARTS = "count share amount_sum amount_mean days night_share".split()
_WHOLE = (
    "event_count active_days type_variety channel_variety amount_sum amount_mean amount_spread "
    "amount_max amount_min round_amount_share night_share weekend_share first_event last_event "
    "gap_mean gap_max gap_min gap_spread busiest_day_count busiest_day_share type_entropy "
    "late_half_share"
).split()


def feature_names(types: tuple[str, ...], channels: tuple[str, ...]) -> list[str]:
    """Return the column names; repeated names get a number as suffix.

    Args:
        types: Names of the 8 type slots.
        channels: Names of the 4 channel slots.
    """
    names = [f"{kind}_{part}" for part in _TYPE_PARTS for kind in types]
    names += [f"channel_{channel}_{part}" for part in _CHANNEL_PARTS for channel in channels]
    names += [f"{kind}_{channel}_count" for kind in types for channel in channels]
    names += [f"hour_{start:02d}_{start + 4:02d}_share" for start in range(0, 24, 4)]
    names += [f"{day}_share" for day in _WEEKDAYS]
    unique: dict[str, None] = {}
    for name in names + _WHOLE:
        candidate, k = name, 2
        while candidate in unique:
            candidate, k = f"{name}_{k}", k + 1
        unique[candidate] = None
    return list(unique)


@dataclass(frozen=True)
class Events:
    """Activity of `num_nodes` nodes, ordered by node, then time, then everything else.

    The order is total, so floating-point sums are reproducible.

    Args:
        num_nodes: Number of nodes, including those without any event.
        node: (n,) int64, 0 <= node < num_nodes, ascending.
        seconds: (n,) int64, times.
        kind: (n,) int64, slot of the type.
        channel: (n,) int64, slot of the channel, -1 if there is none.
        amount: (n,) float64, NaN if there is none.
        start: (num_nodes,) int64, start of each node's window.
        stop: (num_nodes,) int64, end of each node's window.
    """

    num_nodes: int
    node: Ints
    seconds: Ints
    kind: Ints
    channel: Ints
    amount: Floats
    start: Ints
    stop: Ints


def summarise(events: Events) -> NDArray[np.float32]:
    """Compute all features: (num_nodes, 155)."""
    columns = [
        *_slot_features(events, events.kind, NUM_TYPES, with_extremes=True),
        *_slot_features(events, events.channel, NUM_CHANNELS, with_extremes=False),
        _crossed_counts(events),
        *_clock_shares(events),
        _whole_features(events),
    ]
    return np.concatenate(columns, axis=1).astype(np.float32)


def _slot_features(
    events: Events, slot: Ints, num_slots: int, *, with_extremes: bool
) -> list[Floats]:
    """Return one array per feature, each (num_nodes, num_slots)."""
    taken = slot >= 0
    node, seconds, amount = events.node[taken], events.seconds[taken], events.amount[taken]
    group = node * num_slots + slot[taken]  # (n,)
    size = events.num_nodes * num_slots
    paid = ~np.isnan(amount)
    count = count_by(group, size)
    amount_sum = count_by(group[paid], size, amount[paid])
    parts = [
        signed_log(count),
        ratio(count, np.repeat(count_by(events.node, events.num_nodes), num_slots)),
        signed_log(amount_sum),
        signed_log(ratio(amount_sum, count_by(group[paid], size))),
    ]
    if with_extremes:
        parts.append(signed_log(largest_by(group[paid], size, amount[paid])))
    parts += [
        signed_log(active_days_by(group, size, seconds)),
        ratio(count_by(group[seconds % DAY < _NIGHT_ENDS], size), count),
    ]
    if with_extremes:
        length = (events.stop - events.start).astype(np.float64)
        position = (seconds - events.start[node]) / length[node]  # 0 at the start of the window
        parts.append(largest_by(group, size, position))
    return [part.reshape(events.num_nodes, num_slots) for part in parts]


def _crossed_counts(events: Events) -> Floats:
    taken = events.channel >= 0
    cell = events.kind[taken] * NUM_CHANNELS + events.channel[taken]
    cells = NUM_TYPES * NUM_CHANNELS
    count = count_by(events.node[taken] * cells + cell, events.num_nodes * cells)
    return signed_log(count).reshape(events.num_nodes, cells)


def _clock_shares(events: Events) -> list[Floats]:
    total = count_by(events.node, events.num_nodes)[:, None]  # (num_nodes, 1)
    four_hours = events.seconds % DAY // (4 * _HOUR)
    weekday = (events.seconds // DAY + 3) % 7  # 1970-01-01 was a Thursday
    shares = []
    for part, parts in ((four_hours, 6), (weekday, 7)):
        count = count_by(events.node * parts + part, events.num_nodes * parts)
        shares.append(ratio(count.reshape(events.num_nodes, parts), total))
    return shares


def _whole_features(events: Events) -> Floats:
    """Compute the 22 features over all events of a node: (num_nodes, 22)."""
    n, node, seconds = events.num_nodes, events.node, events.seconds
    total = count_by(node, n)
    paid = ~np.isnan(events.amount)
    payer, amount = node[paid], events.amount[paid]
    payments = count_by(payer, n)
    amount_sum = count_by(payer, n, amount)
    kinds = count_by(node * NUM_TYPES + events.kind, n * NUM_TYPES).reshape(n, NUM_TYPES)
    used = events.channel >= 0
    channels = count_by(node[used] * NUM_CHANNELS + events.channel[used], n * NUM_CHANNELS)
    length = (events.stop - events.start).astype(np.float64)
    position = (seconds - events.start[node]) / length[node]  # (n,) 0 at the start, below 1
    follows = node[1:] == node[:-1]
    gap = np.log1p(np.diff(seconds)[follows] / _HOUR)
    gap_node = node[1:][follows]
    gaps = count_by(gap_node, n)
    days, busiest = active_days_by(node, n, seconds), busiest_day_by(node, n, seconds)
    surprise = np.log(np.maximum(ratio(total[:, None], kinds), 1.0))  # (num_nodes, 8) -log share
    entropy = (ratio(kinds, total[:, None]) * surprise).sum(axis=1)
    columns = [
        signed_log(total),
        signed_log(days),
        (kinds > 0).sum(axis=1) / NUM_TYPES,
        (channels.reshape(n, NUM_CHANNELS) > 0).sum(axis=1) / NUM_CHANNELS,
        signed_log(amount_sum),
        signed_log(ratio(amount_sum, payments)),
        spread_by(payer, n, signed_log(amount)),
        signed_log(largest_by(payer, n, amount)),
        signed_log(smallest_by(payer, n, amount)),
        ratio(count_by(payer[amount % 10 == 0], n), payments),
        ratio(count_by(node[seconds % DAY < _NIGHT_ENDS], n), total),
        ratio(count_by(node[(seconds // DAY + 3) % 7 >= 5], n), total),
        smallest_by(node, n, position),
        largest_by(node, n, position),
        ratio(count_by(gap_node, n, gap), gaps),
        largest_by(gap_node, n, gap),
        smallest_by(gap_node, n, gap),
        spread_by(gap_node, n, gap),
        signed_log(busiest),
        ratio(busiest, total),
        entropy,
        ratio(count_by(node[position >= 0.5], n), total),
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Vocabulary:
    """Slots of the words of a category.

    Args:
        slots: Name of each slot, as in feature names.
        slot_of: Slot number of each word, as spelled in the table.
    """

    slots: tuple[str, ...]
    slot_of: dict[str, int]


def choose_slots(words: Sequence[tuple[str, int]], *, num_slots: int, spare: str) -> Vocabulary:
    """Assign slots to the most frequent words; `Top-Up` and `top_up` count as one word.

    Args:
        words: Each word in the table with its count in the train window.
        num_slots: Number of slots.
        spare: Prefix of spare slot names.

    >>> choose_slots([("pay", 3), ("Log-In", 5), ("log in", 1)], num_slots=3, spare="type_").slots
    ('log_in', 'pay', 'type_spare_1')
    """
    normal = {word: normalise(word) or "unnamed" for word, _ in words}
    frequency: Counter[str] = Counter()
    for word, count in words:
        frequency[normal[word]] += count
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
        slot_of={word: number.get(name, num_slots - 1) for word, name in normal.items()},
    )
