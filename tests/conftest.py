"""Fixtures of all tests: hypothesis profiles, public graphs, party folders, and tampering."""

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=25, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("VESPER_HYPOTHESIS", "fast"))

LONGEST = ("test_documents.py", "test_examples.py", "test_audit.py", "test_ray_engine.py")
"""Files with few but slow tests: started last, they would keep a single worker busy."""

pytest_plugins = [
    "tests.fixtures.both_parties",
    "tests.fixtures.finished_run",
    "tests.fixtures.processes",
    "tests.fixtures.walks",
]

PUBLIC_GRAPHS = Path(__file__).parents[1].parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers start with the slowest files."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session", autouse=True)
def state_home_of_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the ledger of the user out of fixtures that are shared by tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield


@pytest.fixture(autouse=True)
def state_home(
    state_home_of_session: None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Folder of this test's ledger of the user, in this process and in those it starts."""
    folder = tmp_path_factory.mktemp("state-home")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def public_graphs() -> Path:
    """Folder of real graphs next to the project; tests that need it skip where it is missing."""
    if not PUBLIC_GRAPHS.is_dir():
        pytest.skip("needs the public graphs in ../shared/data, which are not on this machine")
    return PUBLIC_GRAPHS


@pytest.fixture(scope="session")
def write_folders() -> Callable[..., Path]:
    """Return a function that writes party folders below a root, from tables given as columns."""

    def write(root: Path, **tables: Mapping[str, object]) -> Path:
        for name, columns in tables.items():
            path = root / ("label" if name == "labels" else "data") / f"{name}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(dict(columns)), path)
        return root

    return write


@pytest.fixture(scope="session")
def tamper() -> Callable[..., None]:
    """Return a function that changes a ledger as somebody with the file but not the key could."""

    def change(ledger: Path, statement: str, *values: object) -> None:
        database = sqlite3.connect(ledger)
        for trigger in ("entries_stay", "entries_last"):
            database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        database.execute(statement, values)
        database.commit()
        database.close()

    return change


class Institutions:
    """Two party folders with settings and certificates, as the set-up commands make them."""

    def __init__(self, root: Path) -> None:
        self.root, self.data, self.label = root, root / "platform", root / "bank"

    @property
    def settings(self) -> tuple[Path, Path]:
        """TOML files of data party and label party."""
        return self.data / "data.toml", self.label / "label.toml"

    def change(self, old: str, new: str) -> None:
        """Replace a text in both files."""
        for path in self.settings:
            path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def institutions(tmp_path: Path) -> Institutions:
    """A platform and a bank: sixty nodes in a ring, all labelled; a free port on loopback."""
    import socket
    from datetime import UTC, datetime

    import pyarrow as pa
    import pyarrow.parquet as pq
    from cryptography.hazmat.primitives.serialization import Encoding

    from vesper.deployment.config.template import write_template
    from vesper.deployment.identity.authority import make_authority, sign
    from vesper.deployment.identity.request import make_request

    both = Institutions(tmp_path / "institutions")
    (both.data / "data").mkdir(parents=True)
    (both.label / "label").mkdir(parents=True)
    nodes = {"id": range(60), "age": [float(k % 7) for k in range(60)]}
    pq.write_table(pa.table(nodes), both.data / "data" / "nodes.parquet")
    edges = {"src": range(60), "dst": [(k + 1) % 60 for k in range(60)]}
    pq.write_table(pa.table(edges), both.data / "data" / "edges.parquet")
    splits = [("train", "val", "test")[k % 3] for k in range(60)]
    labels = {"id": range(60), "label": [k // 3 % 2 for k in range(60)], "split": splits}
    pq.write_table(pa.table(labels), both.label / "label" / "labels.parquet")
    now = datetime.now(UTC)
    authority = make_authority(both.root / "authority", name="tests", now=now)
    pem = authority.certificate.public_bytes(Encoding.PEM)
    for folder in (both.data, both.label):
        request = make_request(folder.name, [], folder / "tls")[2]
        certificate = sign(authority, request, days=90, now=now)
        (folder / "tls" / f"{folder.name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        (folder / "tls" / "authority.pem").write_bytes(pem)
    write_template(both.settings[0], "data", graph="payments", ledger=Path("ledger.sqlite"))
    write_template(both.settings[1], "label")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for host in ("0.0.0.0:7101", "platform.example:7101"):
        both.change(host, f"127.0.0.1:{port}")
    return both
