"""What has to hold after a run, whatever happened during it; called in a process of its own.

Weights are those of an undisturbed run in this process that reads the same stored releases.
"""

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from vesper.deployment.config.multi_party_config import MultiPartyConfig, load_multi_party_config
from vesper.deployment.config.party_config import PartyConfig, load_party_config
from vesper.deployment.data_process import with_secret_seed
from vesper.graph.graph import Graph
from vesper.graph.holdings import DataHoldings, open_data
from vesper.graph.labels import LabelHoldings, open_labels
from vesper.mechanism.door import ClaimedDoor, ClosedDoor, Door, OpenDoor
from vesper.mechanism.noise import NoiseSource
from vesper.mechanism.noisy_graph.perturbed_graph import Perturbation
from vesper.mechanism.release_store import ReleaseStore
from vesper.method.settings import Config
from vesper.model.objective_factory import LabelResponses
from vesper.privacy.ledger.reservation import open_runs
from vesper.privacy.ledger.store import Ledger
from vesper.protocol.messages import EmbeddingQuery
from vesper.serving.embedding_cache import EmbeddingCache
from vesper.serving.embedding_server import open_embedding_server
from vesper.session.data_side import run_data_session
from vesper.session.label_responses import make_label_responses
from vesper.session.peer import Link
from vesper.session.run_spec import run_spec_for
from vesper.simulation import in_process
from vesper.simulation.in_process import InProcessDataParty, train_all_parties
from vesper.transport.transcript import first_difference, read_transcript

LEFTOVERS = ("*.partial", "partial-*", ".*.partial-*", ".partial-*", "releases/*.key", "*.head.*.*")
"""What must not be left once a run has ended: drafts, and keys of releases that are stored."""


def expect(holds: bool, what: str) -> None:
    """Fail with one line unless something holds; asserts may be switched off."""
    if not holds:
        raise SystemExit(f"expected {what}")


class ReplayDoor:
    """Gives out a run's stored releases in order, for an undisturbed run with the same noise."""

    def __init__(self, folder: Path) -> None:
        self._files = iter(sorted(folder.glob("*.npz")))

    def release(self, messages: Any, *, noise_std: float, aggregation: Any = None) -> Any:
        """Return the next stored sums."""
        return np.load(next(self._files))["sums"]

    def perturb(self, perturbation: Perturbation | None) -> Graph:
        """Return the next stored graph."""
        stored = np.load(next(self._files))
        return Graph(stored["indptr"], stored["neighbors"])

    def spending_summary(self) -> str:
        """Return an empty text: nothing is spent."""
        return ""

    def uncertified_graph(self) -> Graph:
        """Refuse."""
        raise SystemExit("expected calls for releases only")


def check_run(data: list[str], label: str) -> None:
    """Check a finished run of these data parties' files and the label party's file."""
    table = load_multi_party_config(Path(label))
    remote = [load_party_config(Path(path)) for path in data]
    configs = remote if table.graph is None else [*remote, table.graph]
    labels = open_labels(table.own.party.folder)
    with tempfile.TemporaryDirectory() as scratch:
        parties = [
            _undisturbed(config, labels, Path(scratch) / config.party.name) for config in configs
        ]
        responses = _responses(table.own, labels, Path(scratch) / "labels")
        with _secret_seeds({config.party.name: config.party.state for config in configs}, parties):
            trained = train_all_parties(parties, labels, responses=responses)
    for config, side in zip(configs, trained.data_sides, strict=True):
        _check_weights(config.party.state / "result" / "data_party.npz", side.module)
        _check_charges(config)
        _check_transcripts(config, table)
        check_no_leftovers(config.party.state.parent)
    _check_weights(table.own.party.state / "result" / "label_party.npz", trained.label_side.module)
    check_no_leftovers(table.own.party.state.parent)
    if table.own.party.ledger.exists():
        check_ledger(table.own.party.ledger)


def _undisturbed(config: PartyConfig, labels: LabelHoldings, scratch: Path) -> InProcessDataParty:
    data = open_data(config.party.folder)
    run_spec = run_spec_for(config.shared, data, labels)
    releases, plan = config.party.state / "releases", run_spec.noise_plan.plan
    door: Door
    if plan == "certified":
        door = ReplayDoor(releases)
    elif plan == "paper":
        copy = scratch / "releases"
        shutil.copytree(releases, copy) if releases.exists() else copy.mkdir(parents=True)
        door = ClaimedDoor(
            data.graph, noise=NoiseSource.from_os(), release_store=ReleaseStore(copy)
        )
    else:
        door = ClosedDoor() if plan == "edge-free" else OpenDoor(data.graph)
    return InProcessDataParty(run_spec, data, door, config.party.name)


@contextmanager
def _secret_seeds(states: dict[str, Path], parties: list[InProcessDataParty]) -> Iterator[None]:
    """Let data parties of the paper's plan draw from their secret seeds, as in the real run.

    The label party must not know these seeds, so they cannot be part of the run spec of both.
    """
    original = run_data_session
    paths = {id(party.data): states[party.name] / "seed" for party in parties}

    def run(config: Config, data: DataHoldings, link: Link, **more: Any) -> Any:
        door, run_spec = more.pop("door_opener")(None)
        if run_spec.noise_plan.plan == "paper":
            run_spec = with_secret_seed(run_spec, paths[id(data)])
        return original(config, data, link, door_opener=lambda _: (door, run_spec), **more)

    with patch.object(in_process, "run_data_session", run):
        yield


