"""Two parties, each with its own files, in one process over loopback."""

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.privacy.ledger.store import Ledger
from vesper.session.contract import approve
from vesper.session.result import DataResult, LabelResult

if TYPE_CHECKING:
    from tests.conftest import Institutions

SETTINGS = "hops = 2\n[run]\nepochs = 2\nbatch_size = 8\n"


class Both:
    """Both parties, and what tests do with them."""

    def __init__(self, institutions: "Institutions") -> None:
        self.settings, self.change = institutions.settings, institutions.change

    def configs(self, *, approved: bool = True) -> tuple[PartyConfig, PartyConfig]:
        """Both files, read and approved."""
        data, label = (load_party_config(path) for path in self.settings)
        for config in (data, label):
            if approved:
                approve(config.party.state, config.shared)
        return data, label

    def run(
        self,
        data: PartyConfig,
        label: PartyConfig,
        *,
        of_label: dict[str, Any] | None = None,
        **of_data: Any,
    ) -> tuple[Future[DataResult], Future[LabelResult]]:
        """Run both until they end."""
        with ThreadPoolExecutor(2) as pool:
            return (
                pool.submit(run_data_party, data, **of_data),
                pool.submit(run_label_party, label, **(of_label or {})),
            )

    def charged(self, config: PartyConfig) -> int:
        """Number of releases that the ledger has charged."""
        assert config.party.ledger is not None
        with closing(Ledger(config.party.ledger, clock=lambda: 0.0)) as ledger:
            return sum(entry.cost > 0 for entry in ledger.entries())


@pytest.fixture
def both(institutions: "Institutions") -> Both:
    """A short run; a lost peer ends it."""
    institutions.change("\n[run]\n", f"\n{SETTINGS}\n")
    institutions.change("patience = 30.0", "patience = 5.0")
    institutions.change('when_lost = "wait"', 'when_lost = "stop"')
    return Both(institutions)
