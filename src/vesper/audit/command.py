"""Setup of an audit from the options of `vesper audit`: settings, graph and canaries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vesper.audit.audit import AuditResult, audit
from vesper.audit.canaries import UNITS, Canaries, Unit, place_edges, place_nodes
from vesper.audit.small_graphs import AUDIT_TARGETS, AuditTarget, canaries_for, settings_for
from vesper.audit.trial import draw_nodes, draw_pairs
from vesper.errors import InputError
from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.graph.summary import refuse_unknown_labels
from vesper.method.registry import find_method
from vesper.method.settings import Config, RunSettings
from vesper.progress import Progress, no_progress
from vesper.session.config import load_config


def run_audit(  # noqa: PLR0913 (the options of `vesper audit`, nearly all by name)
    given: Mapping[str, Any],
    *,
    trials: int,
    config: Path | None = None,
    data: Path | None = None,
    target: str = "rows",
    canaries: int = 20,
    unit: str | None = None,
    confidence: float = 0.95,
    claim: float | None = None,
    progress: Progress = no_progress,
) -> AuditResult:
    """Audit a method on a small graph, or on party folders with the settings of a run.

    Args:
        given: settings by name; on a small graph they override its own.
        trials: number of runs with each canary, and as many without.
        config: TOML file of settings; it replaces those of the small graph.
        data: folder with `data/` and `label/`; None for the small graph of the target.
        target: where to look for a leak.
        canaries: number of canaries in a run, where they can be told apart.
        unit: what a canary is: an `edge`, or a `node` with all its edges; None for what the run
            protects.
        confidence: confidence of the bound.
        claim: claimed epsilon, if it differs from what the method promises.
        progress: receives progress reports.
    """
    audit_target = _target(target)
    if canaries < 1:
        raise InputError(f"--canaries: expected at least 1, got {canaries}")
    if data is None:
        method = find_method(str(given.get("method", RunSettings().method)))
        small = {} if config else settings_for(audit_target, method)
        settings = load_config(config, {**small, **given})
        canary_unit = _unit(unit, settings)

        def place(each: Config) -> Canaries:
            return canaries_for(audit_target, each, count=canaries, unit=canary_unit)

    else:
        if audit_target not in ("rows", "held-out"):
            raise InputError(
                f"--target: expected rows or held-out with --data, got '{target}', which needs its "
                f"own small graph"
            )
        settings = load_config(config, given)
        canary_unit = _unit(unit, settings)
        holdings = open_data(data / "data", progress=progress)
        labels = open_labels(data / "label", decimals=settings.run.task != "classification")
        refuse_unknown_labels(holdings.ids, labels)
        split = "train" if audit_target == "rows" else "val"
        seed = settings.run.seed
        if canary_unit == "edge":
            pairs = draw_pairs(holdings, labels, split=split, count=canaries, seed=seed)
            placed = place_edges(holdings, labels, pairs)
        else:
            nodes = draw_nodes(holdings, labels, split=split, count=canaries, seed=seed)
            placed = place_nodes(holdings, labels, nodes)

        def place(each: Config) -> Canaries:
            return placed

    return audit(
        settings,
        place,
        trials=trials,
        confidence=confidence,
        claim=claim,
        choose_seed=data is None,
        progress=progress,
    )


def _target(name: str) -> AuditTarget:
    for target in AUDIT_TARGETS:
        if name == target:
            return target
    raise InputError(f"--target: expected one of {', '.join(AUDIT_TARGETS)}, got '{name}'")


def _unit(name: str | None, settings: Config) -> Unit:
    for unit in UNITS:
        if unit == (name or settings.privacy.privacy_unit):
            return unit
    raise InputError(f"--unit: expected {' or '.join(UNITS)}, got '{name}'")
