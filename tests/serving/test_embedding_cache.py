import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import VesperError
from vesper.serving.embedding_cache import (
    IDS_PER_STATEMENT,
    EmbeddingCache,
    read_graph_notes,
)

VALUES = np.arange(12, dtype=np.float32).reshape(2, 2, 3)


def test_embeddings_are_found_by_snapshot_stage_and_id(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path / "cache")
    cache.store("s", 1, ["a", "b"], VALUES)
    cache.close()
    again = EmbeddingCache(tmp_path / "cache")
    embeddings = again.find("s", 1, ["b", "a", "c", "a"])
    assert set(embeddings) == {"a", "b"}
    assert np.array_equal(embeddings["b"], VALUES[1])
    assert again.find("t", 1, ["a"]) == again.find("s", 0, ["a"]) == {}
    again.close()


def test_many_ids_and_strange_ones(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    ids = [f"id{k}" for k in range(3 * IDS_PER_STATEMENT)] + [
        "'; DROP TABLE embeddings;--",
        "\0",
        "ü",
        "",
    ]
    cache.store("s", 0, ids, np.ones((len(ids), 1, 1), dtype=np.float32))
    assert set(cache.find("s", 0, ids)) == set(ids)
    cache.close()


def test_notes_are_replaced(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)
    assert cache.read_note("snapshot") is None
    cache.write_note("snapshot", "one")
    cache.write_note("snapshot", "two")
    assert cache.read_note("snapshot") == "two"
    cache.close()


def test_a_damaged_cache_is_replaced_and_an_unusable_one_is_named(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite").write_bytes(b"this is no database, and it is long enough" * 9)
    cache = EmbeddingCache(tmp_path)
    assert cache.find("s", 0, ["a"]) == {}
    cache.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(VesperError, match="cannot be written"):
        EmbeddingCache(tmp_path / "file" / "cache")
    with pytest.raises(VesperError, match="may be removed"):
        cache.write_note("a", "b")


def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


@pytest.mark.parametrize(
    "change",
    [
        "content = x'0000803f0000803f0000803f0000803f0000803f0000803f'",
        "content = x'00'",
        "content = NULL",
        "content = 'text'",
        "content = CAST(x'ff' AS TEXT)",
        "width = 3, depth = 2",
        "width = 'wide'",
        "checksum = NULL",
    ],
)
def test_a_changed_row_counts_as_missing(tmp_path: Path, change: str) -> None:
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.store("s", 1, ["a", "b"], VALUES)
        cache.write_graph_note("s", epsilon=1.0)
        execute(tmp_path / "embeddings.sqlite", f"UPDATE embeddings SET {change} WHERE id = 'a'")
        assert set(cache.find("s", 1, ["a", "b"])) == {"b"}
        cache.store("s", 1, ["a"], VALUES[:1])
        assert np.array_equal(cache.find("s", 1, ["a"])["a"], VALUES[0])


def test_a_row_that_was_swapped_with_another_counts_as_missing(tmp_path: Path) -> None:
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.store("s", 1, ["a", "b"], VALUES)
        path = tmp_path / "embeddings.sqlite"
        execute(path, "UPDATE embeddings SET id = id || '2'")
        execute(path, "UPDATE embeddings SET id = 'b' WHERE id = 'a2'")
        assert cache.find("s", 1, ["a", "b", "a2", "b2"]) == {}


@pytest.mark.parametrize("value", ["{", "null", "CAST(x'ff' AS TEXT)"])
def test_a_changed_note_counts_as_missing(tmp_path: Path, value: str) -> None:
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.write_graph_note("s", epsilon=1.0)
        text = value if value.startswith("CAST") else f"'{value}'"
        execute(tmp_path / "embeddings.sqlite", f"UPDATE notes SET value = {text}")
        assert cache.read_note("graph s") is None
        assert read_graph_notes(tmp_path) == {}
        cache.write_graph_note("s", epsilon=2.0)
    assert read_graph_notes(tmp_path) == {"s": {"epsilon": 2.0}}


def test_damage_at_any_place_never_yields_another_value(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    ids = [f"id{k}" for k in range(60)]
    values = random.random((60, 4, 8), dtype=np.float32)
    path = tmp_path / "embeddings.sqlite"
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.store("s", 1, ids, values)
        cache.write_graph_note("s", epsilon=1.0)
    intact = path.read_bytes()
    for k in range(200):
        damaged = bytearray(intact)
        place = int(random.integers(len(intact) if k % 2 else 200))
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(bytes(damaged))
        with closing(EmbeddingCache(tmp_path)) as cache:
            for text, found in cache.find("s", 1, ids).items():
                assert np.array_equal(found, values[ids.index(text)])
            assert cache.read_note("graph s") in (None, '{"epsilon": 1.0}')
            cache.store("s", 1, ids, values)
            cache.write_graph_note("s", epsilon=1.0)
            assert len(cache.find("s", 1, ids)) == 60
        assert read_graph_notes(tmp_path) == {"s": {"epsilon": 1.0}}


def test_a_file_that_is_damaged_while_it_is_in_use_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.store("s", 1, ["a", "b"], VALUES)
        execute(path, "DROP TABLE embeddings")
        assert cache.find("s", 1, ["a"]) == {}
        cache.store("s", 1, ["a", "b"], VALUES)
        execute(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        path.write_bytes(b"this is no database" * 999)
        assert cache.find("s", 1, ["a"]) == {}
        cache.store("s", 1, ["a", "b"], VALUES)
        assert set(cache.find("s", 1, ["a", "b"])) == {"a", "b"}


def test_a_cache_of_an_older_version_is_emptied(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    execute(path, "CREATE TABLE embeddings (snapshot, stage, id, width, depth, content)")
    execute(path, "CREATE TABLE notes (name, value)")
    execute(path, "INSERT INTO notes VALUES ('snapshot', 's')")
    assert read_graph_notes(tmp_path) == {}
    with closing(EmbeddingCache(tmp_path)) as cache:
        assert cache.read_note("snapshot") is None
        cache.store("s", 1, ["a", "b"], VALUES)
        assert set(cache.find("s", 1, ["a", "b"])) == {"a", "b"}


def test_a_locked_cache_is_not_emptied(tmp_path: Path) -> None:
    with closing(EmbeddingCache(tmp_path)) as cache:
        cache.store("s", 1, ["a", "b"], VALUES)
        cache._db.execute("PRAGMA busy_timeout = 1")
        with closing(sqlite3.connect(tmp_path / "embeddings.sqlite")) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(VesperError, match="locked"):
                cache.store("s", 1, ["a"], VALUES[:1])
        assert set(cache.find("s", 1, ["a", "b"])) == {"a", "b"}


def test_threads_share_it(tmp_path: Path) -> None:
    cache = EmbeddingCache(tmp_path)

    def work(k: int) -> None:
        for j in range(20):
            cache.store("s", 0, [f"{k}-{j}"], np.full((1, 1, 1), k, dtype=np.float32))
            assert cache.find("s", 0, [f"{k}-{j}"])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache.find("s", 0, [f"{k}-{j}" for k in range(4) for j in range(20)])) == 80
    cache.close()
