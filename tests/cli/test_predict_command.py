"""`party data --answer`, `predict` and `serve` as real processes on loopback, one killed."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vesper.deployment.config.party_config import load_party_config
from vesper.deployment.data_process import run_data_party
from vesper.deployment.label_process import run_label_party
from vesper.privacy.ledger.ledger_file import open_to_read
from vesper.session.contract import approve

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal
    from tests.conftest import Institutions

LIMIT = 120.0


class Started:
    """A `vesper ...` process and its output."""

    def __init__(self, log: Path, *arguments: object) -> None:
        self._log = log
        with log.open("w") as out:
            command = [sys.executable, "-m", "vesper", *map(str, arguments)]
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    @property
    def output(self) -> str:
        return self._log.read_text()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + LIMIT
        while text not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    def stop(self, signum: signal.Signals) -> int:
        self.process.send_signal(signum)
        return self.process.wait(timeout=LIMIT)


Start = Callable[..., Started]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `vesper ...` processes; those still running at the end are killed."""
    started: list[Started] = []

    def start(*arguments: object) -> Started:
        started.append(Started(tmp_path / f"{len(started)}.log", *arguments))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()


@pytest.fixture
def trained(institutions: "Institutions") -> "Institutions":
    """Both parties after a short run."""
    institutions.change("\n[run]\n", "\n[run]\nepochs = 2\n")
    configs = [load_party_config(path) for path in institutions.settings]
    for config in configs:
        approve(config.party.state, config.shared)
    with ThreadPoolExecutor(max_workers=1) as pool:
        other = pool.submit(run_data_party, configs[0])
        run_label_party(configs[1])
        other.result()
    result = configs[1].party.state / "result" / "result.json"
    facts = json.loads(result.read_text())
    result.write_text(json.dumps({**facts, "chosen_stage": 1}))  # a stage that needs edges
    return institutions


def charges(trained: "Institutions") -> int:
    ledger = load_party_config(trained.settings[0]).party.ledger
    with closing(open_to_read(ledger)) as reader:
        assert reader.verify() is None
        return sum(entry.cost > 0 for entry in reader.entries())


def post_ids(port: int, ids: list[Any]) -> tuple[int, dict[str, Any]]:
    with closing(HTTPConnection("127.0.0.1", port, timeout=LIMIT)) as client:
        body = json.dumps({"ids": ids}).encode()
        client.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())


def test_a_snapshot_is_predicted_served_and_survives_a_kill(
    trained: "Institutions", start: Start, terminal: "Terminal", tmp_path: Path
) -> None:
    data, label = trained.settings
    later = tmp_path / "later"
    later.mkdir()
    nodes = {"id": range(70), "age": [float(k % 7) for k in range(70)]}
    pq.write_table(pa.table(nodes), later / "nodes.parquet")
    pq.write_table(pa.table({"src": range(69), "dst": range(1, 70)}), later / "edges.parquet")
    ids, paid = tmp_path / "ids.txt", charges(trained)
    ids.write_text("5\n65\nnobody\n")

    served = ("--answer", "--snapshot", later, "--graph", "payments-later")
    answering = ("party", "data", "--config", data, *served)
    platform = start(*answering)
    platform.wait_for("answering bank")
    assert charges(trained) == paid
    predict = ("predict", "--config", label, "--ids", ids, "--json", "--out")
    assert terminal.run(*predict, tmp_path / "first.csv") == 0
    facts = json.loads(terminal.out)
    assert (facts["ids"], facts["unknown"], facts["cached"]) == (3, 1, 0)
    spent = charges(trained)
    assert spent > paid
    assert platform.stop(signal.SIGKILL) == -signal.SIGKILL

    (load_party_config(label).party.state / "cache" / "embeddings.sqlite").unlink()
    platform = start(*answering)
    platform.wait_for("answering bank")
    assert terminal.run(*predict, tmp_path / "second.csv") == 0
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    assert charges(trained) == spent

    serving = start("serve", "--config", label, "--port", 0)
    serving.wait_for("serving at")
    port = int(serving.output.partition("127.0.0.1:")[2].partition("/")[0])
    status, reply = post_ids(port, [65, "66", "nobody"])
    assert status == 200
    assert [each.get("cached") for each in reply["predictions"]] == [True, False, None]
    assert platform.stop(signal.SIGTERM) == 0
    assert "returned embeddings of" in platform.output
    status, reply = post_ids(port, [65, 67])
    assert status == 503
    assert "waiting for platform" in reply["error"]
    assert "probabilities" in reply["predictions"][0]
    assert serving.stop(signal.SIGINT) == 0
    assert "Traceback" not in serving.output + platform.output
    assert charges(trained) == spent


def test_wrong_input_ends_with_one_message(
    trained: "Institutions", terminal: "Terminal", tmp_path: Path
) -> None:
    data, label = trained.settings
    (tmp_path / "ids.txt").write_text("5\n")
    folder = data.parent / "data"
    predict = ("predict", "--ids", tmp_path / "ids.txt", "--out", tmp_path / "out.csv")
    for arguments, message in (
        (("party", "data", "--config", data), "is finished"),
        (("party", "data", "--config", data, "--snapshot", tmp_path), "--answer"),
        (("party", "data", "--config", data, "--answer", "--json"), "--json"),
        (("party", "data", "--config", label, "--answer"), "party.role"),
        (("party", "data", "--config", data, "--answer", "--snapshot", tmp_path), "nodes.parquet"),
        (("party", "data", "--config", data, "--answer", "--snapshot", folder), "--graph NAME"),
        ((*predict, "--config", data), "party.role"),
        (("serve", "--config", data), "party.role"),
        (("predict", "--config", label, "--ids", tmp_path, "--out", "o.csv"), "cannot be read"),
    ):
        assert terminal.run(*arguments) == 2, message
        assert message in terminal.err
    label.write_text(label.read_text().replace('"wait"', '"stop"').replace("= 30.0", "= 1.0"))
    assert terminal.run(*predict, "--config", label) == 4, terminal.err
    assert "nothing was written" in terminal.err
