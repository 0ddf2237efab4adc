"""Declaration of a study: blocks of settings, where a list stands for each of its values.

    title = "How many layers"
    datasets = ["finance"]
    seeds = 3

    [[grid]]
    series = "GIN, {hops} layers"          # names a curve; by default the method
    method = "paper-gin"
    as_paper = true                        # start from the paper's settings for the data set
    epsilon = [4, 8]
    hops = [1, 2, 3]                       # any setting of `vesper simulate`
    when_small = { hops = [1, 2] }         # what replaces them with --small

With `best = "GIN"`, the curves of a block, and of all others with the same `best`, are
configurations of one curve of that name: at every epsilon, its score is that of the configuration
with the highest mean test metric, as the paper's main table has the better decoder of its full one.

Methods that add no noise are run once per seed, at epsilon inf.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vesper.errors import InputError
from vesper.method.settings import Config, PrivacySettings, current_name
from vesper.session.config import explain_first_error, load_config, read_toml
from vesper.study.cell import Cell, needs_no_epsilon, settings_digest
from vesper.study.sets import DatasetSource

DEFAULT_EPSILON = PrivacySettings().epsilon
EPSILON_FREE = ("training", "membership")
"""Measures with equal results at every epsilon for a method without noise."""


class GridBlock(BaseModel):
    """A block of a grid: every combination of the values in its lists."""

    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="strings")

    series: str | None = None
    datasets: tuple[str, ...] | None = None
    measure: str = "training"
    as_paper: bool = False
    best: str | None = None
    when_small: dict[str, Any] = Field(default_factory=dict)

    @property
    def method_names(self) -> set[str]:
        """Names of the methods that the block runs."""
        given = (self.model_extra or {}).get("method", "certified")
        return {str(name) for name in (given if isinstance(given, list) else [given])}

    def combinations(self, *, small: bool = False) -> Iterator[dict[str, Any]]:
        """Yield settings with one value each."""
        given = {**(self.model_extra or {}), **(self.when_small if small else {})}
        lists = [value if isinstance(value, list) else [value] for value in given.values()]
        for values in itertools.product(*lists):
            settings = dict(zip(given, values, strict=True))
            if "method" in settings:
                settings["method"] = current_name(str(settings["method"]))
            yield settings | {"epsilon": _number(settings.get("epsilon", DEFAULT_EPSILON))}

    def name_of(self, settings: Mapping[str, Any]) -> str:
        """Return the name of the curve that a combination belongs to."""
        if self.series is not None:
            try:
                return self.series.format(**settings)
            except (KeyError, IndexError, ValueError):
                raise InputError(
                    f"series '{self.series}': expected names of settings of its block in braces, "
                    f"for example {{{next(iter(settings), 'hops')}}}"
                ) from None
        lists = [key for key, value in (self.model_extra or {}).items() if isinstance(value, list)]
        words = [f"{key}={settings[key]}" for key in lists if key not in ("method", "epsilon")]
        return ", ".join([str(settings.get("method", "certified")), *words])


class SmallSettings(BaseModel):
    """What `--small` changes, in addition to the size of simulated data sets."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seeds: int = Field(default=2, ge=1)
    epsilon: tuple[float, ...] | None = None
    """Finite epsilons to run; None for all."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of blocks with `as_paper`; they override those of the data sets."""


