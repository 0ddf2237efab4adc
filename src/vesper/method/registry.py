"""Methods by name."""

from vesper.errors import InputError
from vesper.method.edgerand import EdgeRandMethod
from vesper.method.gap import GapMethod
from vesper.method.gcn import GcnMethod
from vesper.method.gin import GinMethod
from vesper.method.lapgraph import LapGraphMethod
from vesper.method.method import Method
from vesper.method.mlp import MlpMethod
from vesper.method.paper import PaperMethod
from vesper.method.progap import ProgapMethod
from vesper.method.vesper import VesperMethod
from vesper.method.vfgnn import VfgnnMethod

_ALL: tuple[Method, ...] = (
    VesperMethod(),
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
    """Give the method of this name."""
    if name not in METHODS:
        raise InputError(f"method: expected one of {', '.join(METHODS)}, got '{name}'")
    return METHODS[name]
