import pytest

from vesper.datasets.prepare.edge_free import (
    normalise,
    refuse_counterparty_columns,
    refuse_transfer_columns,
    refuse_transfer_types,
)
from vesper.errors import InputError


@pytest.mark.parametrize(
    ("name", "normal"),
    [("Top-Up", "top_up"), ("top up ", "top_up"), ("toUserId", "to_user_id"), ("支付!", "支付")],
)
def test_normalise(name: str, normal: str) -> None:
    assert normalise(name) == normal


@pytest.mark.parametrize(
    "column",
    [
        "dst",
        "Counterparty",
        "peer_id",
        "receiver",
        "numCounterparties",
        "payee",
        "to_user",
        "degree",
    ],
)
def test_a_column_that_names_another_user_is_refused(column: str) -> None:
    with pytest.raises(InputError, match="carry edges past the privacy guarantee") as error:
        refuse_counterparty_columns("a.csv", ["time", "user", column])
    assert f"first 1: {column}" in str(error.value)


def test_harmless_columns_pass() -> None:
    columns = ["time", "user", "type", "amount", "channel", "merchant", "peerless", "device"]
    refuse_counterparty_columns("a.csv", columns)


@pytest.mark.parametrize(
    "kind",
    ["transfer", "P2P", "p2p-send", "Transfer In", "remittance", "sendMoney", "peer payment"],
)
def test_a_type_that_is_a_transfer_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="carry edges past the privacy guarantee") as error:
        refuse_transfer_types("a.csv", [("login", 10), (kind, 7)])
    assert f"found 7 row(s) of 1 type(s) named like a transfer (first 1: {kind})" in str(
        error.value
    )


def test_harmless_types_pass() -> None:
    refuse_transfer_types("a.csv", [(kind, 1) for kind in ("login", "payment", "top_up", "bill")])


@pytest.mark.parametrize("declared", ["score", "gift"])
def test_declared_transfer_columns_and_types_are_refused(declared: str) -> None:
    with pytest.raises(InputError, match=r"refused.*number of counterparties"):
        refuse_transfer_columns(
            "a.csv", [declared], columns=["time", "score"], types=["login", "gift"]
        )


def test_a_declared_name_that_is_missing_is_refused_too() -> None:
    with pytest.raises(InputError, match="did you mean 'score'"):
        refuse_transfer_columns("a.csv", ["scores"], columns=["time", "score"], types=[])
    refuse_transfer_columns("a.csv", [], columns=["time", "score"], types=[])
