"""Twenty thousand steps between two processes: memory, open files and the log stay as they are."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from tests.fixtures.processes import Parties

ROLES: tuple[Literal["data"], Literal["label"]] = ("data", "label")
STEPS = 20_000


def memory(pid: int) -> float:
    """Resident megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@pytest.mark.nightly
def test_memory_is_flat(two_parties: "Callable[..., Parties]") -> None:
    # 20 training nodes, 8 per batch: 3 steps per epoch, 3 stages.
    epochs = -(-STEPS // 9)
    run = f"epochs = {epochs}\npatience = {epochs}\nbatch_size = 8"
    parties = two_parties(f"hops = 2\n[run]\n{run}")
    for role in ROLES:
        parties.start(role)
    seen: dict[str, list[float]] = {role: [] for role in ROLES}
    files: dict[str, list[int]] = {role: [] for role in ROLES}
    while any(parties.code(role) is None for role in ROLES):
        for role in ROLES:
            try:
                seen[role].append(memory(parties.pids[role]))
                files[role].append(len(list(Path(f"/proc/{parties.pids[role]}/fd").iterdir())))
            except (OSError, StopIteration):
                break
        time.sleep(0.5)
    frames = (parties.configs["data"].party.state / "transcript.tsv").read_text().count("\n")
    assert frames >= 2 * STEPS
    for role in ROLES:
        quarter = len(seen[role]) // 4
        assert quarter >= 5
        early, late = mean(seen[role][quarter : 2 * quarter]), mean(seen[role][-quarter:])
        assert late < early + 8, (role, early, late)
        assert max(files[role][-quarter:]) <= max(files[role][quarter : 2 * quarter]) + 2
        state = parties.configs[role].party.state
        assert sum(path.stat().st_size for path in (state / "frames").iterdir()) < 1 << 20
