"""A seed that the peer must not know, kept in the state folder so that a run can go on."""

import os
import secrets
from dataclasses import replace
from pathlib import Path

from vesper.run.agreement import Agreement


def with_secret_seed(agreement: Agreement, path: Path) -> Agreement:
    """Noise and samples of a plan without account come from a seed that the peer must not know."""
    if not path.exists():
        partial = path.with_suffix(".partial")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(str(secrets.randbits(62)))
        os.replace(partial, path)
    run = agreement.config.run.model_copy(update={"seed": int(path.read_text())})
    return replace(agreement, config=agreement.config.model_copy(update={"run": run}))
