"""Compiled code is found again, and only by whom it was made for."""

import hashlib
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vesper.parallel import compile_cache as under_test
from vesper.parallel.compile_cache import COMPILERS, SOURCES, CompiledCodeCache, source_stamp


class Alike:
    """Two of them have the same text, and are not equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "alike"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike) and self.name == other.name

    __hash__ = None  # type: ignore[assignment]


def set_source(monkeypatch: pytest.MonkeyPatch, stamp: str) -> None:
    monkeypatch.setattr(under_test, "source_stamp", lambda: stamp)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompiledCodeCache:
    set_source(monkeypatch, "now")
    return CompiledCodeCache(tmp_path, "f-1.py311", "now")


def test_each_key_has_its_own_code(files: CompiledCodeCache) -> None:
    files.save(("int32", "avx2"), "code 1")
    files.save(("int64", "avx2"), "code 2")
    assert files.load(("int32", "avx2")) == "code 1"
    assert files.load(("int64", "avx2")) == "code 2"
    assert files.load(("int64", "avx512")) is None


def test_two_processes_that_write_at_once_keep_both_codes(
    files: CompiledCodeCache, tmp_path: Path
) -> None:
    """What goes wrong in Numba: both look before either writes."""
    other = CompiledCodeCache(tmp_path, "f-1.py311", "now")
    assert files.load("int32") is None
    assert other.load("int64") is None
    other.save("int64", "code for int64")
    files.save("int32", "code for int32")
    for each in (files, other):
        assert (each.load("int32"), each.load("int64")) == ("code for int32", "code for int64")


def test_keys_of_one_text_never_get_each_others_code(files: CompiledCodeCache) -> None:
    files.save(Alike("one"), "code")
    assert files.load(Alike("one")) == "code"
    assert files.load(Alike("other")) is None


@pytest.mark.parametrize("kept", [0, 10, 32, -1])
def test_half_written_code_is_not_run(files: CompiledCodeCache, tmp_path: Path, kept: int) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:kept])
    assert files.load("int32") is None
    files.save("int32", "code")
    assert files.load("int32") == "code"


def test_changed_bytes_are_not_run(files: CompiledCodeCache, tmp_path: Path) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"code", b"cod3"))
    assert files.load("int32") is None


def test_what_cannot_be_read_any_more_is_made_again(
    files: CompiledCodeCache, tmp_path: Path
) -> None:
    """As after a change of Numba that moved a class."""
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    code = b"cnumba.core.gone\nClass\n."
    path.write_bytes(hashlib.sha256(code).digest() + code)
    assert files.load("int32") is None


def test_others_may_read_what_one_has_compiled(files: CompiledCodeCache, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.save("int32", "code")
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644


def test_code_of_another_source_is_not_found_and_then_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_source(monkeypatch, "before")
    for base in ("f-1", "f-12", "g-1"):
        CompiledCodeCache(tmp_path, f"{base}.py311", "before").save("int32", "old code")
    (tmp_path / "f-1.py311.1.nbc").write_text("as Numba calls it")
    (tmp_path / "f-1.py311.nbi").write_text("its index")
    set_source(monkeypatch, "now")
    now = CompiledCodeCache(tmp_path, "f-1.py311", "now")
    assert now.load("int32") is None
    now.save("int64", "new code")
    names = sorted(path.name.split(".py311")[0] for path in tmp_path.iterdir())
    assert names == ["f-1", "g-1"]  # a function that stood on another line is the same one
    assert now.load("int64") == "new code"


def test_a_process_whose_source_has_changed_neither_finds_nor_keeps(
    files: CompiledCodeCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save("int32", "code")
    set_source(monkeypatch, "later")
    assert files.load("int32") is None
    files.save("int64", "made of who knows what")
    assert len(list(tmp_path.iterdir())) == 1


def test_flush_lets_go(files: CompiledCodeCache, tmp_path: Path) -> None:
    files.save("int32", "code")
    files.flush()
    assert not list(tmp_path.iterdir())


def package_in(folder: Path) -> Path:
    for package in SOURCES:
        (folder / package / "deeper").mkdir(parents=True)
        (folder / package / "deeper" / "kernel.py").write_text("WIDTH = 1")
    return folder


def test_a_change_anywhere_in_the_sources_changes_the_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(under_test, "PACKAGE", package_in(tmp_path))
    stamps = {source_stamp()}
    for package in SOURCES:
        (tmp_path / package / "deeper" / "kernel.py").write_text("WIDTH = 20")
        stamps.add(source_stamp())
    assert len(stamps) == 1 + len(SOURCES)
    assert None not in stamps


@pytest.mark.parametrize("compiler", COMPILERS)
def test_another_compiler_changes_the_stamp(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = source_stamp()
    under_test._stamp_of.cache_clear()
    monkeypatch.setattr(importlib.import_module(compiler), "__version__", "0.0")
    assert source_stamp() != before
    under_test._stamp_of.cache_clear()


def test_there_is_no_stamp_without_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an archive, or while files are being replaced."""
    monkeypatch.setattr(under_test, "PACKAGE", tmp_path / "empty")
    assert source_stamp() is None
    package = package_in(tmp_path / "package")
    monkeypatch.setattr(under_test, "PACKAGE", package)
    assert source_stamp() is not None
    (package / "graph" / "deeper" / "kernel.py").unlink()
    assert source_stamp() is None


