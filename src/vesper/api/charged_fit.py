"""One fit, and what a ledger adds: it is charged once, however often it is repeated.

| ledger | what happens |
| --- | --- |
| none, or nothing is certified | fit |
| with a finished fit of the same | load its model |
| otherwise | fit in a folder of its own (`fit_folder`), on releases that are already in it |
"""

import secrets
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.api.encoder import MakeEncoder
from vesper.api.fit_folder import FitFolder, identity_of, open_fit_folder
from vesper.api.fitted import FittedModel
from vesper.api.inputs import FitInputs
from vesper.api.model_file import read_model, write_model
from vesper.api.saving import decoded_estimator, encoded_estimator
from vesper.api.training import fit_in_process
from vesper.errors import InputError
from vesper.mechanism.graph_version import version_of_graph
from vesper.method.settings import Config
from vesper.privacy.ledger.graph_name import expect_graph_name
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.progress import Progress
from vesper.session.run_spec import run_spec_for


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """Everything that a fit depends on."""

    kind: str
    """Name of the estimator's class."""
    parameters: dict[str, Any]
    config_of: Callable[[int], Config]
    """Settings for a seed."""
    inputs_of: Callable[[Config], FitInputs]
    """Tables of the parties for settings, whose seed draws validation nodes."""
    encoder: MakeEncoder | None
    progress: Progress

    @property
    def ledger(self) -> Path | None:
        """File to charge."""
        given = self.parameters["ledger"]
        return None if given is None else Path(given)


def fit_once(request: FitRequest, *, seed: int) -> FittedModel:
    """Fit, or return what the same fit has left behind.

    Args:
        request: what to fit.
        seed: as given, or a new one; then an earlier fit without a seed keeps its own.

    Raises:
        InputError: some input cannot be used.
        BudgetError: this graph has too little budget left in the ledger.
    """
    config = request.config_of(seed)
    inputs = request.inputs_of(config)
    ledger = request.ledger
    if ledger is None or run_spec_for(config, inputs.data, inputs.labels).noise_plan.plan != (
        "certified"
    ):
        return _fit(request, config, inputs, None)
    name = expect_graph_name(request.parameters["graph_name"], how="graph_name")
    with closing(Ledger(ledger, clock=time.time)) as opened:
        edges = version_of_graph(inputs.data.graph, key=key_of(opened)).edges
    identity = _identity(request, config, inputs, has_seed=request.parameters["seed"] is not None)
    with open_fit_folder(ledger, identity=identity, what="fit", seed=seed, edges=edges) as folder:
        folder.warn_if_changed(edges, name=name)
        if folder.seed != seed:
            config = request.config_of(folder.seed)
            inputs = request.inputs_of(config)
        return _finished(request, folder) or _fit_and_save(request, config, inputs, folder)


def _identity(request: FitRequest, config: Config, inputs: FitInputs, *, has_seed: bool) -> str:
    """Digest settings and data, but no edge; nodes of a drawn validation set count as training."""
    settings = config.model_dump(mode="json")
    if not has_seed:
        settings["run"]["seed"] = None
    labels = inputs.labels
    order = labels.ids.order()
    facts = {
        "kind": request.kind,
        "graph": request.parameters["graph_name"],
        "settings": settings,
        "encoder": secrets.token_hex(8) if request.encoder else None,  # code has no digest
        "ids": None if inputs.ids is None else inputs.ids.values.to_pylist(),
        "labelled": labels.ids.take(order),
        "labels": [labels.classes[code] for code in labels.labels[order]],
        "splits": None if inputs.validation_is_drawn else labels.splits[order].tolist(),
    }
    return identity_of(facts, {"features": inputs.data.features})


def _finished(request: FitRequest, folder: FitFolder) -> FittedModel | None:
    """Load the model of a finished fit; one that cannot be loaded is fitted again, at no cost."""
    if not folder.model.exists() or request.encoder is not None:
        return None
    try:
        _, fitted = decoded_estimator(
            read_model(folder.model), kind=request.kind, encoder=None, where=str(folder.model)
        )
    except InputError as error:
        warnings.warn(f"{error}. It is fitted again from its releases, at no cost", stacklevel=5)
        return None
    return fitted


def _fit_and_save(
    request: FitRequest, config: Config, inputs: FitInputs, folder: FitFolder
) -> FittedModel:
    fitted = _fit(request, config, inputs, folder)
    try:
        write_model(folder.model, encoded_estimator(request.kind, request.parameters, fitted))
    except InputError as error:
        warnings.warn(f"the fitted model was not saved: {error}", stacklevel=5)
    return fitted


def _fit(
    request: FitRequest, config: Config, inputs: FitInputs, folder: FitFolder | None
) -> FittedModel:
    return fit_in_process(
        config,
        inputs,
        is_simulated=request.parameters["simulate_noise"],
        ledger=request.ledger,
        graph_name=request.parameters["graph_name"],
        folder=folder,
        encoder=request.encoder,
        progress=request.progress,
    )
