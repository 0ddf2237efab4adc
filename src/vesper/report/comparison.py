"""Runs side by side: what they reached, what they guarantee, what differs between their settings.

    ComparedRun    one run with its contents, under a name that no other of them has
    Comparison     all of them, and the settings in which they differ

Every fact has one value per run, in their order; None where a side does not know it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vesper.errors import InputError
from vesper.method.settings import Config
from vesper.report.contents import Contents, contents_of_run
from vesper.report.live_run import charged_ledger
from vesper.report.privacy import Privacy
from vesper.report.run_folder import read_run
from vesper.report.run_list import guarantee_of, stated_epsilon
from vesper.report.run_naming import distinct_names
from vesper.report.sections import moment
from vesper.report.tradeoff_chart import Tradeoff


@dataclass(frozen=True, kw_only=True)
class ComparedRun:
    """One of the runs."""

    name: str
    config: Config
    privacy: Privacy
    contents: Contents | None
    """None at the data party, which knows no metric."""

    @property
    def charges(self) -> list[str]:
        """What the run was charged, as far as this side knows."""
        charged = self.privacy.run_charges
        return [] if charged is None else [charge.what for charge in charged.charges]

    @property
    def facts(self) -> dict[str, Any]:
        """Every fact by its name, for tables and programs."""
        contents, privacy = self.contents, self.privacy
        charged = privacy.run_charges
        stds = [value for value in privacy.noise_stds if value]
        return {
            "data": None if contents is None else contents.data or None,
            "date": None if contents is None or contents.date is None else moment(contents.date),
            "method": self.config.run.method,
            "metric": None if contents is None else contents.metric,
            "validation": None if contents is None else contents.validation,
            "test": None if contents is None else contents.test,
            "guarantee": guarantee_of(privacy),
            "epsilon": stated_epsilon(privacy),
            "delta": privacy.delta,
            "unit": privacy.unit if privacy.kind in ("certified", "edge-free") else None,
            "best_guess": privacy.best_guess,
            "first_noise_std": stds[0] if stds else None,
            "releases": privacy.releases,
            "spent_epsilon": None if charged is None else charged.spent_epsilon,
            "seconds": None if contents is None else contents.seconds,
        }

    @property
    def tradeoff(self) -> Tradeoff | None:
        """The point of the run on an epsilon-utility curve, if it has a metric."""
        if self.contents is None:
            return None
        test = self.contents.test
        return Tradeoff(
            method=self.contents.method,
            metric=self.contents.metric,
            split="validation" if test is None else "test",
            guarantee=guarantee_of(self.privacy),
            epsilon=stated_epsilon(self.privacy),
            value=self.contents.validation if test is None else test,
            data=self.contents.data,
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two or more runs, in the order in which they were given."""

    runs: tuple[ComparedRun, ...]

    @property
    def names(self) -> list[str]:
        """The name of each run."""
        return [run.name for run in self.runs]

    @property
    def differing_settings(self) -> dict[str, list[Any]]:
        """Settings that are not the same in all runs, with the value of each run."""
        dumps = [run.config.model_dump(mode="json") for run in self.runs]
        columns = {
            key: [dump[table][key] for dump in dumps]
            for table, values in dumps[0].items()
            for key in values
        }
        return {
            key: values
            for key, values in columns.items()
            if any(value != values[0] for value in values)
        }

    def as_json(self) -> dict[str, Any]:
        """Return everything that a comparison shows."""
        return {
            "runs": [
                {
                    "run": run.name,
                    **run.facts,
                    "verdict": run.privacy.verdict,
                    "charges": run.charges,
                }
                for run in self.runs
            ],
            "differing_settings": {
                key: dict(zip(self.names, values, strict=True))
                for key, values in self.differing_settings.items()
            },
        }


def compare_runs(
    folders: Sequence[Path], *, ledgers: Mapping[Path, Path] | None = None
) -> Comparison:
    """Read several finished runs.

    Args:
        folders: of the runs.
        ledgers: ledger of a data party by the folder of its run, where it is not noted there.

    Raises:
        InputError: fewer than two runs, one of them twice, or one that cannot be read.
    """
    if len(folders) < 2:
        raise InputError(
            f"expected two or more run folders to compare, got {len(folders)}; 'vesper runs DIR' "
            "lists them"
        )
    resolved = [folder.resolve() for folder in folders]
    for k, folder in enumerate(folders):
        if resolved[k] in resolved[:k]:
            raise InputError(f"{folder}: expected different runs, got this one twice; remove one")
    names = distinct_names(list(folders))
    return Comparison(
        runs=tuple(
            _read(folder, name, (ledgers or {}).get(folder))
            for folder, name in zip(folders, names, strict=True)
        )
    )


def _read(folder: Path, name: str, ledger: Path | None) -> ComparedRun:
    ledger = ledger or charged_ledger(folder)
    run = read_run(folder, ledger=ledger)
    contents = contents_of_run(folder, ledger=ledger) if "metric" in run.result else None
    return ComparedRun(name=name, config=run.config, privacy=run.privacy, contents=contents)
