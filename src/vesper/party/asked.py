"""Which nodes will be asked about, as far as the data party can know.

asked = test nodes of the roster;   all nodes that are not on it, where it names no test node

What asked nodes hear decides what is worth saying to them. A label party that holds no test label,
or an estimator that is fitted before anybody is asked about, will ask about the others.
"""

import numpy as np

from vesper.party.representation import Nodes


def asked_of(roster: Nodes, *, num_test: int, num_nodes: int) -> Nodes:
    """Give the nodes that predictions will be wanted for.

    Args:
        roster: the labelled nodes: training, validation, test.
        num_test: how many of these, at its end, are test nodes.
        num_nodes: of the graph, labelled or not.

    >>> asked_of(np.array([4, 0, 2]), num_test=1, num_nodes=6).tolist()
    [2]
    >>> asked_of(np.array([4, 0, 2]), num_test=0, num_nodes=6).tolist()
    [1, 3, 5]
    """
    if num_test:
        return roster[len(roster) - num_test :]
    is_other = np.ones(num_nodes, dtype=bool)
    is_other[roster] = False
    return np.flatnonzero(is_other)
