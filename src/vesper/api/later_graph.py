"""A fitted model on a later graph: the weights of training, and releases of that graph.

    reserve for the later graph -> release what the chosen stage needs -> predict at no further cost

Nothing is fitted on it: weights, scales and centres are those of training, and what depends on
query nodes was decided there. Between parties on a network, `--answer --snapshot` does the same.
"""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vesper.api.fit_folder import FitFolder, identity_of, open_fit_folder
from vesper.api.fitted import FittedModel
from vesper.api.inputs import feature_matrix, num_rows, split_ids
from vesper.api.model_file import Arrays
from vesper.api.saving import encoded_estimator, write_model
from vesper.api.trained_model import TrainedModel
from vesper.api.training import covers, open_ledger
from vesper.deployment.saved_run import with_hops
from vesper.errors import InputError
from vesper.graph.features import Features
from vesper.graph.foreign import ForeignGraph, read_foreign
from vesper.mechanism.graph_version import version_of_graph
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.stored_door import CapturingDoor
from vesper.party.inference import InferenceParty, trained_arrays
from vesper.privacy.ledger.graph_name import SIMULATED_GRAPH, expect_graph_name
from vesper.privacy.ledger.reservation import return_unused
from vesper.privacy.ledger.store import Ledger, key_of
from vesper.report.budget_section import run_charges_of
from vesper.report.privacy import privacy_of
from vesper.serving.served_graph import without_probe
from vesper.session.doors import open_door
from vesper.session.result import new_run_name
from vesper.session.run_spec import RunSpec, make_run_spec


def fitted_on_later_graph(
    fitted: FittedModel,
    graph: Any,
    features: Any,
    *,
    ids: Any,
    kind: str,
    parameters: dict[str, Any],
) -> FittedModel:
    """Return the same model on a later graph.

    Args:
        fitted: the trained pair.
        graph: the later graph.
        features: of its nodes, or None when the graph holds them.
        ids: of its nodes.
        kind: class of the estimator.
        parameters: of the estimator, with the name of the later graph.

    Raises:
        InputError: some input cannot be used.
        BudgetError: the graph has too little budget left in the ledger.
    """
    features, named = split_ids(features, ids)
    foreign = read_foreign(graph, num_nodes=num_rows(features), ids=named)
    _refuse_other_ids(fitted.model, foreign)
    matrix = _features(fitted, foreign.features if features is None else features, foreign)
    run_spec = _run_spec_for(fitted, foreign)
    ledger = None if parameters["ledger"] is None else Path(parameters["ledger"])
    if ledger is not None and run_spec.noise_plan.plan != "edge-free":
        expect_graph_name(parameters["graph_name"], how="graph_name")
    identity = _identity(fitted, foreign, matrix, name=parameters["graph_name"])
    with ExitStack() as stack:
        opened = stack.enter_context(open_ledger(ledger))
        folder = None
        if ledger is not None and run_spec.noise_plan.plan == "certified":
            folder = stack.enter_context(_folder(ledger, opened, identity, foreign, parameters))
        run = folder.run if folder else new_run_name("later graph")
        stack.callback(return_unused, opened, run=run)
        is_simulated = parameters["simulate_noise"]
        noise = _simulated_noise(identity) if is_simulated else NoiseSource.from_os()
        door, run_spec = open_door(
            run_spec,
            foreign.graph,
            opened,
            noise,
            name=parameters["graph_name"] or SIMULATED_GRAPH,
            run=run,
            release_store=folder.release_store() if folder else None,
        )
        captured = CapturingDoor(door)
        model = _model_behind(captured, fitted.model, run_spec, foreign, matrix)
        privacy = privacy_of(
            run_spec.noise_plan,
            has_secure_noise=noise.is_private,
            covers=covers(run_spec.noise_plan.plan, ledger),
            run_charges=run_charges_of(opened, run=run),
        )
        sizes = {**fitted.contents.sizes, "nodes": foreign.graph.num_nodes}
        contents = replace(fitted.contents, privacy=privacy, sizes=sizes)
        later = replace(fitted, model=model, contents=contents)
        if folder is not None:
            write_model(folder.model, encoded_estimator(kind, parameters, later))
    return later


