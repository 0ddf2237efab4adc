"""Runs of all methods between two parties, and of several data parties, with faults on any side."""

from pathlib import Path
from random import Random

from chaos.faults import Action
from chaos.institutions import Institutions
from chaos.lab import Arguments, Member, Run, TrialPlace, check, settings_text
from chaos.processes import Processes
from chaos.trial import draw_fault

METHODS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "certified": ({"hops": 2}, {}),
    "certified-labels": ({"hops": 1, "label_epsilon": 3.0}, {}),
    "certified-node": ({"hops": 1, "privacy_unit": "node"}, {}),
    "certified-int8": ({"hops": 1}, {"wire": "int8", "local_updates": 2}),
    "gap": ({"hops": 2}, {"method": "gap"}),
    "progap": ({"hops": 2}, {"method": "progap"}),
    "edgerand": ({}, {"method": "edgerand"}),
    "lapgraph": ({}, {"method": "lapgraph"}),
    "vfgnn": ({}, {"method": "vfgnn"}),
    "paper-gin": ({}, {"method": "paper-gin"}),
    "paper-gcn": ({}, {"method": "paper-gcn"}),
    "gin": ({}, {"method": "gin"}),
    "gcn": ({}, {"method": "gcn"}),
    "mlp": ({}, {"method": "mlp"}),
}
"""Settings of [privacy] and [run], by variant: every method, and options that change the wire."""

ACTIONS: tuple[Action, ...] = (
    "kill",
    "kill",
    "kill",
    "power",
    "power",
    "full",
    "interrupt",
    "clock",
)


def run_party(processes: Processes, place: TrialPlace) -> None:
    """Run one method between two parties."""
    _run_institutions(processes, place, several=False)


def run_several(processes: Processes, place: TrialPlace) -> None:
    """Run a bank with its own graph, a platform and a telecom."""
    _run_institutions(processes, place, several=True)


def _run_institutions(processes: Processes, place: TrialPlace, *, several: bool) -> None:
    world = Institutions(place.folder, several=several)
    privacy, run = METHODS[place.variant]
    world.settings(settings_text(privacy), settings_text(run))
    members = [party_member(world, name) for name in (*world.data_names, "bank")]
    for member in draw_victims(members, place.chance):
        count = place.chance.choice((1, 1, 2, 3))
        if place.chance.random() < 0.2:
            member.kill_after = [place.chance.uniform(0.2, 6) for _ in range(count)]
        else:
            member.faults = [draw_fault(place.chance, ACTIONS) for _ in range(count)]
    Run(processes, members, place.report, place.chance).until_finished()
    check_parties(processes, world, place)


def party_member(world: Institutions, name: str) -> Member:
    """Return how a party is started: with --resume once it has a session."""

    def arguments() -> Arguments:
        resume = ["--resume"] if world.has_started(name) else []
        role = "label" if name == "bank" else "data"
        return ["party", role, "--config", world.file(name), *resume]

    return Member(name, arguments, world.root / name)


def draw_victims(members: list[Member], chance: Random) -> list[Member]:
    """Choose one member, or sometimes two."""
    return chance.sample(members, 2 if chance.random() < 0.25 else 1)


def check_parties(processes: Processes, world: Institutions, place: TrialPlace) -> None:
    """Check what must hold after a run."""
    files = [str(world.file(name)) for name in world.data_names]
    log = place.folder / "check.log"
    check(processes, "check_run", log, data=files, label=str(world.file("bank")))


def finished_run(processes: Processes, place: TrialPlace) -> Path:
    """Return the folder of a finished run, made by the first trial that needs it."""
    folder = place.shared / "finished"
    if not folder.exists():
        world = Institutions(place.shared / "training")
        world.settings("hops = 2\n", "")
        members = [party_member(world, name) for name in ("platform", "bank")]
        Run(processes, members, place.report, place.chance).until_finished()
        (place.shared / "training").rename(folder)
    return folder
