"""Studies that come with the package: everything that the paper shows."""

from importlib.resources import as_file, files
from pathlib import Path

from vesper.errors import InputError
from vesper.run.setup.settings_file import nearest
from vesper.study.grid import Grid, read_grid

NAMES = (
    "table-1",
    "table-full",
    "trade-off",
    "max-degree",
    "min-degree",
    "batch-size",
    "degree-histograms",
    "membership",
)


def find_grid(name: str) -> tuple[str, Grid]:
    """Give the name and the grid of a preset, or of a TOML file.

    Raises:
        InputError: there is neither.
    """
    if name in NAMES:
        with as_file(files("vesper.study") / "presets" / f"{name}.toml") as path:
            return name, read_grid(path)
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path.stem, read_grid(path)
    raise InputError(
        f"unknown study '{name}'{nearest(name, NAMES)}; 'vesper study list' shows all, and a TOML "
        f"file with a grid of your own will do"
    )
