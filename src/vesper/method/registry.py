"""Methods by name."""

from vesper.errors import InputError
from vesper.method.method import Method
from vesper.method.mlp import MlpMethod
from vesper.method.vesper import VesperMethod

METHODS: dict[str, Method] = {method.name: method for method in (VesperMethod(), MlpMethod())}


def find_method(name: str) -> Method:
    """Give the method of this name."""
    if name not in METHODS:
        raise InputError(f"--method: expected one of {', '.join(METHODS)}, got '{name}'")
    return METHODS[name]
