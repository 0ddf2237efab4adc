"""Choices, centres and scales that are fitted on the training graph and used on every other graph.

A trained model is one function: on a later graph, messages have the same content and sums the same
scales as on the training graph. A field is None, or lacks its key, until it is fitted.
"""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vesper.errors import VesperError


@dataclass(eq=False)
class FittedConstants:
    """Everything that is fitted once; the probe decides the first five."""

    use_labels: bool | None = None
    """Whether messages contain the labels of training nodes."""
    degree_share: float | None = None
    """Constant part of a message, where the probe chose one."""
    relay: bool | None = None
    """Whether hops pass on received sums."""
    projection: Tensor | None = None  # (components, num_classes)
    """Coefficients of the feature projection, where features replace classes."""
    project_later_hops: bool | None = None
    """Whether hops after the first contain the feature projection too."""
    is_probed: bool | None = None
    """Whether a probe decided the content of messages; it decides once."""
    components: Tensor | None = None  # (num_features, components)
    """Directions along which features are projected."""
    projection_centre: Tensor | None = None  # (num_classes,)
    """Mean of the feature projection over all nodes."""
    projection_size: float | None = None
    """Root mean square norm of the centred feature projection."""
    relay_rate: Tensor | None = None  # (num_classes,)
    """Class sums per neighbour, averaged over all nodes."""
    relay_size: float | None = None
    """Root mean square of what nodes received beyond that rate."""
    relay_jacobian: Tensor | None = None  # (num_classes, num_classes)
    """Derivative of a relayed message by the class sums in it, averaged over nodes."""
    query_nodes_lack_signal: bool | None = None
    """Whether query nodes receive less than half of what training nodes receive from relays."""
    degree_ratio: float | None = None
    """Mean degree of query nodes over that of training nodes, where it is clearly small."""
    centres: dict[str, Tensor] = field(default_factory=dict)  # stage -> (num_classes,)
    """Mean belief before each stage."""
    median_degrees: dict[str, Tensor] = field(default_factory=dict)  # stage -> ()
    """Median released degree before each stage."""
    column_scales: dict[str, Tensor] = field(default_factory=dict)  # hop -> (message_width,)
    """Root mean square of each column of a hop, or of the sum of all hops so far."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all fitted values as arrays by name."""
        values: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, dict):
                values |= {f"{each.name}/{key}": inner for key, inner in value.items()}
            elif value is not None:
                values[each.name] = value
        return {name: np.asarray(value) for name, value in values.items()}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Replace all values with stored ones.

        Raises:
            VesperError: a name is unknown.
        """
        names = {each.name for each in fields(self)}
        for name in names:
            setattr(self, name, {} if isinstance(getattr(self, name), dict) else None)
        for stored, array in arrays.items():
            name, _, key = stored.partition("/")
            if name not in names:
                raise VesperError(
                    f"fitted constants: expected one of {', '.join(sorted(names))}, found "
                    f"'{stored}', which another version has stored; train again"
                )
            if key:
                getattr(self, name)[key] = torch.from_numpy(array)
            else:
                setattr(self, name, torch.from_numpy(array) if array.ndim else array.item())
