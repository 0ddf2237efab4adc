"""Privacy facts of a run as a record of the OpenDP deployments registry.

Fields are named as in the records of the registry (its repository `deployments-registry-data`):
basic, dp_variant, privacy_loss, deployment_model, accounting, implementation, administrative. What
only people know comes from them or is null, and must be filled in before a record is submitted.
Epsilon is in `privacy_parameters` only where it is guaranteed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vesper.method.settings import Config
from vesper.report.privacy import Privacy
from vesper.report.words import release_description
from vesper.version import VERSION

Record = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Publisher:
    """What only people know; None where it was not given."""

    name: str | None = None
    curator: str | None = None
    intended_use: str | None = None
    region: str | None = None
    author: str | None = None


def registry_record(privacy: Privacy, config: Config, publisher: Publisher) -> Record:
    """Make the record of a run.

    Args:
        privacy: what the run guarantees.
        config: its settings.
        publisher: what people have stated about it.
    """
    curators = publisher.curator and [
        {"data_curator_name": publisher.curator, "data_curator_type": None}
    ]
    return {
        "url_slug": None,
        "status": "Draft",
        "tier": None,
        "deployment": {
            "basic": {
                "name": publisher.name,
                "data_curators": curators,
                "intended_use": publisher.intended_use,
                "data_product_type": "Machine learning model",
                "data_product_region": publisher.region,
                "description": f"{DESCRIPTION} Method: {config.run.method}.",
                "publication_date": None,
                "data_product_sector": None,
            },
            "dp_variant": {
                "variant_name": _variant(privacy),
                "data_domain": "Undirected graphs over a known set of nodes with known features.",
                "unprotected_quantities": UNPROTECTED,
            },
            "privacy_loss": _privacy_loss(privacy),
            "deployment_model": _model(privacy),
            "accounting": {
                "post_processing": POST_PROCESSING if _is_planned(privacy) else None,
                "composition": _composition(privacy),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": TUNING if _is_planned(privacy) else None,
                "mechanisms": _mechanisms(privacy, config),
                "justification": None,
            },
            "administrative": {
                "evidence_sources": None,
                "registry_authors": publisher.author and [publisher.author],
            },
        },
    }


def _variant(privacy: Privacy) -> str | None:
    if not privacy.is_private:
        return None
    return "Approximate DP" if privacy.delta else "Pure DP"


def _privacy_loss(privacy: Privacy) -> Record:
    parameters: Mapping[str, float | None] = {"epsilon": None, "delta": None}
    if privacy.kind == "edge-free":
        parameters = {"epsilon": 0.0, "delta": 0.0}
    elif privacy.is_private:
        parameters = {"epsilon": privacy.epsilon, "delta": privacy.delta}
    return {
        "privacy_unit": "Edge-level"
        if privacy.unit == "edge"
        else "Node-level, with all its edges",
        "privacy_unit_details": f"{UNITS[privacy.unit]} {KNOWN}",
        "privacy_parameters": dict(parameters),
        "privacy_parameters_details": f"{privacy.verdict} {_meaning(privacy)}".strip(),
    }


def _meaning(privacy: Privacy) -> str:
    if privacy.is_private and privacy.kind == "certified":
        return (
            f"A guess about it, at even odds before, is right with probability at most "
            f"{privacy.best_guess:.4f} after everything that was released."
        )
    if privacy.claimed_epsilon is not None and math.isfinite(privacy.claimed_epsilon):
        return "It is a claim, not a guarantee, so no parameters are stated."
    if privacy.kind == "edge-free":
        return ""
    return "Nothing is guaranteed, so no parameters are stated."


def _model(privacy: Privacy) -> Record:
    return {
        "model_name": "Central",
        "model_name_details": "The data party holds the graph and adds noise to what leaves it.",
        "actors": ACTORS,
        "release_type": "Many releases",
        "release_type_details": (
            f"Releases in training: {privacy.releases}. The budget covers {privacy.covers}; it is "
            f"never refreshed."
        )
        if _is_planned(privacy)
        else None,
        "data_source_type": "Static",
        "data_source_type_details": "A later snapshot of the graph counts as another graph.",
        "access_type": "Non-interactive",
        "access_type_details": None,
    }


def _is_planned(privacy: Privacy) -> bool:
    """Whether the plan has a proof; with simulated noise it still protects nothing."""
    return privacy.kind in ("certified", "edge-free")


def _composition(privacy: Privacy) -> str:
    if privacy.kind == "edge-free":
        return "None: no edge is read."
    if privacy.kind != "certified":
        return "Not certified: see privacy_parameters_details."
    return COMPOSITION if any(privacy.noise_stds) else "One pure release of a graph of noisy edges."


def _mechanisms(privacy: Privacy, config: Config) -> str:
    if privacy.kind == "edge-free":
        return f"None: no edge is read. vesper {VERSION}."
    stds = ", ".join(f"{value:.4g}" for value in privacy.noise_stds if value)
    mechanism = "As published by the method's authors."
    if privacy.kind == "certified":
        mechanism = "Edges with randomised response or discrete Laplace noise."
        if stds:
            mechanism = f"{release_description(config)}, with rounded Gaussian noise."
    noise = f"Noise: {privacy.noise}" + (f"; standard deviations: {stds}" if stds else "")
    return f"{mechanism} {noise}. vesper {VERSION}."


DESCRIPTION = (
    "A graph neural network trained by two institutions: one holds the graph and node features, "
    "the other the labels."
)
UNPROTECTED = (
    "Node ids, node features, number of nodes, which nodes are labelled, order of the batches, all "
    "settings, and the scale of the noise. Features must not be computed from edges."
)
UNITS = {
    "edge": "Two graphs are adjacent if they differ by one undirected edge.",
    "node": "Two graphs are adjacent if one is the other with all edges of one node removed; "
    "both respect a public maximum degree.",
}
KNOWN = "The receiver may know everything else, including the nodes of every batch."
ACTORS = (
    "The data party holds the graph and is trusted with it. The label party receives the releases "
    "and is the adversary: it may keep and combine everything. Anyone who sees predictions sees "
    "functions of the releases."
)
POST_PROCESSING = (
    "Encoder, decoder, gradients, early stopping, choice of the stage, and predictions are "
    "functions of the releases and of edge-free data."
)
COMPOSITION = (
    "Fully adaptive composition of Gaussian mechanisms (Gaussian DP): a ledger sums the cost of "
    "releases for each node, is charged before bytes leave, and refuses what exceeds the budget. "
    "The conversion to epsilon and delta is exact."
)
TUNING = (
    "Noise follows from public values. Tuning by the label party on releases that it already has "
    "is free; a run that requests new releases is charged."
)
