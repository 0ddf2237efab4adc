"""Feature projection: what features contribute to a message instead of classes.

    along[u]      = unit(standardised features of u @ components)
    projection[u] = along[u] @ coefficients - mean,     cut to norm 1 where it is long

The probe chooses it where features of neighbours explain more of a label than their classes do,
and its regression gives the coefficients. A projection has one column per class, so hops stay as
wide, and as noisy, as they are with classes.
"""

import torch
from torch import Tensor

from vesper.method.certified.fitted_constants import FittedConstants
from vesper.model.feature_scaling import Inputs
from vesper.model.message_rows import projection_rows
from vesper.model.principal_components import ComponentProjection

ROWS_PER_BLOCK = 1 << 14
"""Nodes that are projected at a time."""
CLASS_PROJECTION_LENGTH = 0.5
"""Norm above which a projection is cut to 1, as a multiple of the root mean square norm."""
NUMBER_PROJECTION_LENGTH = 1.0
"""The same where labels are numbers, for which the size carries more information."""


def feature_projection(inputs: Inputs, constants: FittedConstants, *, ordered: bool) -> Tensor:
    """Project the features of all nodes: (num_nodes, num_classes), rows of norm at most 1.

    Args:
        inputs: features of all nodes.
        constants: hold components and coefficients; centre and size are fitted if they are not yet.
        ordered: labels are numbers.
    """
    assert constants.components is not None
    assert constants.projection is not None  # the probe has chosen it
    along, coefficients = ComponentProjection(inputs, constants.components), constants.projection
    projected = torch.empty(inputs.num_nodes, coefficients.shape[1])
    for start in range(0, len(projected), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        projected[rows] = along(rows) @ coefficients.float()
    if constants.projection_centre is None:
        constants.projection_centre = projected.mean(dim=0)
    projected -= constants.projection_centre
    if constants.projection_size is None:
        constants.projection_size = float(projected.square().sum(dim=1).mean().sqrt())
    length = NUMBER_PROJECTION_LENGTH if ordered else CLASS_PROJECTION_LENGTH
    return projection_rows(projected, length=torch.tensor(length * constants.projection_size))
