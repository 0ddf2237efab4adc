"""A statement repeats the charges of the ledger, names no graph, and belongs to one file."""

import json
from pathlib import Path

import pytest

from vesper.errors import InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.reader import Entry
from vesper.privacy.ledger.statement import (
    ReleasedFile,
    make_statement,
    sha256_of,
    statement_path,
    verify_file,
)
from vesper.privacy.ledger.store import Ledger

GRAPH = "fingerprint-of-the-graph"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


@pytest.fixture
def account(ledger: Ledger) -> Account:
    return open_account(ledger, GRAPH, num_nodes=9, budget=Budget(epsilon=2.0, delta=1e-6))


def statement_of(
    ledger: Ledger,
    account: Account,
    file: Path,
    charge_entries: list[Entry],
    *,
    simulated: bool = False,
) -> str:
    return make_statement(
        balance=account,
        charge_entries=charge_entries,
        ledger=ledger,
        simulated=simulated,
        run="digest",
        file=ReleasedFile(file.name, sha256_of(file), {"hop*_*": "sums"}),
        now=0.0,
    )


@pytest.fixture
def file(tmp_path: Path, ledger: Ledger, account: Account) -> Path:
    """A released file with its statement."""
    path = tmp_path / "released.parquet"
    path.write_bytes(b"released values")
    first = ledger.head()[0]
    for _ in range(2):
        event = GaussianRelease(noise_std=account.noise_std_for(releases=5))
        account.charge(event, None, run="export")
    text = statement_of(ledger, account, path, list(ledger.entries(after=first)))
    statement_path(path).write_text(text)
    return path


def test_a_statement_lists_what_was_charged(file: Path, ledger: Ledger, account: Account) -> None:
    facts = verify_file(file)
    assert (facts["epsilon"], facts["delta"], facts["relation"]) == (2.0, 1e-6, "edge")
    assert facts["spent_epsilon"] == account.spent_epsilon() < 2.0
    assert [release["ledger_entry"] for release in facts["releases"]] == [4, 5]
    assert all(release["claims"] == ["R-SUM", "R-GRID"] for release in facts["releases"])
    assert facts["ledger_head"].startswith("5:")
    assert facts["time"] == "1970-01-01T00:00:00+00:00"
    assert facts["simulated"] is False
    assert not any("seed" in line for line in facts["not_covered"])


def test_a_statement_contains_no_graph_name_and_no_secret(file: Path, ledger: Ledger) -> None:
    text = statement_path(file).read_text()
    keys = ledger.keys
    for secret in (GRAPH, keys.signing.hex(), keys.chain.hex(), keys.fingerprint.hex()):
        assert secret not in text


def test_every_claim_has_its_proof(file: Path) -> None:
    claims = Path(__file__).parents[3] / "docs" / "claims"
    facts = verify_file(file)
    claims_of_releases = {claim for release in facts["releases"] for claim in release["claims"]}
    for claim in claims_of_releases | set(facts["composed_by"]):
        assert (claims / f"{claim}.md").is_file()


def test_simulated_noise_is_stated_first(file: Path, ledger: Ledger, account: Account) -> None:
    statement_path(file).write_text(statement_of(ledger, account, file, [], simulated=True))
    facts = verify_file(file)
    assert facts["simulated"] is True
    assert "nothing is protected" in facts["not_covered"][0]


def test_a_changed_file_is_detected(file: Path) -> None:
    file.write_bytes(b"released valueS")
    with pytest.raises(
        VesperError, match=r"is not the file that released\.statement\.json describes"
    ):
        verify_file(file)


def test_a_changed_statement_is_detected(file: Path) -> None:
    path = statement_path(file)
    path.write_text(path.read_text().replace('"epsilon": 2.0', '"epsilon": 1.0'))
    with pytest.raises(VesperError, match=r"statement\.json: the signature does not match"):
        verify_file(file)


def test_the_key_is_that_of_the_ledger(file: Path, tmp_path: Path) -> None:
    key = verify_file(file)["public_key"]
    assert verify_file(file, public_key=key)
    other = "ab" * 32
    with pytest.raises(VesperError, match="signed with another key"):
        verify_file(file, public_key=other)


@pytest.mark.parametrize("missing", ["released.parquet", "released.statement.json"])
def test_both_files_are_needed(file: Path, missing: str) -> None:
    (file.parent / missing).unlink()
    with pytest.raises(InputError, match=f"{missing}: cannot be read"):
        verify_file(file)


def test_another_kind_of_signed_file_is_refused(file: Path, ledger: Ledger) -> None:
    from vesper.privacy.ledger.statement import sign_facts

    statement_path(file).write_text(sign_facts({"kind": "menu"}, signing_key=ledger.keys.signing))
    with pytest.raises(InputError, match="expected a vesper release statement of format 1"):
        verify_file(file)
    statement_path(file).write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="found none"):
        verify_file(file)


def test_a_charge_that_no_claim_covers_is_refused(
    file: Path, ledger: Ledger, account: Account
) -> None:
    account.charge(PureRelease(epsilon=0.01, what="count"), None, run="degrees")
    with pytest.raises(ValueError, match="no claim covers a pure release"):
        statement_of(ledger, account, file, list(ledger.entries(after=5)))


def test_an_account_without_a_budget_is_refused(file: Path, ledger: Ledger) -> None:
    unlimited = open_account(ledger, "other", num_nodes=9)
    with pytest.raises(ValueError, match="with a budget"):
        statement_of(ledger, unlimited, file, [])


def test_a_statement_is_readable_json(file: Path) -> None:
    assert json.loads(statement_path(file).read_text())["kind"] == "vesper release statement"