class Grid(BaseModel):
    """A whole study."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")

    title: str
    datasets: tuple[str, ...]
    seeds: int = Field(default=5, ge=1)
    small: SmallSettings = SmallSettings()
    grid: tuple[GridBlock, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _datasets_are_listed(self) -> "Grid":
        names = {name for block in self.grid for name in block.datasets or ()}
        if names - set(self.datasets):
            raise ValueError(
                f"a block uses {sorted(names - set(self.datasets))[0]}, which is not in "
                f"'datasets' at the top; add it there"
            )
        return self


def read_grid(path: Path) -> Grid:
    """Read a TOML file.

    Raises:
        InputError: the file cannot be read or is invalid.
    """
    try:
        return Grid.model_validate(read_toml(path))
    except ValidationError as error:
        raise InputError(explain_first_error(path, error, [*Grid.model_fields])) from None


@dataclass(frozen=True)
class PlannedCell:
    """A cell with its settings and the name of its measure."""

    cell: Cell
    config: Config
    measure: str


def plan_cells(
    grid: Grid, sources: Mapping[str, DatasetSource], *, seeds: int, small: bool
) -> list[PlannedCell]:
    """Plan all cells, each once, ordered by seed so that an early table has results everywhere.

    Raises:
        InputError: settings are invalid, or different settings would have the same name.
    """
    cells: dict[Cell, PlannedCell] = {}
    for seed, dataset in itertools.product(range(seeds), grid.datasets):
        for block in grid.grid:
            if dataset not in (block.datasets or grid.datasets):
                continue
            for settings in _settings_of(block, grid, small=small):
                start = grid.small.settings if small and block.as_paper else {}
                planned = _plan_cell(block, {**start, **settings}, sources[dataset], seed)
                same = cells.setdefault(planned.cell, planned)
                if settings_digest(same.config) != settings_digest(planned.config):
                    raise InputError(
                        f"grid: different settings have the name '{planned.cell}'; distinguish "
                        f"them in 'series', for example with {{max_degree}}"
                    )
    return list(cells.values())


def _settings_of(block: GridBlock, grid: Grid, *, small: bool) -> Iterator[dict[str, Any]]:
    """Yield the combinations of a block that are run."""
    wanted = grid.small.epsilon if small else None
    for settings in block.combinations(small=small):
        method, epsilon = str(settings.get("method", "certified")), settings["epsilon"]
        if block.measure in EPSILON_FREE and needs_no_epsilon(method):
            yield settings | {"epsilon": math.inf}
        elif wanted is None or epsilon in wanted or not math.isfinite(epsilon):
            yield settings


def names_of(grid: Grid, *, small: bool) -> Iterator[tuple[str, str, float]]:
    """Yield data set, series and epsilon of every cell, in the order of the grid."""
    for dataset in grid.datasets:
        for block in grid.grid:
            if dataset in (block.datasets or grid.datasets):
                for settings in _settings_of(block, grid, small=small):
                    yield dataset, block.name_of(settings), settings["epsilon"]


def configurations_of(grid: Grid, *, small: bool) -> dict[tuple[str, str, float], list[str]]:
    """Return the series that are configurations of each best curve, by its key, in grid order."""
    series: dict[tuple[str, str, float], list[str]] = {}
    for dataset in grid.datasets:
        for block in grid.grid:
            if block.best is not None and dataset in (block.datasets or grid.datasets):
                for settings in _settings_of(block, grid, small=small):
                    key = dataset, block.best, settings["epsilon"]
                    series.setdefault(key, []).append(block.name_of(settings))
    return series


def _number(value: object) -> float:
    """Parse an epsilon; a grid stored as JSON has infinity as a string.

    Raises:
        InputError: the value is not a number.
    """
    try:
        return float(str(value))
    except ValueError:
        raise InputError(f"grid: expected a number for epsilon, got '{value}'") from None


def _plan_cell(
    block: GridBlock, settings: Mapping[str, Any], source: DatasetSource, seed: int
) -> PlannedCell:
    if block.as_paper and not source.paper_settings:
        raise InputError(
            f"grid: 'as_paper' needs the paper's settings, and there are none for '{source.name}'; "
            f"leave it out and write the settings in the block"
        )
    start = source.paper_settings if block.as_paper else {}
    config = load_config(None, {**start, **settings, "seed": seed})
    cell = Cell(
        dataset=source.name,
        method=config.run.method,
        epsilon=config.privacy.epsilon,
        seed=seed,
        series=block.name_of(settings),
    )
    return PlannedCell(cell, config, block.measure)
