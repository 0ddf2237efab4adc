"""Refusal of activity that would carry edges into the features.

The guarantee covers what leaves the private graph through a release. Features are used without
noise because they are *edge-free*: they would be the same, bit for bit, if any transfer had never
happened. A feature such as "number of counterparties" is the degree; publishing it next to a noisy
degree makes the noise pointless. So `prepare` reads features from the activity table alone, and
this module refuses activity whose names suggest transfers, or that the user declares to come from
transfers.

Names cannot prove anything: a column `score` may come from transfers too. Only the author of the
activity table knows, and declares it in `transfer_columns`.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

from vesper.errors import InputError, first_three

EDGE_FREE_REASON = (
    "features must not be computed from transfers between users: a feature such as the number of "
    "counterparties would carry edges past the privacy guarantee"
)

# Matched as whole words: `peer` is refused, `peerless` is not.
_TRANSFER_WORDS = frozenset(
    "transfer transfers transferred p2p peer peers remit remittance remittances".split()
)
_TRANSFER_PHRASES = ("send_money", "sent_money", "receive_money", "received_money", "red_packet")
_COUNTERPARTY_WORDS = frozenset(
    "src dst counterparty counterparties peer peers receiver receivers recipient recipients sender "
    "senders beneficiary beneficiaries payee payees payer payers partner partners friend friends "
    "contact contacts neighbor neighbors neighbour neighbours degree".split()
)
_COUNTERPARTY_PHRASES = ("to_user", "from_user", "other_user", "user_2", "to_id", "from_id")


def normalise(name: str) -> str:
    """Return a name in lower case with single underscores between its words.

    >>> normalise("Top-Up (EUR)"), normalise("toUser"), normalise("P2P")
    ('top_up_eur', 'to_user', 'p2p')
    """
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return re.sub(r"[\W_]+", "_", split.lower()).strip("_")


def refuse_counterparty_columns(source: str, columns: Iterable[str]) -> None:
    """Raise if a column of the activity table refers to another user.

    Raises:
        InputError: A column is named like a counterparty (`dst`, `receiver`, `peer`, ...).
    """
    refused = [c for c in columns if _mentions(c, _COUNTERPARTY_WORDS, _COUNTERPARTY_PHRASES)]
    if refused:
        raise InputError(
            f"{source}: expected activity that involves no other user, found {len(refused)} "
            f"column(s) named like a counterparty ({first_three(refused)}); {EDGE_FREE_REASON}. "
            f"Remove the column, and the rows and columns that were derived from it"
        )


def refuse_transfer_types(source: str, types: Iterable[tuple[str, int]]) -> None:
    """Raise if rows of the activity table are transfers by their type.

    Args:
        source: The file, for the message.
        types: Each `type` with its number of rows.

    Raises:
        InputError: A type is named `transfer`, `p2p` or similar.
    """
    refused = [(t, n) for t, n in types if _mentions(t, _TRANSFER_WORDS, _TRANSFER_PHRASES)]
    if refused:
        rows = sum(count for _, count in refused)
        raise InputError(
            f"{source}: column 'type': expected activity that involves no other user, found {rows} "
            f"row(s) of {len(refused)} type(s) named like a transfer "
            f"({first_three(name for name, _ in refused)}); {EDGE_FREE_REASON}. Move these rows to "
            f"the transfers table; if they involve no other user, rename the type"
        )


def refuse_transfer_columns(
    source: str,
    transfer_columns: Sequence[str],
    *,
    columns: Collection[str],
    types: Collection[str],
) -> None:
    """Raise if the user declares that a column or a type of the activity comes from transfers.

    Args:
        source: The file, for the message.
        transfer_columns: Names of columns or types that the user declared.
        columns: The columns of the activity table.
        types: The values of its column `type`.

    Raises:
        InputError: A declared name is in the table, or is not and so cannot protect anything.
    """
    known = [*columns, *types]
    refused = [name for name in transfer_columns if name in known]
    if refused:
        raise InputError(
            f"{source}: refused: {len(refused)} column(s) or type(s) that you declared to come "
            f"from transfers are in the activity table ({first_three(refused)}); "
            f"{EDGE_FREE_REASON}. Remove them from the activity table"
        )
    for name in transfer_columns:
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"{source}: transfer_columns names {name!r}, which is neither a column nor a type of "
            f"the activity table{hint}"
        )


def _mentions(name: str, words: frozenset[str], phrases: tuple[str, ...]) -> bool:
    normal = normalise(name)
    return not words.isdisjoint(normal.split("_")) or any(
        f"_{phrase}_" in f"_{normal}_" for phrase in phrases
    )
