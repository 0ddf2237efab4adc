"""Saving and loading of fitted estimators: parameters and the fitted model, without pickle."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vesper.api.fitted import FittedModel
from vesper.api.fitted_facts import restored_fitted, stored_fitted
from vesper.api.model_file import Facts, decode_model, encode_model, read_model, write_model
from vesper.errors import InputError

if TYPE_CHECKING:
    from vesper.api.encoder import MakeEncoder

__all__ = ["checked_path", "decoded_estimator", "encoded_estimator", "read_model", "write_model"]

NOT_STORED = ("encoder", "progress")
"""Parameters that may be code; `encoder` is stored if it is a name."""


def encoded_estimator(kind: str, parameters: Facts, fitted: FittedModel) -> bytes:
    """Return the content of the file of a fitted estimator.

    Args:
        kind: name of its class.
        parameters: of the estimator.
        fitted: what it has learned.

    Raises:
        InputError: this model cannot be saved.
    """
    facts, arrays = stored_fitted(fitted)
    return encode_model({"estimator": kind, "parameters": _plain(parameters), **facts}, arrays)


def decoded_estimator(
    content: bytes, *, kind: str, encoder: "MakeEncoder | None", where: str
) -> tuple[Facts, FittedModel]:
    """Return parameters and the fitted model.

    Raises:
        InputError: it is not the file of such an estimator, or this version cannot use it.
    """
    facts, arrays = decode_model(content, where=where)
    found = facts.get("estimator")
    if found != kind:
        raise InputError(
            f"{where}: expected a fitted {kind}, found a {found}; use {found}.load(path)"
        )
    fitted = restored_fitted(facts, arrays, encoder=encoder, where=where)
    parameters = dict(facts["parameters"])
    if encoder is not None:
        parameters["encoder"] = encoder
    return parameters, fitted


def checked_path(path: Any) -> Path:
    """Return the path of a model file; refuse anything else and a folder."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path: expected the path of a file, got {type(path).__name__}")
    if Path(path).is_dir():
        raise InputError(f"{path}: expected the path of a file, got a folder; add a file name")
    return Path(path)


def _plain(parameters: Facts) -> Facts:
    """Return parameters as JSON has them; functions are left out."""
    plain = {key: value for key, value in parameters.items() if key not in NOT_STORED}
    if isinstance(parameters["encoder"], str):
        plain["encoder"] = parameters["encoder"]
    return {key: _plain_value(value) for key, value in plain.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "items"):
        return {str(key): _plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    return value.item() if callable(getattr(value, "item", None)) else str(value)
