import numpy as np
import pytest

from vesper.datasets.prepare.activity_features import NUM_FEATURES, Events, feature_names, summarise

DAY, HOUR = 86_400, 3_600
TYPES = (
    "bill",
    "cash_out",
    "login",
    "payment",
    "support",
    "top_up",
    "type_spare_1",
    "type_spare_2",
)
CHANNELS = ("mobile", "terminal", "web", "spare_1")
NAMES = feature_names(TYPES, CHANNELS)
MONDAY = 4 * DAY  # 1970-01-05


def events_of(
    rows: list[tuple[int, int, str, str | None, float]], *, num_nodes: int, days: int = 28
) -> Events:
    """Rows of (node, seconds since the window's start, type, channel, amount or NaN), in order."""
    return Events(
        num_nodes=num_nodes,
        node=np.array([row[0] for row in rows], dtype=np.int64),
        seconds=np.array([MONDAY + row[1] for row in rows], dtype=np.int64),
        kind=np.array([TYPES.index(row[2]) for row in rows], dtype=np.int64),
        channel=np.array([-1 if r[3] is None else CHANNELS.index(r[3]) for r in rows], np.int64),
        amount=np.array([row[4] for row in rows], dtype=np.float64),
        start=np.full(num_nodes, MONDAY),
        stop=np.full(num_nodes, MONDAY + days * DAY),
    )


def random_events(rng: np.random.Generator, *, num_nodes: int, num_events: int) -> Events:
    node = np.sort(rng.integers(num_nodes, size=num_events))
    seconds = rng.integers(28 * DAY, size=num_events)
    order = np.lexsort((seconds, node))
    amount = np.where(rng.random(num_events) < 0.4, np.nan, rng.normal(0, 1e6, num_events))
    return Events(
        num_nodes=num_nodes,
        node=node,
        seconds=MONDAY + seconds[order],
        kind=rng.integers(8, size=num_events),
        channel=rng.integers(-1, 4, size=num_events),
        amount=amount,
        start=np.full(num_nodes, MONDAY),
        stop=np.full(num_nodes, MONDAY + 28 * DAY),
    )


def test_there_are_155_distinct_names() -> None:
    assert len(NAMES) == len(set(NAMES)) == NUM_FEATURES == 155
    for name in ("login_count", "payment_mobile_count", "night_share", "channel_web_amount_mean"):
        assert name in NAMES


def test_names_that_would_clash_get_numbers() -> None:
    types = ("event", "active", "login", "login_web", "channel_web", "monday", "night", "amount")
    names = feature_names(types, CHANNELS)
    assert len(set(names)) == 155
    assert "event_count_2" in names


def test_one_user_calculated_by_hand() -> None:
    nan = float("nan")
    events = events_of(
        [
            (1, 1 * HOUR, "login", "web", nan),  # Monday night
            (1, 10 * HOUR, "payment", "mobile", 19.0),
            (1, 5 * DAY + 10 * HOUR, "payment", "terminal", 99.0),  # Saturday
            (1, 21 * DAY + 10 * HOUR, "cash_out", None, 40.0),
        ],
        num_nodes=2,
    )
    features = dict(zip(NAMES, summarise(events)[1].tolist(), strict=True))
    log = np.log1p
    expected = {
        "login_count": log(1),
        "payment_count": log(2),
        "payment_share": 1 / 2,
        "payment_amount_sum": log(118),
        "payment_amount_mean": log(59),
        "payment_amount_max": log(99),
        "payment_days": log(2),
        "login_night_share": 1.0,
        "payment_night_share": 0.0,
        "payment_recency": (5 * DAY + 10 * HOUR) / (28 * DAY),
        "login_amount_max": 0.0,
        "channel_web_count": log(1),
        "channel_mobile_amount_sum": log(19),
        "payment_terminal_count": log(1),
        "payment_web_count": 0.0,
        "hour_00_04_share": 1 / 4,
        "hour_08_12_share": 3 / 4,
        "monday_share": 3 / 4,
        "saturday_share": 1 / 4,
        "weekend_share": 1 / 4,
        "event_count": log(4),
        "active_days": log(3),
        "type_variety": 3 / 8,
        "channel_variety": 3 / 4,
        "amount_sum": log(158),
        "amount_min": log(19),
        "round_amount_share": 1 / 3,
        "night_share": 1 / 4,
        "first_event": HOUR / (28 * DAY),
        "last_event": (21 * DAY + 10 * HOUR) / (28 * DAY),
        "gap_min": log(9),
        "gap_max": log(16 * 24),
        "gap_mean": (log(9) + log(120) + log(384)) / 3,
        "busiest_day_count": log(2),
        "busiest_day_share": 1 / 2,
        "type_entropy": -(0.5 * np.log(0.5) + 2 * 0.25 * np.log(0.25)),
        "late_half_share": 1 / 4,
    }
    for name, value in expected.items():
        assert features[name] == pytest.approx(value, abs=1e-6), name


def test_a_user_without_activity_is_all_zero() -> None:
    events = events_of([(1, 0, "login", "web", 1.0)], num_nodes=3)
    features = summarise(events)
    assert features.shape == (3, 155)
    assert not features[[0, 2]].any()
    assert not np.signbit(features[[0, 2]]).any()


def test_no_events_at_all() -> None:
    assert not summarise(events_of([], num_nodes=4)).any()


def test_features_are_never_missing_or_infinite() -> None:
    features = summarise(random_events(np.random.default_rng(0), num_nodes=300, num_events=900))
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def test_shares_stay_between_zero_and_one() -> None:
    features = summarise(random_events(np.random.default_rng(1), num_nodes=300, num_events=900))
    for k, name in enumerate(NAMES):
        if name.endswith(("_share", "_recency", "_variety", "first_event", "last_event")):
            assert features[:, k].min() >= 0, name
            assert features[:, k].max() <= 1, name


def test_nodes_are_summarised_independently() -> None:
    """Splitting the nodes over two calls changes no bit, so results do not depend on chunks."""
    events = random_events(np.random.default_rng(2), num_nodes=60, num_events=900)
    whole = summarise(events)
    for first, last in ((0, 20), (20, 60)):
        inside = (events.node >= first) & (events.node < last)
        part = Events(
            num_nodes=last - first,
            node=events.node[inside] - first,
            seconds=events.seconds[inside],
            kind=events.kind[inside],
            channel=events.channel[inside],
            amount=events.amount[inside],
            start=events.start[first:last],
            stop=events.stop[first:last],
        )
        assert np.array_equal(summarise(part), whole[first:last])
