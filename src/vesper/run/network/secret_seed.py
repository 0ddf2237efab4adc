"""A seed that the peer must not know, kept in the state folder so that a run can go on."""

import secrets
from dataclasses import replace
from pathlib import Path

from vesper.run.agreement import Agreement
from vesper.whole_file import write_whole


def with_secret_seed(agreement: Agreement, path: Path) -> Agreement:
    """Noise and samples of a plan without account come from a seed that the peer must not know."""
    if not path.exists():
        write_whole(path, str(secrets.randbits(62)).encode())
    run = agreement.config.run.model_copy(update={"seed": int(path.read_text())})
    return replace(agreement, config=agreement.config.model_copy(update={"run": run}))
