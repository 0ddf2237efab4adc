import numpy as np
import pytest
from numpy.typing import NDArray

from vesper.datasets.finance.activity import CHANNELS, NUM_HABITS, TYPES, Activity, draw_activity

DAYS, DAY, HOUR = 28, 86_400, 3_600


def draw(tint: float, *, num_users: int = 4000, seed: int = 0, **habit: float) -> Activity:
    names = ("active", "rich", "nocturnal", "digital", "cash")
    habits: NDArray[np.float64] = np.zeros((num_users, NUM_HABITS))
    for name, value in habit.items():
        habits[:, names.index(name)] = value
    rng = np.random.default_rng(seed)
    return draw_activity(np.full(num_users, tint), habits, num_days=DAYS, rng=rng)


def share(activity: Activity, kind: str) -> float:
    return float((activity.kind == TYPES.index(kind)).mean())


def at_night(activity: Activity) -> float:
    return float((activity.seconds % DAY < 6 * HOUR).mean())


def test_every_event_is_inside_the_window_and_known() -> None:
    activity = draw(0.0)
    assert activity.seconds.min() >= 0
    assert activity.seconds.max() < DAYS * DAY
    assert set(activity.kind.tolist()) == set(range(len(TYPES)))
    assert set(activity.channel.tolist()) == set(range(len(CHANNELS)))
    assert (np.diff(activity.user) >= 0).all()


def test_only_payments_have_an_amount() -> None:
    activity = draw(0.0)
    with_amount = {TYPES[k] for k in set(activity.kind[~np.isnan(activity.amount)].tolist())}
    assert with_amount == {"payment", "bill", "top_up", "cash_out"}
    assert np.nanmin(activity.amount) > 0


@pytest.mark.parametrize("kind", ["login_failed", "cash_out", "top_up", "card_change"])
def test_tint_shifts_the_types_of_events(kind: str) -> None:
    assert share(draw(1.0), kind) > 1.15 * share(draw(0.0), kind)


def test_tint_shifts_times_and_amounts() -> None:
    assert at_night(draw(1.0)) > 1.3 * at_night(draw(0.0))
    assert np.nanmean(draw(1.0).amount) > np.nanmean(draw(0.0).amount)


def test_tint_does_not_shift_how_active_users_are() -> None:
    assert len(draw(1.0).user) == pytest.approx(len(draw(0.0).user), rel=0.02)


def test_habits_shift_activity_too() -> None:
    assert len(draw(0.0, active=1.0).user) > 1.5 * len(draw(0.0).user)
    assert at_night(draw(0.0, nocturnal=1.0)) > 1.3 * at_night(draw(0.0))
    assert share(draw(0.0, cash=1.0), "cash_out") > share(draw(0.0), "cash_out")
