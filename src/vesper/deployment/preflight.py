"""Preflight: checks that find problems before a run, each with its fix.

Nothing is charged, and nothing about nodes or labels leaves. Checks go from this machine outwards:
files, state, budget, certificate, contract, then the connection to the peer. A check that cannot
run because an earlier one failed is skipped and says so.

The budget check reserves what the run would reserve, in a transaction that is undone.
"""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from vesper.deployment.alignment.aligned_file import (
    drop_unaligned_labels,
    read_aligned,
    refuse_unaligned,
)
from vesper.deployment.certificate_watch import credentials_of
from vesper.deployment.config.party_config import PartyConfig
from vesper.deployment.handshake import (
    PeerContact,
    PreflightGreeting,
    bound_socket,
    reach_peer,
    wait_for_peer,
)
from vesper.deployment.identity.credentials import RENEWAL_DAYS
from vesper.deployment.identity.revocation import is_revoked
from vesper.deployment.party_ledger import open_party_ledger, reserve_for_party
from vesper.errors import InputError, PeerError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.graph_version import version_of_graph
from vesper.privacy.ledger.ledger_file import default_ledger
from vesper.privacy.ledger.overlap_report import describe_overlaps
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.progress import Progress, no_progress
from vesper.session.contract import contract_differences, contract_text, refuse_unapproved
from vesper.session.run_spec import refuse_no_features, refuse_unusable_labels
from vesper.version import VERSION


def check_budget(config: PartyConfig, data: DataHoldings) -> str:
    """Describe the budget of the run, and what is already spent and reserved of it.

    This is the code of the run itself, in a transaction that is undone.

    Raises:
        InputError: the ledger or the graph cannot be used, or the graph has other terms.
        BudgetError: the run would cost more than is left.
        VesperError: the ledger was changed or cannot be written.
    """
    path = config.party.ledger
    if path.exists():
        with closing(open_party_ledger(config)) as ledger:
            return _dry_run(config, data, ledger)
    _refuse_unwritable(path)
    with (
        tempfile.TemporaryDirectory(prefix="vesper-") as folder,
        closing(Ledger(Path(folder) / path.name, clock=time.time)) as ledger,
    ):
        return f"{_dry_run(config, data, ledger)}; {path} will be created"


def _dry_run(config: PartyConfig, data: DataHoldings, ledger: Ledger) -> str:
    version_of_graph(data.graph, key=key_of(ledger))  # kept in memory: others wait for what follows
    with ledger.transaction(dry_run=True):
        account = reserve_for_party(config, data, ledger, run=DRY_RUN, is_simulated=False)
        if account is None:
            return "plan 'edge-free': nothing is charged, and nothing is certified"
        reservation = account.reservations[DRY_RUN].reservation
        if not reservation.is_certified:
            return (
                f"plan '{reservation.plan}': nothing is charged, and nothing is certified, nor for "
                f"later runs on graph '{account.graph}' in this ledger"
            )
        budget = account.budget
        assert budget is not None
        others = account.reserved_epsilon() if len(account.reservations) > 1 else 0.0
        held = f", {others:.4g} is reserved with this run" if others else ""
        facts = (
            f"graph '{account.graph}': the run may use epsilon "
            f"{reservation.planned_epsilon:g} of {budget.epsilon:g} at delta {budget.delta:g}; "
            f"epsilon {account.spent_epsilon():.4g} is spent already{held}"
        )
        return "; NOTE: ".join([facts, *describe_overlaps(ledger, account.graph)])


DRY_RUN = "preflight"
"""Run name of a reservation that is undone."""


def _refuse_unwritable(ledger: Path) -> None:
    if ledger == default_ledger():
        return  # its folder is created with it
    if not ledger.parent.is_dir() or not os.access(ledger.parent, os.W_OK | os.X_OK):
        raise InputError(
            f"{ledger}: cannot be created, its folder is missing or cannot be written; fix "
            f"party.ledger or the permissions"
        )


MIN_FREE_BYTES = 1 << 28
"""Bytes that should be free on the disk of the state folder."""
MAX_CLOCK_DIFFERENCE = 120.0
"""Seconds that two clocks may differ."""


@dataclass(frozen=True)
class Check:
    """One line of a preflight: what was checked, the outcome, and the problem with its fix."""

    name: str
    outcome: str
    """`PASSED`, `FAILED` or `SKIPPED`."""
    text: str


class _CheckSkippedError(Exception):
    """The check cannot run now."""


