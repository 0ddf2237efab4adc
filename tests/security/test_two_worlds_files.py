"""Files and output that others may be shown are the same in both worlds."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.two_worlds import GRAPH, World, both_worlds, expect_equal, force_releases
from typer.testing import CliRunner

from vesper.cli.app import app
from vesper.export import writer
from vesper.mechanism import degree_histogram
from vesper.mechanism.degree_histogram import DegreeHistogram
from vesper.session.journal import open_journal


@pytest.fixture
def worlds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[World]:
    """Both worlds, in which time stands still."""
    force_releases(monkeypatch)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    defaults = vars(open_journal)["__wrapped__"].__kwdefaults__  # bound when it was imported
    monkeypatch.setitem(defaults, "clock", time.time)
    monkeypatch.setattr(writer, "new_run_name", lambda what: f"{what} 1")
    return both_worlds(tmp_path)


def call(world: World, *arguments: str) -> str:
    """Run a command; note its exit code and output without this world's path."""
    done = CliRunner().invoke(app, list(arguments))
    text = done.stdout.replace(str(world.root), "ROOT")
    world.seen.outcomes.append(f"{arguments[0]} exits with {done.exit_code}: {text}")
    return done.stdout


@pytest.mark.parametrize("graph", [GRAPH, "a-new-name"])
@pytest.mark.parametrize("labelled", [False, True])
def test_an_export(worlds: list[World], graph: str, labelled: bool) -> None:
    for world in worlds:
        out, data = world.root / "features.parquet", world.root if labelled else world.root / "data"
        call(
            world,
            *("release", "--data", str(data), "--epsilon", "2", "--out", str(out), "--json"),
            *("--graph", graph, "--ledger", str(world.ledger), "--set", "epochs=2"),
        )
        world.note_files({"features": out, "statement": out.with_suffix(".statement.json")})
        world.note_entries()
    statement = json.loads(worlds[0].seen.files["statement"])
    assert not {"ledger_head", "ledger_entry", "entries"} & statement.keys()
    assert all("ledger_entry" not in release for release in statement["releases"])
    expect_equal(worlds)


def test_an_export_that_does_not_fit(worlds: list[World]) -> None:
    for world in worlds:
        out = world.root / "features.parquet"
        call(
            world,
            *("release", "--data", str(world.root / "data"), "--epsilon", "0.2", "--out", str(out)),
            *("--graph", GRAPH, "--ledger", str(world.ledger)),
        )
        assert world.seen.outcomes[-1].startswith("release exits with 1")
        assert not out.exists()
        world.note_entries()
    expect_equal(worlds)


@pytest.mark.parametrize("form", ["--json", "--as-paper"])
def test_counts(worlds: list[World], monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    really_release = degree_histogram.release_histogram

    def release(*given: Any, **named: Any) -> DegreeHistogram:
        drawn = really_release(*given, **named)
        counts = tuple(float(k) for k in range(len(drawn.counts)))
        return DegreeHistogram(counts=counts, epsilon=drawn.epsilon)

    monkeypatch.setattr(degree_histogram, "release_histogram", release)
    for world in worlds:
        call(
            world,
            *("degrees", str(world.root), "--epsilon", "0.5", form, "--graph", GRAPH),
            *("--ledger", str(world.ledger)),
        )
        assert world.seen.outcomes[-1].startswith("degrees exits with 0")
        world.note_entries()
    expect_equal(worlds)


@pytest.mark.parametrize("role", ["label", "data"])
def test_a_report(worlds: list[World], monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    for world in worlds:
        world.run(monkeypatch)
        page = world.root / "report.html"
        state, ledger = world.root / "label-state", ("--ledger", str(world.ledger))
        call(world, "report", str(state), "--out", str(page), *(ledger if role == "data" else ()))
        text = re.sub(str(world.root), "ROOT", page.read_text())
        world.seen.files["page"] = text.encode()
        world.note_entries()
    expect_equal(worlds)
