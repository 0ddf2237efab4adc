"""From what a user asks for to an audit: settings, graph and canaries."""

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


def run_audit(
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
        given: settings by name; on a small graph they win over its own.
        trials: runs with a canary, and as many without.
        config: TOML of settings; then nothing is set by the small graph.
        data: holds `data/` and `label/`; None for the small graph of the probe.
        target: where to look.
        canaries: how many canaries in a run, where they can be told apart.
        unit: what a canary is: an `edge`, or a `node` with all its edges; None for what the run
            protects.
        confidence: of the bound.
        claim: what was said of the run, where that is not what its method promises.
        progress: is told how far it is.
    """
    where = _target(target)
    if canaries < 1:
        raise InputError(f"--canaries: expected at least 1, got {canaries}")
    if data is None:
        method = find_method(str(given.get("method", RunSettings().method)))
        small = {} if config else settings_for(where, method)
        settings = load_config(config, {**small, **given})
        what = _unit(unit, settings)

        def place(each: Config) -> Canaries:
            return canaries_for(where, each, count=canaries, unit=what)

    else:
        if where not in ("rows", "held-out"):
            raise InputError(
                f"--target: expected rows or held-out with --data, got '{target}', which needs a "
                f"graph made for it"
            )
        settings = load_config(config, given)
        what = _unit(unit, settings)
        held = open_data(data / "data", progress=progress)
        labels = open_labels(data / "label", decimals=settings.run.task != "classification")
        refuse_unknown_labels(held.ids, labels)
        split = "train" if where == "rows" else "val"
        seed = settings.run.seed
        if what == "edge":
            pairs = draw_pairs(held, labels, split=split, count=canaries, seed=seed)
            placed = place_edges(held, labels, pairs)
        else:
            nodes = draw_nodes(held, labels, split=split, count=canaries, seed=seed)
            placed = place_nodes(held, labels, nodes)

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
