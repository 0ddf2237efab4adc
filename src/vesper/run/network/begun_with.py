"""What a run began with, written down in its state folder: `--resume` goes on with the same.

    state/ledger   a digest that names the ledger        state/labels   the table that was answered

Another ledger, or a changed table of labels, would be another account: what one session shows
would be charged here and there, and shown twice.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from vesper.errors import InputError, VesperError
from vesper.privacy.key import key_of
from vesper.privacy.ledger import Ledger
from vesper.whole_file import write_whole


def refuse_lost_ledger(state: Path, ledger: Path, *, resume: bool) -> None:
    """Refuse to go on with a ledger that is not there; opening it would make a new one.

    Raises:
        InputError: the run has a ledger, and this is none.
    """
    if resume and (state / "ledger").exists() and not ledger.exists():
        raise InputError(
            f"{ledger}: expected the ledger that this run began with, found none; restore it, or "
            f"begin a new run with a new state folder"
        )


def hold_to_ledger(state: Path, ledger: Ledger, *, resume: bool) -> None:
    """Note which ledger a run begins with; refuse to go on with another.

    Raises:
        InputError: it is another one.
    """
    name = hashlib.blake2b(key_of(ledger), digest_size=16, person=b"ledger name").hexdigest()
    hold_to(
        state / "ledger",
        name,
        resume=resume,
        refusal=f"{ledger.path}: this run began with another ledger; use that one, or begin a new "
        f"run with a new state folder. Nothing was charged",
    )


def hold_to_labels(state: Path, table: str, *, resume: bool) -> None:
    """Note which table of labels is answered; refuse to go on with another.

    Raises:
        InputError: labels have changed since the run began.
    """
    hold_to(
        state / "labels",
        table,
        resume=resume,
        refusal="labels: expected those that this run began with, got others, of which nothing may "
        "be shown in it; put them back, or begin a new run with a new state folder. Nothing was "
        "charged",
    )


def hold_to_parties(state: Path, names: Sequence[str], *, resume: bool) -> None:
    """Note which data parties there are, in which order; refuse to go on with others.

    Raises:
        InputError: some have come, gone or changed places since the run began.
    """
    if names:
        hold_to(
            state / "parties",
            "\n".join(names),
            resume=resume,
            refusal="[[data_party]]: expected the data parties that this run began with, in the "
            "same order, got others; put them back, or begin a new run with a new state folder",
        )


def hold_to(path: Path, value: str, *, resume: bool, refusal: str) -> None:
    """Write a value when a run begins, whole or not at all; refuse another when it goes on."""
    try:
        if resume and path.exists():
            if path.read_text() != value:
                raise InputError(refusal)
            return
        write_whole(path, value.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise VesperError(f"{path}: cannot be used ({error}); mend or restore it") from None
