"""Data sets of a study: folders of the user, or simulators in their place.

| name | data set of the paper | simulated with --small |
| --- | --- | --- |
| products | ogbn-products | 30,000 nodes |
| reddit | Reddit | 6,000 nodes |
| finance | Finance | 20,000 nodes |

Small graphs are trained with smaller degrees. Even so the paper's accountant requires 1.4 to 5.3
times the noise that it requires at full size, where an edge is hidden among more nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vesper.datasets.block_model.published_graphs import PRODUCTS_LIKE, REDDIT_LIKE
from vesper.datasets.block_model.simulate_graph import BlockModel, simulate
from vesper.datasets.finance.simulate_finance import NUM_NODES, simulate_finance
from vesper.datasets.loaders.convert import convert
from vesper.errors import InputError
from vesper.progress import Progress, no_progress
from vesper.session.config import PRESETS, suggest_key

Simulator = Callable[[Path, int, Progress], None]


@dataclass(frozen=True, kw_only=True)
class KnownDataset:
    """A data set of the paper, and its simulator."""

    title: str
    simulate: Simulator
    num_nodes: int
    small_nodes: int
    small_settings: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class DatasetSource:
    """Source of a data set of one study."""

    name: str
    folder: Path | None = None
    """Folder of the user; None if simulated."""
    num_nodes: int = 0
    """Number of nodes to simulate."""
    paper_settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Describe the source in one line; equal lines mean equal data."""
        if self.folder is not None:
            return f"folder {self.folder.resolve()}"
        return f"simulated, {self.num_nodes:,} nodes"


def _block_model(model: BlockModel) -> Simulator:
    def draw(out: Path, num_nodes: int, progress: Progress) -> None:
        simulate(model, out, num_nodes=num_nodes, progress=progress)

    return draw


def _finance(out: Path, num_nodes: int, progress: Progress) -> None:
    simulate_finance(out, num_nodes=num_nodes, progress=progress)


KNOWN: Mapping[str, KnownDataset] = {
    "products": KnownDataset(
        title="ogbn-products",
        simulate=_block_model(PRODUCTS_LIKE),
        num_nodes=PRODUCTS_LIKE.num_nodes,
        small_nodes=30_000,
        small_settings={
            "width": 64,
            "message_width": 64,
            "max_degree": 5,
            "min_degree": 5,
            "epochs": 5,
        },
    ),
    "reddit": KnownDataset(
        title="Reddit",
        simulate=_block_model(REDDIT_LIKE),
        num_nodes=REDDIT_LIKE.num_nodes,
        small_nodes=6_000,
        small_settings={
            "width": 64,
            "message_width": 64,
            "max_degree": 5,
            "min_degree": 5,
            "epochs": 5,
        },
    ),
    "finance": KnownDataset(
        title="Finance",
        simulate=_finance,
        num_nodes=NUM_NODES,
        small_nodes=20_000,
        small_settings={
            "width": 64,
            "message_width": 64,
            "max_degree": 5,
            "min_degree": 3,
            "epochs": 2,
        },
    ),
}


def find_sources(
    names: Sequence[str], *, data: Path | None, small: bool
) -> dict[str, DatasetSource]:
    """Find the source of each data set: a folder with its name in `data`, or else its simulator.

    Raises:
        InputError: there is no such folder, or no folder and no simulator of that name.
    """
    if data is not None and not data.is_dir():
        raise InputError(
            f"--data {data}: expected a folder with one folder per data set, found none"
        )
    sources = {name: _source(name, data, small) for name in names}
    if data is not None and all(source.folder is None for source in sources.values()):
        folders = sorted(path.name for path in data.iterdir() if path.is_dir())
        raise InputError(
            f"--data {data}: expected a folder for at least one of {', '.join(names)}, found "
            f"{', '.join(folders[:3]) or 'none'}; without --data they are simulated"
        )
    return sources


def _source(name: str, data: Path | None, small: bool) -> DatasetSource:
    known = KNOWN.get(name)
    small_settings = known.small_settings if known and small else {}
    settings = {**(PRESETS[name] if known else {}), **small_settings}
    if data is not None and (data / name).is_dir():
        return DatasetSource(name=name, folder=data / name, paper_settings=settings)
    if known is None:
        hint = "it has no simulator, so give --data" if data is None else f"{data} has none"
        raise InputError(f"unknown data set '{name}': {hint}{suggest_key(name, list(KNOWN))}")
    num_nodes = known.small_nodes if small else known.num_nodes
    return DatasetSource(name=name, num_nodes=num_nodes, paper_settings=settings)


def make_folders(source: DatasetSource, work: Path, *, progress: Progress = no_progress) -> Path:
    """Return a folder with data/ and label/; create it once below `work` if the user has none."""
    if source.folder is not None and (source.folder / "data").is_dir():
        return source.folder
    folder = work / source.name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        if source.folder is not None:
            convert(source.folder, folder, progress=progress)
        else:
            KNOWN[source.name].simulate(folder, source.num_nodes, progress)
    return folder
