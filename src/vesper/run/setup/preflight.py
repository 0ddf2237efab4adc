"""Everything that can be found wrong before a run, each with its fix; nothing leaves, no charge.

Checks go from this machine outwards: files, state, budget, certificate, contract, then the way to
the peer. One that cannot be made, because an earlier one failed, is skipped and says so.
"""

import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from vesper.errors import InputError, PeerError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import open_labels
from vesper.progress import Progress, silent
from vesper.run.agreement import refuse_no_features
from vesper.run.alignment.aligned_file import only_aligned, read_aligned, refuse_unaligned
from vesper.run.network.meet import credentials_of
from vesper.run.setup.budget_check import budget_for_run
from vesper.run.setup.contract import approved, canonical, differences
from vesper.run.setup.handshake import Greeting, Met, bound, reach, wait_for_peer
from vesper.run.setup.party_config import PartyConfig
from vesper.run.usable_labels import refuse_unusable_labels
from vesper.version import VERSION

ROOM = 1 << 28
"""Bytes that should be free where a run keeps its state."""
CLOCKS_APART = 120.0
"""Seconds that two clocks may differ."""
SOON = 14
"""Days before the end of a certificate from which on it is worth a word."""


@dataclass(frozen=True)
class Check:
    """One line: what was looked at, how it went, and the problem with its fix."""

    name: str
    outcome: str
    """`PASSED`, `FAILED` or `SKIPPED`."""
    text: str


class _Skipped(Exception):
    """Cannot be looked at now."""


class Preflight:
    """The checks of one party; iterate to run them one after the other.

    Args:
        config: this party's.
        wait: seconds to wait for the peer's preflight.
        progress: is told how far reading is.
    """

    def __init__(
        self, config: PartyConfig, *, wait: float = 0.0, progress: Progress = silent
    ) -> None:
        self._config, self._wait, self._progress = config, wait, progress
        self._data: DataHoldings | None = None
        self._has_credentials = False
        self._met: Met | None = None

    def __iter__(self) -> Iterator[Check]:
        checks: dict[str, Callable[[], str]] = {
            "versions": self._versions,
            "files": self._files,
            "state": self._state,
            "budget": self._budget,
            "certificate": self._certificate,
            "contract": self._contract,
            "peer": self._peer,
            "agreement": self._agreement,
            "clock": self._clock,
        }
        for name, check in checks.items():
            if name == "budget" and self._config.party.role == "label":
                continue  # edges and their budget are the data party's
            if name in ("certificate", "peer", "agreement", "clock") and self._has_no_way:
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
        labels = labels if aligned is None else only_aligned(labels, aligned)
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
                f"{state}: cannot be written ({error.strerror}); mend party.state or the rights"
            ) from None
        if free < ROOM:
            raise InputError(
                f"{state}: {free >> 20} MiB are free, expected {ROOM >> 20}; make room, or name a "
                f"folder elsewhere as party.state"
            )
        if (state / "result").exists():
            raise InputError(f"{state}: a run has finished here; name a new folder as party.state")
        begun = "; a run has begun here, `--resume` goes on" if self._has_begun() else ""
        return f"{state} can be written, {free >> 20} MiB are free{begun}"

    def _budget(self) -> str:
        ledger = self._config.party.ledger
        assert ledger is not None
        if self._data is None:
            raise _Skipped("the files of this party must be readable first")
        if self._has_begun():
            raise _Skipped("a run has begun here; what it has charged is not charged again")
        return budget_for_run(self._config.shared, self._data, ledger)

    def _certificate(self) -> str:
        now = datetime.now(UTC)
        credentials = credentials_of(self._config, now=now)
        self._has_credentials = True
        days = (credentials.until - now).days
        renew = "; have it renewed soon" if days < SOON else ""
        return f"for '{self._config.party.name}', {days} days left{renew}"

    def _contract(self) -> str:
        approved(self._config.party.state, self._config.shared)
        return f"{self._config.shared.contract[:16]} is approved here"

    def _peer(self) -> str:
        party = self._config.party
        own = Greeting(VERSION, canonical(self._config.shared), time.time())
        if party.listen is not None and not self._wait:
            with bound(party.listen):
                return f"{party.listen} is free to listen at; --wait lets {party.peer} try it"
        if not self._has_credentials:
            raise _Skipped("the certificate must be right first")
        if party.listen is not None:
            self._met = wait_for_peer(self._config, own, seconds=self._wait)
        else:
            self._met = reach(self._config, own, seconds=self._wait)
        return f"{party.peer} at {party.listen or party.connect} is who it says"

    def _agreement(self) -> str:
        greeting = self._greeting()
        if greeting.version != VERSION:
            raise PeerError(
                f"{self._config.party.peer} has vesper {greeting.version!r}, this side {VERSION}; "
                f"install the same on both sides"
            )
        different = differences(canonical(self._config.shared), greeting.contract)
        if different:
            raise InputError(
                f"{len(different)} settings differ ({'; '.join(different[:5])}); agree on one, "
                f"then approve it on both sides with `vesper contract --config FILE --approve`"
            )
        return "both sides have the same version and the same contract"

    def _clock(self) -> str:
        now = datetime.now(UTC)
        if self._met is not None and self._met.certificate.not_valid_before_utc > now:
            raise InputError("this machine's clock is before the peer's certificate; set it")
        greeting = self._greeting()
        apart = abs(greeting.time - greeting.received)
        if not apart <= CLOCKS_APART:
            raise InputError(
                f"the clocks of the two sides are {apart:.0f} s apart, expected at most "
                f"{CLOCKS_APART:.0f}; set both by a time server"
            )
        return f"the clocks of the two sides are {apart:.0f} s apart"

    @property
    def _has_no_way(self) -> bool:
        return self._config.party.listen is None and self._config.party.connect is None

    def _has_begun(self) -> bool:
        return (self._config.party.state / "session").exists()

    def _greeting(self) -> Greeting:
        if self._met is None or self._met.greeting is None:
            raise _Skipped(
                "is compared when both sides run `vesper preflight --wait 60` at the same time"
            )
        return self._met.greeting


def _checked(name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, "PASSED", check())
    except _Skipped as reason:
        return Check(name, "SKIPPED", str(reason))
    except VesperError as error:
        return Check(name, "FAILED", " ".join(str(error).split()))