def _model_behind(
    door: CapturingDoor,
    trained: TrainedModel,
    run_spec: RunSpec,
    foreign: ForeignGraph,
    features: Features,
) -> TrainedModel:
    """Make the data side on the later graph, and the releases that the chosen stage needs."""
    side = run_spec.method.make_representation(
        run_spec.config,
        run_spec.sizes,
        noise_plan=run_spec.noise_plan,
        features=features,
        door=door,
    )
    model = replace(
        trained,
        run_spec=run_spec,
        data_side=side,
        last_stage=trained.stage,
        features=features,
        ids=foreign.ids,
        releases=door.releases,
        is_new=True,
    )
    InferenceParty(  # begins the stages, and loads everything into the representation
        side,
        model.node_ids,
        trained=trained_arrays(trained.data_side),
        roster=trained.roster,
        stage=trained.stage,
        is_new=True,
    )
    side.select_stage(trained.stage)
    return replace(model, reads_graph=door.gave_out_graph)


def _refuse_other_ids(trained: TrainedModel, foreign: ForeignGraph) -> None:
    """Refuse names of nodes that cannot be those of training: no node would be found again."""
    named = {None: "node numbers", True: "whole numbers as ids", False: "text as ids"}
    expected, found = (
        None if ids is None else ids.are_integers for ids in (trained.ids, foreign.ids)
    )
    if expected != found:
        raise InputError(
            f"ids: expected {named[expected]} as in training, got {named[found]}; name the nodes "
            f"of both graphs in the same way, since training nodes are found again by that"
        )


def _features(fitted: FittedModel, features: Any, foreign: ForeignGraph) -> Features:
    if features is None:
        raise InputError("features: expected the columns of training, got none; pass features=...")
    matrix = feature_matrix(features, num_nodes=foreign.graph.num_nodes)
    expected = fitted.model.features
    if matrix.shape[1] != expected.shape[1]:
        raise InputError(
            f"features: expected the {expected.shape[1]} columns of training in the same order, "
            f"got {matrix.shape[1]}"
        )
    if expected.dtype == np.uint8 and matrix.dtype != np.uint8:
        raise InputError(
            "features: expected bytes or booleans as in training, got other numbers; convert them"
        )
    return matrix if matrix.dtype == expected.dtype else matrix.astype(np.float32)


def _run_spec_for(fitted: FittedModel, foreign: ForeignGraph) -> RunSpec:
    trained = fitted.model.run_spec
    config = with_hops(fitted.contents.config, hops=trained.noise_plan.hops)
    sizes = replace(trained.sizes, num_nodes=foreign.graph.num_nodes)
    planned = make_run_spec(without_probe(config), sizes, num_val=0, num_test=0)
    return replace(planned, method=trained.method)  # may have an encoder of its own


def _identity(
    fitted: FittedModel, foreign: ForeignGraph, features: Features, *, name: str | None
) -> str:
    """Digest the trained model, the name of the graph and its features, but no edge."""
    trained: Arrays = trained_arrays(fitted.model.data_side)
    ids = None if foreign.ids is None else foreign.ids.values.to_pylist()
    facts = {
        "later graph": name,
        "ids": ids,
        "encoder": secrets.token_hex(8) if fitted.model.has_own_encoder else None,
        "settings": fitted.contents.config.model_dump(mode="json"),
    }
    return identity_of(facts, {**trained, "features": features})


def _simulated_noise(identity: str) -> NoiseSource:
    """Return noise that is the same for the same model, name and features, and for nothing else."""
    return NoiseSource.for_simulation(int(identity, 16))


@contextmanager
def _folder(
    path: Path,
    ledger: Ledger,
    identity: str,
    foreign: ForeignGraph,
    parameters: dict[str, Any],
) -> Iterator[FitFolder]:
    edges = version_of_graph(foreign.graph, key=key_of(ledger)).edges
    with open_fit_folder(
        path, identity=identity, what="later graph", seed=0, edges=edges
    ) as folder:
        folder.warn_if_changed(edges, name=parameters["graph_name"])
        yield folder
