"""A statement repeats the charges of the ledger, names no graph, and belongs to one file."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from vesper.errors import InputError, VesperError
from vesper.privacy.accounting.budget import Budget
from vesper.privacy.accounting.participation import noise_std_for
from vesper.privacy.events import GaussianRelease, PureRelease
from vesper.privacy.ledger.account import Account, open_account
from vesper.privacy.ledger.keys import key_path
from vesper.privacy.ledger.run_balance import balance_of_run
from vesper.privacy.ledger.statement import (
    ReleasedFile,
    make_statement,
    sha256_of,
    statement_path,
    verify_file,
)
from vesper.privacy.ledger.store import Ledger

GRAPH, RUN = "name-of-the-graph", "export 1f3d"
BUDGET = Budget(epsilon=2.0, delta=1e-6)
EVENT = GaussianRelease(noise_std=noise_std_for(budget=BUDGET, releases=5))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite", clock=lambda: 0.0)


@pytest.fixture
def account(ledger: Ledger) -> Account:
    return open_account(ledger, GRAPH, num_nodes=9, budget=BUDGET)


def statement_of(ledger: Ledger, file: Path, *, run: str = RUN, simulated: bool = False) -> str:
    return make_statement(
        balance=balance_of_run(ledger, run),
        epsilon=BUDGET.epsilon,
        ledger=ledger,
        simulated=simulated,
        run=run,
        file=ReleasedFile(file.name, sha256_of(file), {"hop*_*": "sums"}),
        now=0.0,
    )


@pytest.fixture
def file(tmp_path: Path, ledger: Ledger, account: Account) -> Path:
    """A released file with its statement."""
    path = tmp_path / "released.parquet"
    path.write_bytes(b"released values")
    for _ in range(2):
        account.charge(EVENT, None, run=RUN)
    statement_path(path).write_text(statement_of(ledger, path))
    return path


def test_a_statement_lists_what_was_charged(file: Path, ledger: Ledger, account: Account) -> None:
    facts = verify_file(file)
    assert (facts["epsilon"], facts["delta"], facts["relation"]) == (2.0, 1e-6, "edge")
    assert facts["spent_epsilon"] == pytest.approx(account.spent_epsilon(), rel=1e-6)
    assert facts["spent_epsilon"] < 2.0
    assert [release["noise_std"] for release in facts["releases"]] == 2 * [EVENT.noise_std]
    assert facts["run"] == RUN
    assert all(release["claims"] == ["R-SUM", "R-GRID"] for release in facts["releases"])
    assert facts["time"] == "1970-01-01T00:00:00+00:00"
    assert facts["simulated"] is False
    assert not any("seed" in line for line in facts["not_covered"])


def test_a_statement_does_not_depend_on_what_else_the_ledger_holds(tmp_path: Path) -> None:
    """Finding 1 of issue 30: it revealed whether today's edges equal those of an older graph."""
    texts = []
    for what in ("alone", "with other charges"):
        folder = tmp_path / what
        folder.mkdir()
        path = folder / "ledger.sqlite"
        key_path(path).write_bytes(bytes(32))  # equal keys: all else would differ anyway
        with closing(Ledger(path, clock=lambda: 0.0)) as ledger:
            account = open_account(ledger, GRAPH, num_nodes=9, budget=BUDGET)
            if what != "alone":
                counts = PureRelease(epsilon=0.5, what="degree histogram")
                account.charge(counts, None, run="degrees")
                account.charge(GaussianRelease(noise_std=60.0), None, run="another")
            account.charge(EVENT, None, run=RUN)
            path = folder / "released.parquet"
            path.write_bytes(b"released values")
            texts.append(statement_of(ledger, path))
    assert texts[0] == texts[1]


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


def test_simulated_noise_is_stated_first(file: Path, ledger: Ledger) -> None:
    statement_path(file).write_text(statement_of(ledger, file, simulated=True))
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
    with pytest.raises(InputError, match="expected a vesper release statement of format 2"):
        verify_file(file)
    statement_path(file).write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="found none"):
        verify_file(file)


def test_a_charge_that_no_claim_covers_is_refused(
    file: Path, ledger: Ledger, account: Account
) -> None:
    account.charge(PureRelease(epsilon=0.01, what="count"), None, run="degrees")
    with pytest.raises(ValueError, match="no claim covers a pure release"):
        statement_of(ledger, file, run="degrees")


def test_a_statement_is_readable_json(file: Path) -> None:
    assert json.loads(statement_path(file).read_text())["kind"] == "vesper release statement"
