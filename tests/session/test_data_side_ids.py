"""Ids of different types on the two sides are reported as such."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import RemoteProtocolError
from vesper.graph.holdings import open_data
from vesper.protocol.messages import Roster
from vesper.session.data_side import roster_nodes


@pytest.mark.parametrize(
    ("own", "theirs", "advice"),
    [
        ([1, 2, 3], ("1", "u2"), "ids here are whole numbers, theirs are text such as 'u2'"),
        ([1, 2, 3], ("1.0", "2.0"), "theirs are text such as '1.0'"),
        ([1, 2, 3], ("01", "02"), "theirs are text such as '01'"),
        (["u1", "u2", "u3"], ("1", "2"), "ids here are text, theirs look like whole numbers"),
        ([1, 2, 3], ("1", "7"), "`vesper align` lists them all"),
        (["u1", "u2", "u3"], ("u1", "u7"), "`vesper align` lists them all"),
    ],
)
def test_unknown_ids(
    tmp_path: Path,
    write_folders: Callable[..., Path],
    own: list[int] | list[str],
    theirs: tuple[str, ...],
    advice: str,
) -> None:
    folder = write_folders(
        tmp_path,
        nodes={"id": own, "f": [0.0, 0.0, 0.0]},
        edges={"src": own[:1], "dst": own[1:2]},
    )
    roster = Roster(
        train=theirs[:1], val=theirs[1:], test=(), label_posteriors=np.zeros((0, 2), np.float32)
    )
    with pytest.raises(RemoteProtocolError, match=advice):
        roster_nodes(open_data(folder / "data"), roster)