def test_locks_of_editors_and_folders_are_no_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = package_in(tmp_path)
    (package / "graph" / ".#team.py").symlink_to("me@host.1:2")
    (package / "graph" / "folder.py").mkdir()
    monkeypatch.setattr(under_test, "PACKAGE", package)
    assert source_stamp() is not None


ADDING = """
import numpy as np
from vesper.parallel.compile_cache import cached_njit

@cached_njit
def total(values):
    sum_of_all = 0
    for value in values:
        sum_of_all += value
    return sum_of_all

def hits(dtype):
    assert total(np.arange(5, dtype=dtype)) == 10
    return sum(total.stats.cache_hits.values())
"""


def answer(folder: Path, ask: str, *words: str, **environment: str) -> str:
    """Ask a new process, with the module `adding` at hand."""
    (folder / "adding.py").write_text(ADDING)
    done = subprocess.run(
        [sys.executable, "-c", f"import adding, sys; {ask}", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    ask = "print(*(adding.hits(dtype) for dtype in sys.argv[1:]))"
    assert answer(tmp_path, ask, "int32") == "0"
    assert answer(tmp_path, ask, "int32", "int64") == "1 1"
    assert answer(tmp_path, ask, "int64", "int32") == "1 2"


def test_code_that_cannot_be_kept_is_run_all_the_same(tmp_path: Path) -> None:
    """A folder that is there at first, and then cannot be made again."""
    ask = (
        "import shutil, pathlib; shutil.rmtree('__pycache__', ignore_errors=True); "
        "pathlib.Path('__pycache__').write_text('no folder'); print(adding.hits('int32'))"
    )
    assert answer(tmp_path, ask) == "0"


def test_without_compiling_it_is_the_function_itself(tmp_path: Path) -> None:
    ask = "print(type(adding.total).__name__, adding.total([1, 2]))"
    assert answer(tmp_path, ask, NUMBA_DISABLE_JIT="1") == "function 3"


def test_nothing_else_asks_numba_to_compile() -> None:
    package = Path(under_test.__file__).parent.parent
    asking = [
        path.name
        for path in sorted(package.rglob("*.py"))
        if re.search(r"\bnjit\b", path.read_text())
    ]
    assert asking == ["compile_cache.py"]


def test_all_compiled_code_lies_in_the_packages_that_are_watched() -> None:
    package = Path(under_test.__file__).parent.parent
    using = [path for path in package.rglob("*.py") if "@cached_njit" in path.read_text()]
    assert len(using) > 5
    assert {path.relative_to(package).parts[0] for path in using} <= set(SOURCES)
