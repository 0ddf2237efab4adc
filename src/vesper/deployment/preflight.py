"""Preflight: checks that find problems before a run, each with its fix.

Nothing is charged, and nothing about nodes or labels leaves. Checks go from this machine outwards:
files, state, budget, certificate, contract, then the connection to the peer. A check that cannot
run because an earlier one failed is skipped and says so.

The budget check compares the releases of a run with what is left of the graph's budget. Only the
label party knows the number of classes; where a method's releases depend on it, the more expensive
case must fit.
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
from vesper.errors import InputError, PeerError, VesperError
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.fingerprint import fingerprint
from vesper.method.base import NoisePlan, PublicSizes
from vesper.method.noise_plan import budget_of, relation_for
from vesper.method.options import refuse_aggregator
from vesper.method.registry import find_method
from vesper.method.settings import Config
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.ledger.account import Account, accounts
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.privacy.relation import GraphRelation
from vesper.progress import Progress, no_progress
from vesper.session.contract import contract_differences, contract_text, refuse_unapproved
from vesper.session.doors import refuse_over_budget, refuse_spent_on_counts, with_remaining_epsilon
from vesper.session.run_spec import refuse_no_features, refuse_unusable_labels
from vesper.version import VERSION

NUM_CLASSES_TO_CHECK = (2, 3)
"""Two, and more than two: noise plans depend on the number of classes only in this."""


def check_budget_for_run(config: Config, data: DataHoldings, ledger: Path) -> str:
    """Describe the budget of the run and what is already spent of it.

    Raises:
        InputError: the ledger cannot be used, or the graph has another budget in it.
        BudgetError: the run would cost more than is left.
        VesperError: the ledger was changed or cannot be written.
    """
    noise_plans = _noise_plans(config, data)
    budget = budget_of(config.privacy, _sizes(data, NUM_CLASSES_TO_CHECK[0]))
    if noise_plans[0].plan != "certified" or budget is None:
        _refuse_unwritable(ledger)
        plan = noise_plans[0].plan
        later = "" if plan == "edge-free" else ", nor for later runs on this graph and ledger"
        return f"plan '{plan}': nothing is charged, and nothing is certified{later}"
    stated = f"the run may use epsilon {budget.epsilon:g} at delta {budget.delta:g}"
    if not ledger.exists():
        _refuse_unwritable(ledger)
        return f"{stated}; {ledger} will be created"
    with closing(Ledger(ledger, clock=time.time)) as book:
        with book.transaction():
            pass  # tests the right to write, without writing
        broken = book.verify()
        if broken is not None:
            raise VesperError(f"{ledger}: entry {broken} was changed; nothing is charged to it")
        refuse_spent_on_counts(config, book)
        account = _account(book, data, budget, relation_for(config.privacy))
        left = with_remaining_epsilon(config, account, book)
        for noise_plan in _noise_plans(left, data):
            refuse_over_budget(account, noise_plan, epsilon=left.privacy.epsilon)
        return f"{stated}; epsilon {account.spent_epsilon():.4g} is spent already"


def _account(book: Ledger, data: DataHoldings, budget: Budget, relation: GraphRelation) -> Account:
    """Return the account as the run will open it, without writing an entry."""
    graph = fingerprint(data.graph, key=key_of(book))
    for balance in accounts(book):
        if balance.graph == graph and (balance.budget, balance.relation) not in (
            (None, balance.relation),
            (budget, relation),
        ):
            held = balance.budget
            assert held is not None
            raise InputError(
                f"{book.path}: this graph already has a budget of epsilon {held.epsilon:g}, delta "
                f"{held.delta:g} for {balance.relation}, the contract asks for epsilon "
                f"{budget.epsilon:g}, delta {budget.delta:g} for {relation}; a budget cannot be "
                f"set twice: fix [privacy], or use a new snapshot"
            )
    for entry in book.entries():
        if entry.graph == graph and entry.cost > 0 and not relation.admits(entry.facts):
            raise InputError(
                f"{book.path}: this graph was charged for a {entry.facts['kind']}, which has no "
                f"known cost for {relation}; use a separate ledger, and count the cost of both"
            )
    num_nodes = data.graph.num_nodes
    return Account(book, graph, num_nodes=num_nodes, budget=budget, relation=relation)


def _noise_plans(config: Config, data: DataHoldings) -> list[NoisePlan]:
    method = find_method(config.run.method)
    refuse_aggregator(config)
    return [method.noise_plan(config, _sizes(data, classes)) for classes in NUM_CLASSES_TO_CHECK]


def _sizes(data: DataHoldings, num_classes: int) -> PublicSizes:
    return PublicSizes(
        num_nodes=data.graph.num_nodes,
        num_train=data.graph.num_nodes,
        num_features=data.features.shape[1],
        num_classes=num_classes,
    )


def _refuse_unwritable(ledger: Path) -> None:
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
        ledger = self._config.party.ledger
        assert ledger is not None
        if self._data is None:
            raise _CheckSkippedError("the files of this party must be readable first")
        if self._has_started():
            raise _CheckSkippedError(
                "a run has started here; what it has charged is not charged again"
            )
        return check_budget_for_run(self._config.shared, self._data, ledger)

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
