"""Frozen or disconnected peers and full disks are noticed in time; nothing is lost or leaked."""

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from tests.fixtures.processes import Parties

EPOCHS = 20
SETTINGS = f"hops = 2\n[run]\nepochs = {EPOCHS}\npatience = {EPOCHS}\nbatch_size = 8"
PATIENCE = 3.0
ROLES: tuple[Literal["data"], Literal["label"]] = ("data", "label")


@pytest.mark.parametrize("frozen", ["data", "label"])
def test_a_frozen_peer_is_noticed_within_the_patience_and_may_come_back(
    institutions: Any, two_parties: "Callable[..., Parties]", frozen: Any
) -> None:
    institutions.change("patience = 30.0", f"patience = {PATIENCE}")
    parties = two_parties(SETTINGS)
    survivor: Any = "label" if frozen == "data" else "data"
    for role in ROLES:
        parties.start(role)
    parties.wait_for_frames(40)
    parties.kill(frozen, signal.SIGSTOP)
    seconds = parties.wait_for(survivor, "has been silent for")
    assert seconds < 3 * PATIENCE  # patience, and what a busy machine adds
    name = parties.configs[frozen].party.name
    assert f"{name} has been silent" in parties.log(survivor)
    parties.kill(frozen, signal.SIGCONT)
    assert (parties.wait("data"), parties.wait("label")) == (0, 0)
    parties.check(releases=3)


def test_a_side_that_must_stop_does_so_with_the_exit_code_of_a_lost_peer(
    institutions: Any, two_parties: "Callable[..., Parties]"
) -> None:
    institutions.change('when_lost = "wait"', 'when_lost = "stop"')
    parties = two_parties(SETTINGS)
    for role in ROLES:
        parties.start(role)
    parties.wait_for_frames(40)
    parties.kill("label")
    assert parties.wait("data") == 4
    assert parties.wait("label") == -signal.SIGKILL
    assert "Traceback" not in parties.log("data")
    for role in ROLES:
        parties.start(role)
    assert (parties.wait("data"), parties.wait("label")) == (0, 0)
    parties.check(releases=3)


@pytest.mark.parametrize(
    ("role", "largest_file"),
    [("data", 45_000), ("label", 3_000), ("label", 9_000), ("label", 45_000)],
)
def test_a_full_disk_stops_a_side_before_it_sends(
    two_parties: "Callable[..., Parties]", role: Any, largest_file: int
) -> None:
    parties = two_parties(SETTINGS)
    other: Any = "label" if role == "data" else "data"
    parties.start(role, largest_file=largest_file)
    parties.start(other)
    assert parties.wait(role) == 1
    log = parties.log(role)
    assert "Traceback" not in log
    assert "cannot be written" in log or "cannot be stored" in log
    parties.start(role)
    assert (parties.wait(role), parties.wait(other)) == (0, 0)
    parties.check(releases=3)


def test_a_ledger_that_cannot_be_written_is_refused_before_anything_leaves(
    institutions: Any, two_parties: "Callable[..., Parties]"
) -> None:
    institutions.change("ledger.sqlite", "data.toml/ledger.sqlite")
    parties = two_parties(SETTINGS)
    parties.start("data")
    assert parties.wait("data") == 2
    assert "cannot be used as a ledger (Not a directory)" in parties.log("data")
    assert not (parties.configs["data"].party.state / "session").exists()


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two hosts on this machine, joined by one cable."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("needs root and iproute2 to make network namespaces")
    tag = uuid.uuid4().hex[:6]
    hosts = (f"vesper-a-{tag}", f"vesper-b-{tag}")
    ends = (f"va{tag}", f"vb{tag}")

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    try:
        for host in hosts:
            ip("netns", "add", host)
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for number, (host, end) in enumerate(zip(hosts, ends, strict=True), start=1):
            ip("link", "set", end, "netns", host)
            ip("-n", host, "link", "set", end, "name", "cable")
            ip("-n", host, "addr", "add", f"192.0.2.{number}/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")
            ip("-n", host, "link", "set", "lo", "up")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"needs network namespaces, which cannot be made here ({error.stderr!r})")
    yield hosts
    for host in hosts:
        subprocess.run(["ip", "netns", "del", host], check=False)


def cable(host: str, state: str) -> None:
    subprocess.run(["ip", "-n", host, "link", "set", "cable", state], check=True)


@pytest.mark.parametrize("cuts", [1, pytest.param(12, marks=pytest.mark.nightly)])
def test_a_cut_network_is_noticed_and_recovered(
    institutions: Any,
    two_parties: "Callable[..., Parties]",
    namespaces: tuple[str, str],
    cuts: int,
) -> None:
    institutions.change("patience = 30.0", f"patience = {PATIENCE}")
    institutions.change("127.0.0.1:", "192.0.2.1:")
    settings = SETTINGS.replace(str(EPOCHS), str(EPOCHS * cuts))
    inside = [["ip", "netns", "exec", host] for host in namespaces]
    parties = two_parties(settings, data=inside[0], label=inside[1])
    for role in ROLES:
        parties.start(role)
    for cut in range(cuts):
        parties.wait_for_frames(40 * (cut + 1))
        reports = parties.log("data").count("silent")
        cable(namespaces[cut % 2], "down")
        began = time.monotonic()
        while parties.log("data").count("silent") == reports:
            assert time.monotonic() - began < 6 * PATIENCE, parties.log("data")
            time.sleep(0.05)
        cable(namespaces[cut % 2], "up")
    assert (parties.wait("data"), parties.wait("label")) == (0, 0)
    parties.check(releases=3)
