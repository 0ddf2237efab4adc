"""Template of a party's TOML file: every setting with its explanation.

Explanations are the docstrings of the settings. Settings that a person must decide on are written
out; all others appear as `#name = default`, so that the defaults of the chosen method apply.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic.fields import FieldInfo

from vesper.deployment.config.party_config import PartySettings, TlsSettings
from vesper.deployment.identity.request import write_new_file
from vesper.method.settings import PrivacySettings, RunSettings, Settings

RoleName = Literal["data", "label"]

HEADING = """\
# Settings of the {role} party of a run of vesper. Paths are relative to this file.
# Fill in [party] and [tls], agree with the other party on [privacy] and [run], then:
#
#   vesper contract --config {file} --approve
#   vesper preflight --config {file}
#   vesper party {role} --config {file}
#
# A line like '#width = 128', without a space after '#', is a setting left to its default.
"""

TABLE_COMMENTS = {
    "party": "# This party: who it is, where its files are, how it reaches the peer.",
    "tls": "# Certificates that prove who this party is. Make them with `vesper cert`.",
    "privacy": "# Shared with the peer: what changes epsilon. Equal at both parties.",
    "run": "# Shared with the peer: what cannot change epsilon. Equal at both parties.",
}

MULTI_PARTY_COMMENT = """\
# With several data parties: no peer, listen or connect in [party], but one table for each, as in
#
#   [[data_party]]
#   name = "platform"
#   connect = "platform.example:7101"
#   epsilon = 2.0             # left out: as in [privacy]
#   when_lost = "go-on"       # left out: as in [party]; "go-on" continues without it
#
#   [[data_party]]
#   name = "own-graph"        # this party's own graph
#   own = true
#   folder = "own"
#   graph = "bank-transfers"
"""

UNCOMMENTED_SETTINGS = {"party.patience", "party.when_lost", "privacy.epsilon", "run.method"}
"""Settings that are written out although they have a default."""

NONE_CHOSEN: Mapping[str, str | None] = {}

SHOWN_DEFAULTS = {"party.graph": "payments-2026-11", "party.ledger": "ledger.sqlite"}
"""What settings without a fixed default look like; they stay commented out."""

ADDRESSES = {"party.listen", "party.connect"}

TABLES: dict[str, type[Settings]] = {
    "party": PartySettings,
    "tls": TlsSettings,
    "privacy": PrivacySettings,
    "run": RunSettings,
}


def write_template(
    path: Path,
    role: RoleName,
    *,
    graph: str | None = None,
    ledger: Path | None = None,
    listen: str | None = None,
    connect: str | None = None,
) -> None:
    """Write the file.

    Args:
        path: a new file.
        role: of the party.
        graph: name of the data party's graph; None: left to fill in.
        ledger: its ledger; None: this user's.
        listen: address at which this party waits for the other; None: see `connect`.
        connect: address of the other party. Without both addresses, the data party listens, and the
            label party has an example to fill in.

    Raises:
        InputError: the path already exists, or the folder cannot be written.
    """
    chosen = {
        "party.graph": graph,
        "party.ledger": None if ledger is None else str(ledger),
        "party.listen": listen,
        "party.connect": connect,
    }
    write_new_file(path, template_text(role, path.name, chosen).encode())


def template_text(role: RoleName, file: str, chosen: Mapping[str, str | None] = NONE_CHOSEN) -> str:
    """Return a file of everything a party can set, with examples where there is no default.

    Settings in `chosen` are written out.
    """
    lines = [HEADING.format(role=role, file=file)]
    written = {name: value for name, value in chosen.items() if value is not None}
    examples = _examples(role) | written
    if written.keys() & ADDRESSES:  # one of the two, instead of the example
        examples = {k: v for k, v in examples.items() if k not in ADDRESSES - written.keys()}
    for table, model in TABLES.items():
        lines += [TABLE_COMMENTS[table], f"[{table}]"]
        for name, field in model.model_fields.items():
            key = f"{table}.{name}"
            default = SHOWN_DEFAULTS.get(key, field.default)
            lines += _lines(name, field, examples.get(key, default))
            if key in examples.keys() | UNCOMMENTED_SETTINGS:
                lines[-1] = lines[-1].removeprefix("#")
        lines.append("")
    return "\n".join([*lines, MULTI_PARTY_COMMENT] if role == "label" else lines)


def _examples(role: RoleName) -> dict[str, str]:
    """Return examples of the settings that a person has to fill in."""
    name, peer = ("platform", "bank") if role == "data" else ("bank", "platform")
    own: dict[str, str] = {
        "party.role": role,
        "party.name": name,
        "party.peer": peer,
        "party.folder": role,
        "party.state": "state",
        "tls.certificate": f"tls/{name}.pem",
        "tls.key": f"tls/{name}.key",
        "tls.authority": "tls/authority.pem",
    }
    if role == "data":
        return own | {"party.listen": "0.0.0.0:7101"}
    return own | {"party.connect": "platform.example:7101"}


def _lines(name: str, field: FieldInfo, value: Any) -> list[str]:
    text = re.sub(r"\bNone\b", "left out", field.description or "")
    setting = f"#{name} =" if value is None else f"#{name} = {_toml(value)}"
    return [*(f"# {line}" for line in text.splitlines()), setting]


def _toml(value: Any) -> str:
    """Write one value.

    >>> _toml(True), _toml("a b"), _toml(1e-05), _toml(float("inf"))
    ('true', '"a b"', '1e-05', 'inf')
    """
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)
