"""Sections of a page: what is known is shown, what is not known is left out."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from vesper.method.options import AGGREGATORS_OF_METHOD
from vesper.report.budget_section import Charge, RunCharges
from vesper.report.contents import Contents
from vesper.report.sections import (
    budget_section,
    curve_sections,
    moment,
    privacy_section,
    settings_section,
    table,
)
from vesper.session.config import load_config
from vesper.session.observer import EpochFacts

CHARGED = RunCharges(
    charges=(Charge(what="gaussian <release>", time=0.0),),
    spent_epsilon=1.0,
    planned_epsilon=4.0,
    best_guess=0.55,
)


def test_every_charge_has_its_time() -> None:
    section = budget_section(CHARGED)
    assert "1. 1970-01-01 00:00:00 UTC" in section
    assert "gaussian &lt;release&gt;" in section
    assert "epsilon 1 of 4 is spent" in section


@pytest.mark.parametrize("aggregator", AGGREGATORS_OF_METHOD["certified"])
def test_the_aggregator_is_described(contents: Callable[..., Contents], aggregator: str) -> None:
    config = load_config(None, {"aggregator": aggregator})
    page = privacy_section(contents().privacy, config)
    assert f"exact in integers ({aggregator})" in page
    for plan in ("edge-free", "paper", "none"):
        assert "Computed from edges" not in privacy_section(contents(plan).privacy, config)


@pytest.mark.parametrize("planned", [None, math.inf])
def test_without_a_limit_there_is_no_gauge(planned: float | None) -> None:
    assert "<svg" not in budget_section(replace(CHARGED, planned_epsilon=planned))


def test_curves_only_where_this_side_knows_them() -> None:
    known = EpochFacts(stage=0, epoch=0, is_best=True, loss=0.5, validation=60.0)
    assert len(curve_sections([known], metric="Accuracy")) == 2
    assert len(curve_sections([replace(known, loss=None)], metric="Accuracy")) == 1
    assert curve_sections([replace(known, validation=None)], metric="Accuracy") == []
    assert curve_sections([], metric="Accuracy") == []


def test_settings_and_the_command() -> None:
    config = load_config(None, {"epsilon": math.inf})
    section = settings_section(config, command="vesper simulate --set 'a<b'")
    assert "<code>inf</code>" in section
    assert "<code>not set</code>" in section
    assert "a&lt;b" in section
    assert "Repeat this run" not in settings_section(config)


def test_names_are_escaped_and_times_are_the_same_everywhere() -> None:
    assert table({"<name>": "<b>html</b>"}) == (
        "<table><tr><th>&lt;name&gt;</th><td><b>html</b></td></tr></table>"
    )
    assert moment(86_400.0) == "1970-01-02 00:00:00 UTC"