class Preflight:
    """The checks of one party; iterate to run them one by one.

    Args:
        config: settings of this party.
        wait: seconds to wait for the peer's preflight.
        progress: receives progress reports.
    """

    def __init__(
        self, config: PartyConfig, *, wait: float = 0.0, progress: Progress = no_progress
    ) -> None:
        self._config, self._wait, self._progress = config, wait, progress
        self._data: DataHoldings | None = None
        self._has_credentials = False
        self._contact: PeerContact | None = None

    def __iter__(self) -> Iterator[Check]:
        checks: dict[str, Callable[[], str]] = {
            "versions": self._versions,
            "files": self._files,
            "state": self._state,
            "budget": self._budget,
            "certificate": self._certificate,
            "contract": self._contract,
            "peer": self._peer,
            "agreement": self._peer_contract,
            "clock": self._clock,
        }
        for name, check in checks.items():
            if name == "budget" and self._config.party.role == "label":
                continue  # edges and their budget are the data party's
            if name in ("certificate", "peer", "agreement", "clock") and self._is_in_process:
                continue  # both are this process
            yield _checked(name, check)

    def _versions(self) -> str:
        others = ", ".join(f"{name} {version(name)}" for name in ("torch", "grpcio"))
        return f"vesper {VERSION}, python {platform.python_version()}, {others}"

    def _files(self) -> str:
        party, shared = self._config.party, self._config.shared
        aligned = read_aligned(party.state)
        if party.role == "data":
            data = open_data(party.folder, progress=self._progress)
            refuse_no_features(data)
            if aligned is not None:
                refuse_unaligned(data.ids, aligned, party.folder)
            self._data = data
            return f"{len(data.ids)} nodes with {data.features.shape[1]} features"
        labels = open_labels(party.folder, decimals=shared.run.task != "classification")
        labels = labels if aligned is None else drop_unaligned_labels(labels, aligned)
        refuse_unusable_labels(shared, labels)
        return f"{len(labels.ids)} labels of {len(labels.classes)} kinds"

    def _state(self) -> str:
        state = self._config.party.state
        try:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=state, prefix=".preflight-") as file:
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())
            free = shutil.disk_usage(state).free
        except OSError as error:
            raise InputError(
                f"{state}: cannot be written ({error.strerror}); fix party.state or the permissions"
            ) from None
        if free < MIN_FREE_BYTES:
            raise InputError(
                f"{state}: {free >> 20} MiB are free, expected {MIN_FREE_BYTES >> 20}; free some "
                f"space, or choose a folder elsewhere as party.state"
            )
        if (state / "result").exists():
            raise InputError(
                f"{state}: a run has finished here; choose a new folder as party.state"
            )
        started = "; a run has started here, `--resume` continues it" if self._has_started() else ""
        return f"{state} can be written, {free >> 20} MiB are free{started}"

    def _budget(self) -> str:
        if self._data is None:
            raise _CheckSkippedError("the files of this party must be readable first")
        if self._has_started():
            raise _CheckSkippedError(
                "a run has started here; what it has charged is not charged again"
            )
        return check_budget(self._config, self._data)

    def _certificate(self) -> str:
        now = datetime.now(UTC)
        credentials = credentials_of(self._config, now=now)
        self._has_credentials = True
        days = (credentials.until - now).days
        renew = "; have it renewed soon" if days < RENEWAL_DAYS else ""
        return f"for '{self._config.party.name}', {days} days left{renew}"

    def _contract(self) -> str:
        refuse_unapproved(self._config.party.state, self._config.shared)
        return f"{self._config.shared.contract[:16]} is approved here"

    def _peer(self) -> str:
        party = self._config.party
        own = PreflightGreeting(VERSION, contract_text(self._config.shared), time.time())
        if party.listen is not None and not self._wait:
            with bound_socket(party.listen):
                return f"{party.listen} is free to listen at; with --wait, {party.peer} can try it"
        if not self._has_credentials:
            raise _CheckSkippedError("the certificate must be valid first")
        if party.listen is not None:
            self._contact = wait_for_peer(self._config, own, seconds=self._wait)
        else:
            self._contact = reach_peer(self._config, own, seconds=self._wait)
        if is_revoked(self._contact.certificate, self._config.tls.revoked):
            raise PeerError(
                f"the certificate of {party.peer} is on the list {self._config.tls.revoked} of "
                f"revoked ones; it needs a new one"
            )
        return f"{party.peer} at {party.listen or party.connect} has the right certificate"

    def _peer_contract(self) -> str:
        greeting = self._greeting()
        if greeting.version != VERSION:
            raise PeerError(
                f"{self._config.party.peer} has vesper {greeting.version!r}, this side {VERSION}; "
                f"install the same version on both sides"
            )
        different = contract_differences(contract_text(self._config.shared), greeting.contract)
        if different:
            raise InputError(
                f"{len(different)} settings differ ({'; '.join(different[:5])}); agree on one, "
                f"then approve it on both sides with `vesper contract --config FILE --approve`"
            )
        return "both sides have the same version and the same contract"

    def _clock(self) -> str:
        now = datetime.now(UTC)
        if self._contact is not None and self._contact.certificate.not_valid_before_utc > now:
            raise InputError(
                "this machine's clock is before the start of the peer's certificate; set the clock"
            )
        greeting = self._greeting()
        apart = abs(greeting.time - greeting.received)
        if not apart <= MAX_CLOCK_DIFFERENCE:
            raise InputError(
                f"the clocks of the two sides are {apart:.0f} s apart, expected at most "
                f"{MAX_CLOCK_DIFFERENCE:.0f}; set both with a time server"
            )
        return f"the clocks of the two sides are {apart:.0f} s apart"

    @property
    def _is_in_process(self) -> bool:
        return self._config.party.listen is None and self._config.party.connect is None

    def _has_started(self) -> bool:
        return (self._config.party.state / "session").exists()

    def _greeting(self) -> PreflightGreeting:
        if self._contact is None or self._contact.greeting is None:
            raise _CheckSkippedError(
                "needs both sides to run `vesper preflight --wait 60` at the same time"
            )
        return self._contact.greeting


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, "PASSED", check())
    except _CheckSkippedError as reason:
        return Check(name, "SKIPPED", str(reason))
    except VesperError as error:
        return Check(name, "FAILED", " ".join(str(error).split()))
