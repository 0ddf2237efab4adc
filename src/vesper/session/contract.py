"""The run contract: one text of all shared settings, approved by both sides, compared as text.

    contract   sorted JSON, {"privacy": {...}, "run": {...}}, without nested tables
    approval   <state>/contract.json at each party: settings and their digest

The peer's contract is untrusted until it has been parsed here: its size is limited, it has two
levels and known kinds of values, and there is only one way to write it.
"""

import json
import re
from pathlib import Path
from typing import Any

from vesper.errors import InputError, RemoteProtocolError, VesperError, first_three
from vesper.files import replace_file
from vesper.method.settings import Config

MAX_CONTRACT_LENGTH = 1 << 16
MAX_SHOWN_LENGTH = 60

_NAME = re.compile("[a-z][a-z0-9_]{0,63}")

Flat = dict[str, str]
"""`table.key` to its value as JSON."""


def contract_text(config: Config) -> str:
    """Write the shared settings in the canonical form that both sides use.

    >>> contract_text(Config())[:40]
    '{"privacy":{"accounting":"exact","aggreg'
    """
    return _canonical_json(json.loads(config.model_dump_json()))  # infinity as text: JSON has none


def contract_differences(mine: str, theirs: str) -> list[str]:
    """List the settings that differ, one line each; empty if the contracts are equal.

    Args:
        mine: `contract_text` of this side.
        theirs: the peer's text, as received.

    Raises:
        RemoteProtocolError: the peer's text is not a contract.
    """
    return _differences(mine, theirs, "here", "there")


def approve(state: Path, config: Config) -> None:
    """Write the approval, replacing an earlier one.

    Raises:
        InputError: the folder cannot be written.
    """
    content = {"contract": config.contract, "settings": json.loads(contract_text(config))}
    path = approval_path(state)
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, f"{json.dumps(content, indent=2, sort_keys=True)}\n".encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None


def refuse_unapproved(state: Path, config: Config) -> None:
    """Refuse settings that nobody has approved at this party.

    Raises:
        InputError: there is no approval, or a setting has changed since.
    """
    changed = changes_since_approval(state, config)
    if changed is None:
        raise InputError(
            f"{approval_path(state)}: expected the approved contract, found none; read it and "
            f"approve it with `vesper contract --config FILE --approve`"
        )
    if changed:
        raise InputError(
            f"{approval_path(state)}: {len(changed)} settings have changed since the approval "
            f"({first_three(changed)}); approve them with `vesper contract --config FILE "
            f"--approve`, or change them back"
        )


def approval_path(state: Path) -> Path:
    """Return the path of a party's approval."""
    return state / "contract.json"


def changes_since_approval(state: Path, config: Config) -> list[str] | None:
    """List the settings that differ from the approval; None if there is no approval.

    Raises:
        InputError: the file is not an approval.
    """
    path = approval_path(state)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    try:
        before = _canonical_json(json.loads(text)["settings"])
        return _differences(contract_text(config), before, "now", "approved")
    except (ValueError, TypeError, KeyError, RecursionError, VesperError):
        raise InputError(
            f"{path}: expected an approved contract, found something else; remove it and approve "
            f"again with `vesper contract --config FILE --approve`"
        ) from None


def _differences(first: str, second: str, where: str, elsewhere: str) -> list[str]:
    one, other = _flat(first), _flat(second)
    return [
        f"{key}: {_short_value(one.get(key))} {where}, {_short_value(other.get(key))} {elsewhere}"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def _canonical_json(settings: Any) -> str:
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def _flat(text: str) -> Flat:
    """Parse a contract that may come from anybody."""
    if len(text) > MAX_CONTRACT_LENGTH:
        raise RemoteProtocolError(
            f"the peer's contract has {len(text)} characters, the limit is {MAX_CONTRACT_LENGTH}"
        )
    try:
        tables = json.loads(text)
        is_canonical = _canonical_json(tables) == text
    except (ValueError, RecursionError):  # not JSON, or nested too deeply
        raise RemoteProtocolError("the peer sent a contract that is not JSON") from None
    if not is_canonical or not isinstance(tables, dict):
        raise RemoteProtocolError("the peer sent a contract that is not in canonical form")
    flat: Flat = {}
    for table, values in tables.items():
        if not isinstance(values, dict):
            raise RemoteProtocolError("the peer sent a contract with a setting outside of tables")
        for key, value in values.items():
            if isinstance(value, dict | list):
                raise RemoteProtocolError("the peer sent a contract with a table inside a table")
            if not (_NAME.fullmatch(table) and _NAME.fullmatch(key)):
                raise RemoteProtocolError("the peer sent a contract with an invalid name")
            flat[f"{table}.{key}"] = json.dumps(value)
    return flat


def _short_value(value: str | None) -> str:
    """Shorten a value to one line, whatever the peer put into it."""
    if value is None:
        return "not known"
    return value if len(value) <= MAX_SHOWN_LENGTH else f"{value[:MAX_SHOWN_LENGTH]}..."
