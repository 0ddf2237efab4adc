"""Charge, draw, keep, and only then hand on: what was kept before is read instead of drawn.

    ledger:  charged --> (noise is drawn) --> kept, with the digest of the file in the vault

A process that dies in between has handed nothing on; it draws again under the same charge (claim
L-FILTER, drawn again). Where the size of what is drawn tells something of it, whether it could be
kept would too: room for it is taken before it is charged.
"""

from collections.abc import Callable

from vesper.errors import VesperError
from vesper.mechanism.vault import Arrays, Vault
from vesper.privacy.account import Account, Kept
from vesper.privacy.events import Event
from vesper.privacy.receipt import Receipt


def nothing() -> None:
    """Refuse nothing."""


def drawn_once(
    account: Account,
    vault: Vault,
    event: Event,
    draw: Callable[[Receipt], Arrays],
    *,
    run: str,
    number: int,
    before_drawing: Callable[[], None] = nothing,
    room: int = 0,
) -> Arrays:
    """Give release `number` of a run, drawn now or kept before.

    Args:
        account: is charged, once.
        vault: keeps what is drawn.
        event: what is charged.
        draw: draws, for a receipt.
        run: its name in the ledger; one vault holds releases of one run.
        number: of the release in its run.
        before_drawing: refuses, by raising, what must have been drawn before.
        room: bytes to take before drawing, where the size of what is drawn depends on the draw.

    Raises:
        BudgetError: it does not fit, or was charged as something else.
        VesperError: it was drawn before under another ledger, or its file is lost, or there is no
            room for it.
    """
    if not account.is_kept(run=run, number=number):
        before_drawing()
        if vault.holds(number) and not account.is_charged(run, number):
            raise VesperError(
                f"release {number} of this run was drawn before, but this ledger was not "
                f"charged for it: it is another ledger, or an older copy. Noise is never drawn "
                f"twice; use the ledger that the run began with, or begin a new run"
            )
        if room:
            vault.reserve(number, room)
    charged = account.charge_once(event, None, run=run, number=number)
    if isinstance(charged, Kept):
        return vault.get(number, charged.digest)
    arrays = draw(charged)
    account.keep(charged, digest=vault.put(number, arrays))
    return arrays
