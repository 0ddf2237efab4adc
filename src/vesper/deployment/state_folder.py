"""State folder of a party, held by one process: a run starts in it, is resumed, or is finished.

Resume guards note what a run began with; `--resume` refuses anything else:

    state/ledger    digest that names the ledger
    state/labels    digest of ids, splits and class names of the label table
    state/parties   names of the data parties, in order

With another ledger, what one session releases would be charged to both, and released twice. Labels
may change: responses to them do not (`label_door`), and a refusal would reveal the change.

A run that is finished here may be unfinished at the peer; `wait_for_peer_to_finish` helps it.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.connect import (
    PeerConnector,
    open_party_channel,
    peer_connector,
    show_waiting,
)
from vesper.deployment.party_ledger import open_party_ledger
from vesper.deployment.starting_over import may_start_over
from vesper.errors import InputError, PeerLostError, VesperError
from vesper.files import remove_abandoned_files, replace_file
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.privacy.ledger.reservation import return_unused
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.session.contract import refuse_unapproved
from vesper.session.observer import NO_OBSERVER, SessionObserver
from vesper.transport.channel import closing_with_reason
from vesper.transport.close_reason import CloseReason, close_reason_for, without_charge
from vesper.transport.frame_log import SENT, FrameLog
from vesper.transport.reconnect import read_session_name, write_session_name
from vesper.transport.session_greeting import NO_SESSION_ID


def refuse_lost_ledger(state: Path, ledger: Path, *, resume: bool) -> None:
    """Refuse to resume with a missing ledger; opening it would create a new one.

    Raises:
        InputError: the run began with a ledger, and it is missing.
    """
    if resume and (state / "ledger").exists() and not ledger.exists():
        raise InputError(
            f"{ledger}: expected the ledger that this run began with, found none; restore it, or "
            f"begin a new run with a new state folder"
        )


def guard_ledger(state: Path, ledger: Ledger, *, resume: bool) -> None:
    """Note which ledger a run begins with; refuse to resume with another.

    Raises:
        InputError: it is another ledger.
    """
    name = hashlib.blake2b(key_of(ledger), digest_size=16, person=b"ledger name").hexdigest()
    guard_value(
        state / "ledger",
        name,
        resume=resume,
        refusal=f"{ledger.path}: this run began with another ledger; use that one, or begin a new "
        f"run with a new state folder. Nothing was charged",
    )


def guard_labels(state: Path, table: str, *, resume: bool) -> None:
    """Note ids, splits and class names of a run; refuse to resume with others.

    Raises:
        InputError: they have changed since the run began.
    """
    guard_value(
        state / "labels",
        table,
        resume=resume,
        refusal="labels: expected the ids, splits and classes that this run began with, got "
        "others; restore them, or begin a new run with a new state folder. Nothing was charged",
    )


def guard_parties(state: Path, names: Sequence[str], *, resume: bool) -> None:
    """Note the data parties of a run, in order; refuse to resume with others.

    Raises:
        InputError: parties were added, removed or reordered since the run began.
    """
    if names:
        guard_value(
            state / "parties",
            "\n".join(names),
            resume=resume,
            refusal="[[data_party]]: expected the data parties that this run began with, in the "
            "same order, got others; restore them, or begin a new run with a new state folder",
        )


def guard_value(path: Path, value: str, *, resume: bool, refusal: str) -> None:
    """Write a value atomically when a run begins; refuse another one when it is resumed."""
    try:
        if resume and path.exists():
            if path.read_text() != value:
                raise InputError(refusal)
            return
        replace_file(path, value.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise VesperError(f"{path}: cannot be used ({error}); fix or restore it") from None


@contextmanager
def hold_state_folder(
    config: PartyConfig, *, resume: bool, is_multi_party: bool = False
) -> Iterator[Path]:
    """Hold the state folder; refuse to start over an existing run, or to resume without one."""
    state = config.party.state
    refuse_unapproved(state, config.shared)
    with state_folder_lock(state):
        if (state / "result").exists():
            raise InputError(f"{state}: this run is finished; its result is in {state / 'result'}")
        has_started = (state / "session").exists()
        if has_started and not resume:
            raise InputError(
                f"{state}: a run has started here; continue it with --resume, or choose a new "
                f"state folder"
            )
        if resume and not has_started:
            raise InputError(f"{state}: there is no run to resume; start without --resume")
        with _discard_if_uncharged(config, resumed=resume, is_multi_party=is_multi_party):
            yield state


@contextmanager
def state_folder_lock(state: Path) -> Iterator[None]:
    """Make this process the only one that runs this party."""
    try:
        lock = (state / "lock").open("w")
    except OSError as error:
        raise InputError(f"{state}: cannot be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{state}: another process is running this party already") from None
        remove_abandoned_files(state)
        yield


@contextmanager
def _discard_if_uncharged(
    config: PartyConfig, *, resumed: bool, is_multi_party: bool
) -> Iterator[None]:
    """Discard a session that failed, if it is certain that nothing was charged for it.

    Once the cause is fixed (contracts that differ, unknown ids in a roster, a budget that does not
    suffice), both sides start again. A session is not discarded if another one of several data
    parties caused the error.
    """
    try:
        yield
    except VesperError as error:
        is_spared = is_multi_party and is_about_another_party(
            error, config, sent=_num_frames_sent(config)
        )
        if not is_spared and _is_surely_uncharged(config, error, resumed=resumed):
            _discard_session(config)
        raise


def is_about_another_party(error: BaseException, config: PartyConfig, *, sent: int) -> bool:
    """Whether one of several data parties may have trained and did not cause the error.

    It has received the label party's hello and roster, and can continue once the cause is fixed.
    """
    return sent > 1 and isinstance(error, VesperError) and error.party_name != config.party.peer


def discard_unless_started(config: PartyConfig) -> None:
    """Discard a session in which the data party was stopped before it sent more than a hello."""
    if not (config.party.state / "session").exists():
        return
    with state_folder_lock(config.party.state):
        if not (_num_frames_sent(config) > 1 or is_charged(config)):
            _discard_session(config)


def _num_frames_sent(config: PartyConfig) -> int:
    with closing(FrameLog(config.party.state / "frames")) as log:
        return log.count(SENT)


def _discard_session(config: PartyConfig) -> None:
    """Return what the session has reserved, then delete it; without the former it stays."""
    state = config.party.state
    with suppress(VesperError):
        return_reservation(config)
        _delete_session(state)


def return_reservation(config: PartyConfig) -> None:
    """Return what is left of the reservation of a data party's session, if it has any."""
    path, name = config.party.ledger, config.party.state / "session"
    if config.party.role == "data" and path.exists() and name.exists():
        with closing(open_party_ledger(config)) as ledger:
            return_unused(ledger, run=session_run_name(name.read_bytes().hex()))


