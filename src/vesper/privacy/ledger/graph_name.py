"""Names of graphs: the owner declares one, and the budget belongs to it."""

import re

from vesper.errors import InputError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", flags=re.ASCII)

EXPECTED = "at most 64 letters, digits, dots, hyphens and underscores, such as 'payments-2026-11'"

SIMULATED_GRAPH = "simulation"
"""Name of the graph of a simulation that was given none."""

SIMULATED_NOISE_NEEDS_NO_LEDGER = (
    "{ledger}: expected none with simulated noise, which protects nothing and is charged to no "
    "ledger; leave out {ledger} to simulate, or leave the noise secret to charge it"
)
"""Message for a ledger that is given for noise that comes from a seed."""


def graph_name(text: str) -> str:
    """Check the name of a graph and return it.

    >>> graph_name("payments-2026-11")
    'payments-2026-11'

    Raises:
        ValueError: it cannot be the name of a graph.
    """
    if not _NAME.fullmatch(text):
        raise ValueError(f"expected {EXPECTED}")
    return text


def expect_graph_name(name: str | None, *, how: str = "--graph NAME") -> str:
    """Return the name of a graph that is to be charged.

    Args:
        name: as given; None: none was.
        how: how to give one.

    Raises:
        InputError: there is none, or it cannot be the name of a graph.
    """
    if name is None:
        raise InputError(
            f"expected a name for the graph whose budget is charged, got none; give one with {how}."
            f" The budget belongs to the name and covers every version of the graph that is "
            f"released under it, so use the same name each time"
        )
    try:
        return graph_name(name)
    except ValueError as error:
        raise InputError(f"name of the graph: {error}, got '{name}'") from None
