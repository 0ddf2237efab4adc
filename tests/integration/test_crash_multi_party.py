"""Any of three parties killed at any moment: the same weights, nothing spent or drawn twice."""

import random
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from vesper.graph.holdings import open_data
from vesper.graph.labels import open_labels
from vesper.mechanism.door import Door
from vesper.privacy.ledger.store import Ledger
from vesper.session.run_spec import run_spec_for
from vesper.simulation.in_process import InProcessDataParty, train_all_parties
from vesper.transport.transcript import first_difference

if TYPE_CHECKING:
    from tests.fixtures.processes import Forks, Several


@pytest.mark.parametrize(
    ("seed", "kills"),
    [(0, 3), *(pytest.param(seed, 40, marks=pytest.mark.nightly) for seed in range(1, 7))],
)
def test_killed_at_any_moment(
    several: "Several",
    forks: "Callable[[Mapping[str, Path]], Forks]",
    replay_door: Callable[[Path], Door],
    seed: int,
    kills: int,
) -> None:
    several.write_multi_party_config(own="")
    epochs = 6 * kills
    several.change("epochs = 2\n", f"epochs = {epochs}\npatience = {epochs}\n")
    several.change("patience = 5.0", "patience = 30.0")
    several.change('when_lost = "stop"', 'when_lost = "wait"')
    table = several.table()
    remote = {name: several.data(name) for name in several.data_files}
    parties = forks({**several.data_files, "bank": several.label_file})

    def start(name: str) -> None:
        configs = [remote[name]] if name in remote else table.peer_configs
        has_started = any((each.party.state / "session").exists() for each in configs)
        kind = "data" if name in remote else "multi-party"
        parties.start_party(name, start=kind, resume=has_started)

    parties.disturb(start, random.Random(seed), kills=kills, longest=1.2)
    assert parties.kills >= kills

    assert table.graph is not None
    configs = {**remote, "transfers": table.graph}
    data_parties = []
    labels = open_labels(table.own.party.folder)
    for name, config in configs.items():
        own = config.party
        assert own.ledger is not None
        with closing(Ledger(own.ledger, clock=lambda: 0.0)) as ledger:
            assert ledger.verify() is None
            assert sum(entry.cost > 0 for entry in ledger.entries()) == 3  # the probe and two hops
        theirs = table.own.party.state / "with" / name / "transcript.tsv"
        assert first_difference(own.state / "transcript.tsv", theirs) is None
        data = open_data(own.folder)
        run_spec = run_spec_for(config.shared, data, labels)
        data_parties.append(
            InProcessDataParty(run_spec, data, replay_door(own.state / "releases"), name)
        )
    undisturbed = train_all_parties(data_parties, labels)
    modules = [side.module for side in undisturbed.data_sides] + [undisturbed.label_side.module]
    places = [config.party.state / "result" / "data_party.npz" for config in configs.values()]
    places.append(table.own.party.state / "result" / "label_party.npz")
    for place, module in zip(places, modules, strict=True):
        weights, expected = np.load(place), module.state_dict()
        assert set(weights.files) == set(expected)
        assert all(np.array_equal(weights[name], expected[name].numpy()) for name in expected)