def _delete_session(state: Path) -> None:
    shutil.rmtree(state / "frames", ignore_errors=True)
    for name in ("session", "transcript.tsv", "checkpoint.npz"):
        (state / name).unlink(missing_ok=True)


def _is_surely_uncharged(config: PartyConfig, error: BaseException, *, resumed: bool) -> bool:
    try:
        return may_start_over(config, error, resumed=resumed) and not is_charged(config)
    except VesperError:
        return False  # the ledger or the log cannot be read


def data_close_reason(config: PartyConfig, error: BaseException, *, resumed: bool) -> CloseReason:
    """Close reason of a data party, which says so if nothing was charged for the session."""
    reason = close_reason_for(error)
    is_uncharged = _is_surely_uncharged(config, error, resumed=resumed)
    return without_charge(reason) if is_uncharged else reason


def is_charged(config: PartyConfig) -> bool:
    """Whether the ledger was charged for this session."""
    path, name = config.party.ledger, config.party.state / "session"
    if not (path.exists() and name.exists()):
        return False
    run = session_run_name(name.read_bytes().hex())
    with closing(open_to_read(path)) as ledger:
        return any(entry.run == run and entry.cost > 0 for entry in ledger.entries())


def named_session(state: Path) -> str:
    """Return the name of the session, which a data party chooses before it contacts its peer."""
    path = state / "session"
    name = read_session_name(path)
    if name == NO_SESSION_ID:
        name = os.urandom(len(NO_SESSION_ID))
        write_session_name(path, name)
    return name.hex()


def session_run_name(session: str) -> str:
    """Return the name that the run of a session has in the ledger."""
    return f"session {session}"


def is_finished(config: PartyConfig) -> bool:
    """Whether this side of the run is complete."""
    return (config.party.state / "result").exists()


def wait_for_peer_to_finish(
    config: PartyConfig,
    *,
    observer: SessionObserver = NO_OBSERVER,
    connector: PeerConnector = peer_connector,
) -> bool:
    """Send a peer that was cut off at the very end what it lacks; False if it does not connect."""
    with (
        state_folder_lock(config.party.state),
        connector(config, waiting=show_waiting(config, observer), warn=observer.warning) as connect,
        closing_with_reason(open_party_channel(config, connect, observer)) as channel,
    ):
        channel.finish(patience=config.party.patience)
        try:
            channel.connect_now()
        except PeerLostError:
            return False  # it is most likely finished, too
        if not channel.is_in_sync:
            channel.linger(expects_last_frame=config.party.role == "data")  # the farewell
    return True
