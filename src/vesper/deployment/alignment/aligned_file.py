"""Result of an alignment in `<state>/aligned.parquet`, for the run that follows.

One column `id`, text, ascending; the proof and whether it was private are in the file's metadata. A
run leaves out labels of ids that are not in it, and refuses tables that have changed since.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vesper.deployment.alignment.align import Alignment
from vesper.errors import InputError, VesperError, first_three
from vesper.files import replacement_of
from vesper.graph.ids import Ids
from vesper.graph.labels import LabelHoldings

PROOF_KEY, PRIVATE_KEY_NAME = b"vesper_proof", b"vesper_private"


def aligned_path(state: Path) -> Path:
    """Return the path of the alignment in a state folder."""
    return state / "aligned.parquet"


def write_aligned(state: Path, alignment: Alignment) -> Path:
    """Write the alignment atomically, replacing an older one.

    Raises:
        VesperError: the folder cannot be written.
    """
    path = aligned_path(state)
    facts = {PROOF_KEY: alignment.proof.encode(), PRIVATE_KEY_NAME: str(alignment.private).encode()}
    table = pa.table({"id": alignment.ids}).replace_schema_metadata(facts)
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacement_of(path) as file:
            pq.write_table(table, file)
    except OSError as error:
        raise VesperError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def read_aligned(state: Path) -> Alignment | None:
    """Read the alignment; None if nothing was aligned.

    Raises:
        InputError: the file is not an alignment.
    """
    path = aligned_path(state)
    if not path.exists():
        return None
    try:
        table = pq.read_table(path)
        facts = table.schema.metadata or {}
        ids = table.column("id").cast(pa.large_string()).combine_chunks()
        proof, private = facts[PROOF_KEY].decode(), facts[PRIVATE_KEY_NAME] == b"True"
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError):
        raise InputError(
            f"{path}: expected what `vesper align` writes, found something else; align again"
        ) from None
    return Alignment(ids=ids, proof=proof, private=private)


def drop_unaligned_labels(labels: LabelHoldings, alignment: Alignment) -> LabelHoldings:
    """Leave out labels of ids that are not common.

    Raises:
        InputError: the labels are not those that were aligned.
    """
    texts = labels.ids.values.cast(pa.large_string())
    missing = pc.invert(pc.is_in(alignment.ids, value_set=texts))
    _refuse_changed(f"{labels.path}", alignment.ids.filter(missing).to_pylist(), "were removed")
    is_common = pc.is_in(texts, value_set=alignment.ids).to_numpy(zero_copy_only=False)
    if not alignment.private:
        new = texts.filter(pa.array(~is_common)).to_pylist()
        _refuse_changed(f"{labels.path}", new, "were added")
    rows = np.flatnonzero(is_common)
    return replace(
        labels,
        ids=Ids(labels.ids.values.take(pa.array(rows, type=pa.int64()))),
        labels=labels.labels[rows],
        splits=labels.splits[rows],
    )


def refuse_unaligned(nodes: Ids, alignment: Alignment, folder: Path) -> None:
    """Refuse a data party's folder that is not the one that was aligned.

    Raises:
        InputError: an aligned id is not a node there.
    """
    positions = nodes.positions_of_texts(alignment.ids)
    missing = alignment.ids.filter(pa.array(positions < 0)).to_pylist()
    _refuse_changed(f"{folder}", missing, "were removed")


def _refuse_changed(where: str, ids: list[str | None], what: str) -> None:
    if ids:
        raise InputError(
            f"{where}: {len(ids)} ids {what} since the alignment ({first_three(ids)}); align again "
            f"with `vesper align`"
        )
