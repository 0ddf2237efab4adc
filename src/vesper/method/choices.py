"""What the certified plan chooses when it is not told: from epsilon and public sizes alone.

| | two classes | more |
| --- | --- | --- |
| hops | 1 below epsilon 8, else 2 | 2 |
| degree share, unless a trial finds another | 0.6 | 0.3 |

Members: 4, fewer where that would be more than 200,000 training rows an epoch for all of them.

Rare-class problems are sparse more often than not, and there the degree itself says much, while a
second hop halves the budget of the first for little (docs/decisions/0005).
"""

from vesper.method.method import Sizes
from vesper.method.settings import Config, PrivacySettings, RunSettings

TWO_HOPS_FROM = 8.0
MOST_MEMBERS = 4
MOST_ROWS = 200_000


def hops_for(privacy: PrivacySettings, sizes: Sizes) -> int:
    """As many hops as asked for, or by the table.

    >>> sizes = Sizes(num_nodes=9, num_train=5, num_features=3, num_classes=2)
    >>> hops_for(PrivacySettings(epsilon=4.0), sizes), hops_for(PrivacySettings(hops=3), sizes)
    (1, 3)
    """
    if privacy.hops is not None:
        return privacy.hops
    return 1 if sizes.num_classes == 2 and privacy.epsilon < TWO_HOPS_FROM else 2


def degree_share_of(config: Config, sizes: Sizes) -> float:
    """The share asked for, or by the table; none where a maximum would not tell a degree."""
    if config.run.degree_share is not None:
        return config.run.degree_share
    if config.privacy.aggregator == "max":
        return 0.0
    return 0.6 if sizes.num_classes == 2 else 0.3


def members_of(run: RunSettings, sizes: Sizes) -> int:
    """As many networks as asked for, or by the number of training nodes."""
    return members_for(sizes.num_train) if run.members is None else run.members


def members_for(num_train: int) -> int:
    """Networks to average: as many as take little time.

    >>> [members_for(num_train) for num_train in (1_000, 83_000, 196_000, 10**6)]
    [4, 2, 1, 1]
    """
    return max(1, min(MOST_MEMBERS, MOST_ROWS // max(num_train, 1)))
