"""Methods by name, and the settings that each of them reads.

Settings that are given but not read change nothing. They are reported and not refused, because one
file of settings may serve several methods.
"""

from collections.abc import Callable

from vesper.method.base import Method
from vesper.method.baselines.gnn import GcnMethod, GinMethod
from vesper.method.baselines.hop_releases import GapMethod, ProgapMethod
from vesper.method.baselines.mlp import MlpMethod
from vesper.method.baselines.noisy_graph import EdgeRandMethod, LapGraphMethod
from vesper.method.baselines.paper import PaperMethod
from vesper.method.baselines.vfgnn import VfgnnMethod
from vesper.method.certified.method import CertifiedMethod
from vesper.method.settings import Config, PrivacySettings, RunSettings, expect_method_name

_ALL: tuple[Method, ...] = (
    CertifiedMethod(),
    PaperMethod("gin"),
    PaperMethod("gcn"),
    MlpMethod(),
    GinMethod(),
    GcnMethod(),
    VfgnnMethod(),
    GapMethod(),
    ProgapMethod(),
    EdgeRandMethod(),
    LapGraphMethod(),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}


def find_method(name: str) -> Method:
    """Return the method of this name, or of this former name."""
    return METHODS[expect_method_name(name)]


SUM_BASELINES = {"gap", "progap"}
CERTIFIED_METHODS = {"certified", *SUM_BASELINES}


def _for_methods(*methods: str) -> Callable[[Config], bool]:
    return lambda config: config.run.method in methods


USED_BY: dict[str, Callable[[Config], bool]] = {
    "hops": lambda config: config.run.method != "mlp",
    "first_share": _for_methods(*CERTIFIED_METHODS),
    "accounting": _for_methods(*CERTIFIED_METHODS, "vfgnn", "edgerand", "lapgraph"),
    "privacy_unit": lambda config: config.run.method not in {"mlp", "gin", "gcn"},  # or refused
    "max_degree": lambda config: (
        config.run.method not in {"mlp", *CERTIFIED_METHODS}
        or config.privacy.privacy_unit == "node"
        or config.privacy.accounting == "theorem-1"
    ),
    "min_degree": lambda config: (
        config.run.method == "paper-gcn" or config.privacy.aggregator == "gcn-clamped"
    ),
    "clip": _for_methods("vfgnn"),
    "spectral_norm": lambda config: config.run.method not in {"mlp", *CERTIFIED_METHODS},
    "noise_reading": _for_methods("paper-gin", "paper-gcn"),
    "message_width": _for_methods(*SUM_BASELINES),
    "members": _for_methods("certified", "mlp"),
    "steps": lambda config: config.run.encoder != "mlp",
    "degree_share": _for_methods("certified"),
    "label_messages": _for_methods("certified"),
    "decoder_inputs": lambda config: config.run.method not in {"mlp", *CERTIFIED_METHODS},
    "features": lambda config: config.run.method not in {"mlp", *CERTIFIED_METHODS},
}
"""Whether a configuration reads a setting; settings that are not listed are always read."""


def unused_settings(config: Config) -> list[str]:
    """Return the names of settings that are not at their default and that the method ignores.

    >>> unused_settings(Config(run=RunSettings(method="mlp", steps=3, members=2)))
    ['steps']
    """
    given = dict(config.privacy) | dict(config.run)
    default_values = dict(PrivacySettings()) | dict(RunSettings())
    own = find_method(config.run.method).defaults
    return [
        name
        for name, is_used in USED_BY.items()
        if given[name] not in (default_values[name], own.get(name)) and not is_used(config)
    ]
