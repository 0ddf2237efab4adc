"""Compiled code is found again, and only by whom it was made for."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from vesper.graph import compiled as under_test
from vesper.graph.compiled import CodeFiles, source_stamp


class Alike:
    """Two of them have the same text, and are not equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "alike"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


@pytest.fixture
def files(tmp_path: Path) -> CodeFiles:
    return CodeFiles(tmp_path, "f-1.py311", "now")


def test_each_key_has_its_own_code(files: CodeFiles) -> None:
    files.save(("int32", "avx2"), "code 1")
    files.save(("int64", "avx2"), "code 2")
    assert files.load(("int32", "avx2")) == "code 1"
    assert files.load(("int64", "avx2")) == "code 2"
    assert files.load(("int64", "avx512")) is None


def test_two_processes_that_write_at_once_keep_both_codes(tmp_path: Path) -> None:
    """What goes wrong in Numba: both look before either writes."""
    one, other = (CodeFiles(tmp_path, "f-1.py311", "now") for _ in range(2))
    assert one.load("int32") is None
    assert other.load("int64") is None
    other.save("int64", "code for int64")
    one.save("int32", "code for int32")
    for files in (one, other):
        assert (files.load("int32"), files.load("int64")) == ("code for int32", "code for int64")


def test_keys_of_one_text_never_get_each_others_code(files: CodeFiles) -> None:
    files.save(Alike("one"), "code")
    assert files.load(Alike("one")) == "code"
    assert files.load(Alike("other")) is None


@pytest.mark.parametrize("kept", [0, 10, 32, -1])
def test_half_written_code_is_not_run(files: CodeFiles, tmp_path: Path, kept: int) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:kept])
    assert files.load("int32") is None
    files.save("int32", "code")
    assert files.load("int32") == "code"


def test_changed_bytes_are_not_run(files: CodeFiles, tmp_path: Path) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"code", b"cod3"))
    assert files.load("int32") is None


def test_code_of_another_source_is_not_found_and_then_let_go(tmp_path: Path) -> None:
    before, now = (CodeFiles(tmp_path, "f-1.py311", stamp) for stamp in ("before", "now"))
    neighbor = CodeFiles(tmp_path, "f-12.py311", "before")
    before.save("int32", "old code")
    neighbor.save("int32", "code of another function")
    assert now.load("int32") is None
    now.save("int64", "new code")
    assert before.load("int32") is None
    assert neighbor.load("int32") == "code of another function"


def test_a_folder_that_is_gone_keeps_nothing_and_stops_nobody(tmp_path: Path) -> None:
    files = CodeFiles(tmp_path / "gone", "f-1.py311", "now")
    files.save("int32", "code")
    assert files.load("int32") is None


def test_flush_lets_go(files: CodeFiles, tmp_path: Path) -> None:
    files.save("int32", "code")
    files.flush()
    assert not list(tmp_path.iterdir())


def test_a_change_anywhere_in_the_sources_changes_the_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in under_test.SOURCES:
        (tmp_path / package / "deeper").mkdir(parents=True)
        (tmp_path / package / "deeper" / "kernel.py").write_text("WIDTH = 1")
    monkeypatch.setattr(under_test, "PACKAGE", tmp_path)
    stamps = {source_stamp.__wrapped__()}
    for package in under_test.SOURCES:
        (tmp_path / package / "deeper" / "kernel.py").write_text("WIDTH = 2")
        stamps.add(source_stamp.__wrapped__())
    assert len(stamps) == 1 + len(under_test.SOURCES)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    (tmp_path / "adding.py").write_text(
        dedent("""
            import numpy as np
            from vesper.graph.compiled import compiled

            @compiled
            def total(values):
                sum_of_all = 0
                for value in values:
                    sum_of_all += value
                return sum_of_all

            def hits(dtype):
                assert total(np.arange(5, dtype=dtype)) == 10
                return sum(total.stats.cache_hits.values())
        """)
    )
    ask = "import adding, sys; print(*(adding.hits(dtype) for dtype in sys.argv[1:]))"

    def answer(*dtypes: str) -> str:
        command = [sys.executable, "-c", ask, *dtypes]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert answer("int32") == "0"
    assert answer("int32", "int64") == "1 1"
    assert answer("int64", "int32") == "1 2"


def test_nothing_else_asks_numba_to_compile() -> None:
    package = Path(under_test.__file__).parent.parent
    asking = [path.name for path in sorted(package.rglob("*.py")) if "njit" in path.read_text()]
    assert asking == ["compiled.py"]


def test_all_compiled_code_lies_in_the_packages_that_are_watched() -> None:
    package = Path(under_test.__file__).parent.parent
    using = [path for path in package.rglob("*.py") if "@compiled" in path.read_text()]
    assert len(using) > 5
    assert {path.relative_to(package).parts[0] for path in using} <= set(under_test.SOURCES)
