"""The command on the page reproduces the settings of the run, whatever they are."""

import shlex
from itertools import pairwise

import pytest

from vesper.cli.setting_options import settings_from_options
from vesper.report.contents import command_of
from vesper.session.config import load_config


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"method": "mlp", "seed": 7},
        {"epsilon": float("inf"), "hops": 2, "label_messages": False},
        {"method": "gap", "accounting": "as-published", "delta": 1e-7, "task": "ranking"},
    ],
)
def test_it_repeats_the_run(given: dict[str, object]) -> None:
    config = load_config(None, given)
    words = shlex.split(command_of(config))
    settings = [word for before, word in pairwise(words) if before == "--set"]
    method = words[words.index("--method") + 1]
    assert load_config(None, settings_from_options(settings, method=method)) == config
