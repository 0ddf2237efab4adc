"""Activity without a counterparty: log-ins, payments, bills, top-ups, cash-outs, support calls.

A user has habits (how active, rich, nocturnal, ...) that are independent of risk, and a *tint* that
shifts the same behaviour slightly: more failed log-ins, cash-outs, round amounts, late hours.
Activity depends on the label and on the graph through the tint alone:

    label, role -> tint -> activity     tint = N(0, 1) + (0 ordinary, 0.92 risky, 2.5 organiser)

So no model of activity, however large, separates risky from ordinary users better than the tint:
its ROC-AUC is at most the mean of Phi(shift / sqrt 2) over the risky users, about 0.75. The
graph adds real information: a user whose own activity reveals little can have neighbours whose
activity reveals more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RISKY_SHIFT = 0.92
ORGANISER_SHIFT = 2.5
NUM_HABITS = 5
TYPES = ("login", "login_failed", "payment", "bill", "top_up", "cash_out", "support", "card_change")
CHANNELS = ("mobile", "web", "terminal", "branch")

Floats = NDArray[np.float64]

_DAY = 86_400
_MEAN_LOG_EVENTS, _LEVEL_SPREAD = 2.8, 0.6
# One row per type: log weight, and what one unit of each habit and of tint adds to it.
_TYPE = np.array(
    [
        # weight  rich  cash  tint
        [0.0, 0.0, 0.0, 0.0],  # login
        [-1.8, 0.0, 0.0, 0.75],  # login_failed
        [-0.4, 0.2, -0.2, -0.3],  # payment
        [-1.8, 0.2, -0.2, -0.5],  # bill
        [-1.5, 0.0, 0.3, 0.35],  # top_up
        [-1.7, 0.0, 0.4, 0.7],  # cash_out
        [-2.5, 0.0, 0.0, 0.3],  # support
        [-2.6, 0.0, 0.0, 0.7],  # card_change
    ]
)
_CHANNEL = np.array(
    [
        # weight  digital  cash  tint
        [0.0, 0.3, 0.0, 0.0],  # mobile
        [-1.0, 0.5, 0.0, 0.7],  # web
        [-1.2, 0.0, 0.4, -0.1],  # terminal
        [-2.3, -0.4, 0.2, 0.0],  # branch
    ]
)
_HAS_AMOUNT = np.array([False, False, True, True, True, True, False, False])
_LOG_AMOUNT = np.array([0.0, 0.0, 3.3, 4.2, 4.0, 4.3, 0.0, 0.0])
_AMOUNT_TINT = np.array([0.0, 0.0, 0.0, 0.0, 0.4, 0.5, 0.0, 0.0])
_DAY_WEIGHTS = np.array([1.0, 1.0, 1.0, 1.0, 1.2, 1.1, 0.8])


@dataclass(frozen=True)
class Activity:
    """Events of some users, ordered by user; all arrays (n,)."""

    user: NDArray[np.int64]
    """Position among the users of the draw."""
    seconds: NDArray[np.int64]
    """Seconds since the start of the window."""
    kind: NDArray[np.int64]
    channel: NDArray[np.int64]
    amount: Floats
    """Amount, NaN for types without one."""


def draw_activity(
    tint: Floats, habits: Floats, *, num_days: int, rng: np.random.Generator
) -> Activity:
    """Draw the events of each user in a window of `num_days` days that starts on a Monday.

    Args:
        tint: (num_users,) how risky each user looks.
        habits: (num_users, 5) standard normal: active, rich, nocturnal, digital, cash-loving.
        num_days: Length of the window.
        rng: Random generator.
    """
    active, rich, nocturnal, digital, cash = habits.T
    events = rng.poisson(np.exp(_MEAN_LOG_EVENTS + _LEVEL_SPREAD * active))  # (num_users,)
    ones = np.ones_like(tint)
    type_shares = _softmax(np.stack([ones, rich, cash, tint], axis=1) @ _TYPE.T)
    counts = rng.multinomial(events, type_shares)  # (num_users, 8)
    user = np.repeat(np.arange(len(tint)), events)  # (n,)
    kind = np.repeat(np.tile(np.arange(len(TYPES)), len(tint)), counts.ravel())  # (n,)
    channel_shares = _softmax(np.stack([ones, digital, cash, tint], axis=1) @ _CHANNEL.T)
    cumulative = np.cumsum(channel_shares, axis=1)[:, :-1]  # (num_users, 3)
    channel = (rng.random((len(user), 1)) > cumulative[user]).sum(axis=1)
    return Activity(
        user=user,
        seconds=_times(user, nocturnal, tint, num_days, rng),
        kind=kind,
        channel=channel,
        amount=_amounts(user, kind, rich, tint, rng),
    )


def _times(
    user: NDArray[np.int64],
    nocturnal: Floats,
    tint: Floats,
    num_days: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    weights = np.resize(_DAY_WEIGHTS, num_days)
    day = rng.choice(num_days, size=len(user), p=weights / weights.sum())
    at_night = rng.random(len(user)) < _sigmoid(-2.3 + 0.6 * nocturnal + 0.7 * tint)[user]
    daytime = 6 + 18 * rng.beta(2.5, 2.0, size=len(user))
    hour = np.where(at_night, 6 * rng.random(len(user)), daytime)
    return np.asarray(day * _DAY + np.minimum(hour * 3600, _DAY - 1).astype(np.int64))


def _amounts(
    user: NDArray[np.int64],
    kind: NDArray[np.int64],
    rich: Floats,
    tint: Floats,
    rng: np.random.Generator,
) -> Floats:
    log_amount = _LOG_AMOUNT[kind] + 0.4 * rich[user] + _AMOUNT_TINT[kind] * tint[user]
    amount = np.exp(log_amount + 0.7 * rng.standard_normal(len(user)))
    moved = np.isin(kind, (TYPES.index("top_up"), TYPES.index("cash_out")))
    is_round = moved & (rng.random(len(user)) < _sigmoid(-0.5 + 0.8 * tint)[user])
    amount = np.where(is_round, 10 * np.ceil(amount / 10), np.round(amount, 2))
    return np.where(_HAS_AMOUNT[kind], amount, np.nan)


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _sigmoid(value: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-value)))
