import threading
from pathlib import Path

import numpy as np
import pytest

from vesper.errors import VesperError
from vesper.serving.embedding_cache import IDS_PER_STATEMENT, EmbeddingCache

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
