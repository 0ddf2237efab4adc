"""The contract as text: differences are listed, hostile texts are refused."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vesper.errors import InputError, RemoteProtocolError
from vesper.method.settings import Config
from vesper.session.config import load_config
from vesper.session.contract import (
    MAX_CONTRACT_LENGTH,
    approval_path,
    approve,
    changes_since_approval,
    contract_differences,
    contract_text,
    refuse_unapproved,
)

MINE = contract_text(Config())


def test_equal_settings_are_equal_texts() -> None:
    assert contract_text(load_config(None, {"epsilon": 4})) == MINE
    assert contract_differences(MINE, MINE) == []


def test_every_difference_is_named() -> None:
    theirs = contract_text(load_config(None, {"epsilon": 2.0, "seed": 7, "delta": 1e-6}))
    assert contract_differences(MINE, theirs) == [
        "privacy.delta: null here, 1e-06 there",
        "privacy.epsilon: 4.0 here, 2.0 there",
        "run.seed: 0 here, 7 there",
    ]


def test_infinity_is_a_value() -> None:
    theirs = contract_text(load_config(None, {"epsilon": float("inf")}))
    assert contract_differences(MINE, theirs) == ['privacy.epsilon: 4.0 here, "Infinity" there']


def test_a_setting_known_to_one_side_only() -> None:
    theirs = MINE.replace('"width":128', '"wings":2')
    assert contract_differences(MINE, theirs) == [
        "run.width: 128 here, not known there",
        "run.wings: not known here, 2 there",
    ]


@pytest.mark.parametrize(
    "theirs",
    [
        "",
        "garbage",
        "[]",
        "3",
        "null",
        '{"run":3}',
        '{"run":{"seed":[1]}}',
        '{"run":{"seed":{"a":1}}}',
        '{"run": {"seed":1}}',  # another way of writing the same
        '{"run":{"seed":1,"seed":2}}',
        '{"run":{"x.y":1}}',
        '{"run.x":{"y":1}}',
        '{"run":{"a\\nb":1}}',
        '{"run":{"' + "k" * 65 + '":1}}',
        "[" * 30_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        '{"run":{"seed":' + "9" * 20_000 + "}}",
        " " * (MAX_CONTRACT_LENGTH + 1),
        "\ud800",
    ],
    ids=range(19),
)
def test_a_text_that_is_not_a_contract_is_the_peers_fault(theirs: str) -> None:
    with pytest.raises(RemoteProtocolError, match="the peer"):
        contract_differences(MINE, theirs)


@given(st.text(alphabet='{}[]":,0123456789.eE-+ \\untrefals\n', max_size=60))
def test_any_text_is_a_contract_or_refused(theirs: str) -> None:
    try:
        messages = contract_differences(MINE, theirs)
    except RemoteProtocolError as error:
        messages = [str(error)]
    assert messages  # none of these texts is ours
    assert all(line.isprintable() for line in messages)


@given(st.text(max_size=200))
def test_values_of_the_peer_stay_short_and_on_one_line(value: str) -> None:
    theirs = json.dumps({"run": {"x": value}}, separators=(",", ":"))
    (line,) = [line for line in contract_differences(MINE, theirs) if line.startswith("run.x")]
    assert line.isprintable()
    assert len(line) < 120


def test_approval_holds_until_a_setting_changes(tmp_path: Path) -> None:
    state, config = tmp_path / "new" / "state", Config()
    with pytest.raises(InputError, match=r"found none; read it and approve it with `vesper contr"):
        refuse_unapproved(state, config)
    assert changes_since_approval(state, config) is None
    approve(state, config)
    refuse_unapproved(state, config)
    other = load_config(None, {"epsilon": 2.0})
    message = "1 settings have changed since the approval (first 1: privacy.epsilon: 2.0 now, 4.0 "
    with pytest.raises(InputError, match=re.escape(message)):
        refuse_unapproved(state, other)
    approve(state, other)
    refuse_unapproved(state, other)
    written = json.loads(approval_path(state).read_text())
    assert written["contract"] == other.contract
    assert [path.name for path in state.iterdir()] == ["contract.json"]


@pytest.mark.parametrize(
    "text", ["", "{}", '{"settings": 3}', "[" * 20_000, '{"settings":{"a":1}}']
)
def test_a_file_that_is_not_an_approval(tmp_path: Path, text: str) -> None:
    approval_path(tmp_path).write_text(text)
    with pytest.raises(InputError, match="expected an approved contract, found something else"):
        refuse_unapproved(tmp_path, Config())


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written"):
        approve(tmp_path / "file", Config())