def _responses(config: PartyConfig, labels: LabelHoldings, scratch: Path) -> LabelResponses | None:
    """Read the responses to labels; drawing new ones would add entries."""
    if config.shared.privacy.label_epsilon is None:
        return None
    with ledger_copy(config.party.ledger, scratch) as ledger:
        before = ledger.head()
        responses = make_label_responses(
            config.shared, labels, ledger=ledger, noise=NoiseSource.from_os()
        )
        expect(ledger.head() == before, "every response in the ledger, drawn once")
    return responses


@contextmanager
def ledger_copy(path: Path, scratch: Path) -> Iterator[Ledger]:
    """Open a copy of a ledger, with its key and notes."""
    scratch.mkdir(parents=True)
    for each in path.parent.glob(f"{path.stem}*"):
        if each.is_file():
            shutil.copy(each, scratch)
    with closing(Ledger(scratch / path.name, clock=time.time)) as ledger:
        yield ledger


def _check_weights(place: Path, module: Any) -> None:
    expected = module.state_dict()
    with np.load(place) as weights:
        expect(set(weights.files) == set(expected), f"the weights of the model in {place.name}")
        for name, value in expected.items():
            same = np.array_equal(weights[name], value.numpy(), equal_nan=True)
            expect(same, f"{place.name}: {name} bit-identical to an undisturbed run")


def check_ledger(path: Path) -> Counter[tuple[str, Any]]:
    """Check chain, notes and reservations; count charges by run and number of the release."""
    with closing(Ledger(path, clock=time.time)) as ledger:
        problem = ledger.verify()
        expect(problem is None, f"an intact chain in {path.name}, found: {problem}")
        expect(not open_runs(ledger), f"no open reservation, found {open_runs(ledger)}")
        return Counter(
            (entry.run, entry.facts.get("number")) for entry in ledger.entries() if entry.cost > 0
        )


def _check_charges(config: PartyConfig) -> None:
    """Every stored release was charged once, and nothing else was."""
    if not config.party.ledger.exists():
        return
    charges = check_ledger(config.party.ledger)
    expect(set(charges.values()) <= {1}, f"one charge per release, found {dict(charges)}")
    stored = len(list((config.party.state / "releases").glob("*.npz")))
    is_certified = config.shared.run.method in (
        "certified",
        "gap",
        "progap",
        "edgerand",
        "lapgraph",
    )
    due = stored if is_certified else 0
    expect(charges.total() == due, f"{due} charges at {config.party.name}, found {dict(charges)}")


def _check_transcripts(config: PartyConfig, table: MultiPartyConfig) -> None:
    state = table.own.party.state
    theirs = state / "with" / config.party.name if table.peer_settings else state
    own = config.party.state / "transcript.tsv"
    different = first_difference(own, theirs / "transcript.tsv")
    if different is not None and different[0] is None:
        # A data party that was killed after its result was in place, and whose peer then did not
        # come back, has not seen the farewell.
        last = list(read_transcript(theirs / "transcript.tsv"))[-1]
        if different[1] == last and last.direction == "label>data":
            return
    expect(different is None, f"equal transcripts, found {different}")


def check_no_leftovers(folder: Path) -> None:
    """Nothing half-written and no key of a stored release is left."""
    found = sorted(
        str(path.relative_to(folder)) for pattern in LEFTOVERS for path in folder.rglob(pattern)
    )
    expect(not found, f"nothing half-written, found {found}")


def check_leftovers(folder: str) -> None:
    """Check that nothing half-written is left in a folder."""
    check_no_leftovers(Path(folder))


def choose_last_stage(folder: str) -> None:
    """Choose the last stage of a finished run for predictions: they need every release."""
    path = Path(folder) / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chosen_stage": 2}))


def check_answers(data: str, label: str, snapshot: str, graph: str) -> None:
    """Check a snapshot that was served: charges, reservations, and answers drawn once."""
    config, client = load_party_config(Path(data)), load_party_config(Path(label))
    charges = check_ledger(config.party.ledger)
    expect(set(charges.values()) <= {1}, f"one charge per release, found {dict(charges)}")
    served = {run for run, _ in charges if run.startswith("snapshot ")}
    expect(len(served) == 1, f"charges of one snapshot, found {served}")
    name = next(iter(served)).removeprefix("snapshot ")
    releases = sum(run == f"snapshot {name}" for run, _ in charges)
    expect(releases == 2, f"two charges of the snapshot, found {releases}")
    ids = [str(k) for k in range(len(open_data(Path(snapshot)).ids))]
    with closing(EmbeddingCache(client.party.state / "cache")) as cache:
        received = cache.find(name, 2, ids)
    expect(set(received) == set(ids), f"{len(ids)} answers, found {len(received)}")
    with open_embedding_server(config, snapshot=Path(snapshot), graph=graph) as undisturbed:
        reply = undisturbed.reply(EmbeddingQuery(number=1, ids=tuple(ids)), stage=2)
    same = np.array_equal(reply.values, np.stack([received[text] for text in ids]))
    expect(same, "answers bit-identical to those from the stored releases")
    expect(check_ledger(config.party.ledger) == charges, "no charge for asking again")
    for party in (config.party, client.party):
        check_no_leftovers(party.state.parent)
