"""The ledger: an append-only, hash-chained account of everything computed from edges.

    charge(event):  lock -> replay what others wrote -> spent[v] + cost <= cap for all receivers?
                    no:  refuse, nothing written      yes: write, sync to disk, hand out a receipt

A receipt exists only after its entry is on disk, and `mechanism.release` works only with a receipt:
so nothing leaves that is not charged. The ledger is one SQLite file a data party (WAL, full sync).
Budgets belong to graphs, named by a keyed fingerprint that never leaves; they outlive runs and
checkpoints, and nothing in here can give budget back.
"""

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vesper.errors import BudgetError, InputError
from vesper.privacy.budget import Budget
from vesper.privacy.events import UNIT, Event
from vesper.privacy.receivers import Receivers, add_cost, encode

_SCHEMA = """
CREATE TABLE IF NOT EXISTS secret (key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    sequence INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    graph TEXT NOT NULL,
    run TEXT NOT NULL,
    facts TEXT NOT NULL,
    cost INTEGER NOT NULL,
    receivers BLOB NOT NULL,
    digest BLOB NOT NULL
);
CREATE TRIGGER IF NOT EXISTS entries_stay BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER IF NOT EXISTS entries_last BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END;
"""

_COLUMNS = "sequence, time, graph, run, facts, cost, receivers, digest"


@dataclass(eq=False)
class Receipt:
    """Proof that an event was charged; good for one release. Made by `Ledger.charge` only."""

    event: Event
    receivers: bytes
    graph: str
    sequence: int
    _unused: bool = field(default=True, repr=False)

    def spend(self) -> None:
        """Use the receipt up; a second use is refused."""
        if not self._unused:
            raise BudgetError(f"Receipt {self.sequence} was used already; charge a new release.")
        self._unused = False


class Ledger:
    """Opens, or makes, the ledger file at `path`; `clock` gives seconds for the time column."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
            if self._db.execute("SELECT count(*) FROM secret").fetchone()[0] == 0:
                self._db.execute("INSERT INTO secret VALUES (?)", (secrets.token_bytes(32),))
        except sqlite3.Error as error:
            raise InputError(f"{path}: cannot be used as a ledger ({error})") from None
        self.key = bytes(self._db.execute("SELECT key FROM secret").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def open_account(self, graph: str, *, num_nodes: int, budget: Budget, cap: int) -> "Account":
        """Give the account of a graph, with `cap` units a node; the first call sets the budget."""
        facts: dict[str, Any] = {
            "kind": "budget",
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "num_nodes": num_nodes,
            "cap": cap,
        }
        self._db.execute("BEGIN IMMEDIATE")
        try:
            row = self._db.execute(
                "SELECT facts FROM entries WHERE graph = ? ORDER BY sequence LIMIT 1", (graph,)
            ).fetchone()
            if row is None:
                self.append(graph, "", facts, 0, b"")
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        if row is not None and json.loads(row[0]) != facts:
            held = json.loads(row[0])
            raise InputError(
                f"{self.path}: this graph has a budget of epsilon {held['epsilon']:g}, delta "
                f"{held['delta']:g} already, got epsilon {budget.epsilon:g}, delta "
                f"{budget.delta:g}; a budget belongs to the graph and is not set twice"
            )
        return Account(self, graph, num_nodes, cap)

    def append(self, graph: str, run: str, facts: dict[str, Any], cost: int, who: bytes) -> int:
        """Write one entry inside the caller's transaction; return its sequence number."""
        last = self._db.execute(
            "SELECT sequence, digest FROM entries ORDER BY sequence DESC LIMIT 1"
        ).fetchone()
        sequence, previous = (last[0] + 1, bytes(last[1])) if last else (1, b"")
        entry = (sequence, self._clock(), graph, run, json.dumps(facts, sort_keys=True), cost, who)
        digest = chained(previous, entry)
        self._db.execute(
            f"INSERT INTO entries ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", (*entry, digest)
        )
        return sequence

    def entries(self, after: int = 0) -> list[tuple[Any, ...]]:
        """Read the entries after a sequence number, oldest first."""
        query = f"SELECT {_COLUMNS} FROM entries WHERE sequence > ? ORDER BY sequence"
        return self._db.execute(query, (after,)).fetchall()

    def verify(self) -> int | None:
        """Recompute the chain; return the first sequence number that does not fit, or None."""
        previous = b""
        for expected, (*entry, digest) in enumerate(self.entries(), start=1):
            if entry[0] != expected or chained(previous, tuple(entry)) != digest:
                return expected
            previous = bytes(digest)
        return None


class Account:
    """What one graph has spent, node by node, against its cap."""

    def __init__(self, ledger: Ledger, graph: str, num_nodes: int, cap: int) -> None:
        self._ledger, self._graph, self._seen = ledger, graph, 0
        self.cap = cap
        self.spent: NDArray[np.int64] = np.zeros(num_nodes, dtype=np.int64)

    def charge(self, event: Event, receivers: Receivers, *, run: str) -> Receipt:
        """Charge an event to its receivers, on disk, or refuse and write nothing."""
        who = encode(receivers, len(self.spent))
        database = self._ledger._db
        database.execute("BEGIN IMMEDIATE")
        try:
            self._catch_up()
            after = self.spent.copy()
            add_cost(who, event.cost, after)
            if int(after.max()) > self.cap:
                raise self._refusal(event, int(self.spent.max()))
            sequence = self._ledger.append(self._graph, run, dict(event.facts), event.cost, who)
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise
        self._catch_up()
        return Receipt(event=event, receivers=who, graph=self._graph, sequence=sequence)

    def _catch_up(self) -> None:
        """Replay what this and other processes have written since the last look."""
        for sequence, _, graph, _, _, cost, who, _ in self._ledger.entries(after=self._seen):
            if graph == self._graph and who:
                add_cost(who, cost, self.spent)
            self._seen = sequence

    def _refusal(self, event: Event, spent: int) -> BudgetError:
        requested, remaining = event.cost / UNIT, (self.cap - spent) / UNIT
        return BudgetError(
            "The privacy budget of this graph does not allow this release (mu^2 a node).\n"
            f"  Requested:  {requested:.6g}\n"
            f"  Remaining:  {remaining:.6g}\n"
            f"  Difference: {requested - remaining:.6g}\n"
            "Nothing was released. Use more noise, fewer releases, or a new snapshot."
        )


def chained(previous: bytes, entry: tuple[Any, ...]) -> bytes:
    """Digest one entry together with everything before it."""
    digest = hashlib.sha256(previous)
    for value in entry:
        part = value if isinstance(value, bytes) else repr(value).encode()
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()
