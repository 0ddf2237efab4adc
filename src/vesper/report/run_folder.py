"""Reads a finished run from its folder: that of a simulation, or of either party."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.deployment.state_folder import session_run_name
from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.budget_section import RunCharges, read_run_charges
from vesper.report.privacy import Privacy
from vesper.session.result import DRAWN_BY_DATA_PARTY


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """What every side knows of a finished run."""

    folder: Path
    config: Config
    result: Mapping[str, Any]
    privacy: Privacy


def read_run(folder: Path, *, ledger: Path | None = None) -> RunFolder:
    """Read the run folder of `vesper simulate`, or the state folder of a party.

    Args:
        folder: of the run.
        ledger: the data party's, if available; a simulation has its own.

    Raises:
        InputError: the folder holds no finished run of this version.
    """
    folder = folder / "result" if (folder / "result" / "result.json").exists() else folder
    config_text, result = _text(folder / "config.json"), _json(folder / "result.json")
    try:
        config, session = Config.model_validate_json(config_text), result.get("session")
        run = result["run"] if session is None else session_run_name(session)
        return RunFolder(
            folder=folder,
            config=config,
            result=result,
            privacy=privacy_from(
                result["privacy"],
                session=session,
                run_charges=read_run_charges(ledger or folder / "ledger.sqlite", run=run),
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise version_error(folder, error) from None


def privacy_from(
    facts: Mapping[str, Any], *, session: str | None, run_charges: RunCharges | None
) -> Privacy:
    """State what the stored privacy facts of a run guarantee.

    Args:
        facts: `PrivacyFacts` as they are written.
        session: of two parties; None for a simulation, whose noise comes from a seed.
        run_charges: what the run was charged, if its ledger is available.
    """
    epsilon = facts["certified_epsilon"]
    is_simulated = facts.get("simulated", session is None and facts["plan"] != "edge-free")
    is_certified = session is not None and facts["plan"] == "certified" and not is_simulated
    return Privacy(
        epsilon=math.inf if epsilon is None else epsilon,
        delta=facts["delta"],
        is_private=facts["plan"] == "edge-free" or is_certified,
        kind=facts["plan"],
        claimed_epsilon=facts["claimed_epsilon"],
        noise=facts["noise"],
        noise_stds=tuple(facts["noise_stds"]),
        covers="a simulation: nothing was sent to anyone"
        if session is None
        else f"everything charged to the ledger of the data party; session {session[:8]}",
        unit=facts.get("unit", "edge"),  # older runs know no other unit
        run_charges=run_charges,
        planned_releases=facts["releases"],
        simulated=is_simulated,
        is_upper_bound=run_charges is None and facts["noise"] == DRAWN_BY_DATA_PARTY,
    )


def version_error(folder: Path, error: Exception) -> InputError:
    """Make the error for a folder that is not as this version writes it."""
    return InputError(
        f"{folder}: expected a run folder of this version of vesper ({error}); run "
        f"'vesper simulate' again"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise InputError(
            f"{path}: expected a run folder with {path.name}; give the --out of 'vesper simulate', "
            f"or the state folder of a party"
        ) from None


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except ValueError as error:
        raise InputError(f"{path}: not readable as JSON ({error})") from None
