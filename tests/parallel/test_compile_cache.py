"""Compiled code is reused, and only for the types and source that it was compiled for."""

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


class SameText:
    """Keys with equal text that are not equal."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "same text"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameText) and self.name == other.name

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


def test_code_of_two_processes_that_write_at_once_is_stored_for_both(
    files: CompiledCodeCache, tmp_path: Path
) -> None:
    """What goes wrong in Numba: both processes look before either writes."""
    other = CompiledCodeCache(tmp_path, "f-1.py311", "now")
    assert files.load("int32") is None
    assert other.load("int64") is None
    other.save("int64", "code for int64")
    files.save("int32", "code for int32")
    for each in (files, other):
        assert (each.load("int32"), each.load("int64")) == ("code for int32", "code for int64")


def test_keys_with_equal_text_never_get_each_others_code(files: CompiledCodeCache) -> None:
    files.save(SameText("one"), "code")
    assert files.load(SameText("one")) == "code"
    assert files.load(SameText("other")) is None


@pytest.mark.parametrize("length", [0, 10, 32, -1])
def test_truncated_code_is_not_run(files: CompiledCodeCache, tmp_path: Path, length: int) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:length])
    assert files.load("int32") is None
    files.save("int32", "code")
    assert files.load("int32") == "code"


def test_changed_bytes_are_not_run(files: CompiledCodeCache, tmp_path: Path) -> None:
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"code", b"cod3"))
    assert files.load("int32") is None


def test_unreadable_code_is_compiled_again(files: CompiledCodeCache, tmp_path: Path) -> None:
    """As after an upgrade of Numba that moved a class."""
    files.save("int32", "code")
    (path,) = tmp_path.iterdir()
    code = b"cnumba.core.gone\nClass\n."
    path.write_bytes(hashlib.sha256(code).digest() + code)
    assert files.load("int32") is None


def test_other_users_may_read_compiled_code(files: CompiledCodeCache, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.save("int32", "code")
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o777 == 0o644


def test_code_of_other_source_is_not_used_and_then_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_source(monkeypatch, "before")
    for base in ("f-1", "f-12", "g-1"):
        CompiledCodeCache(tmp_path, f"{base}.py311", "before").save("int32", "old code")
    (tmp_path / "f-1.py311.1.nbc").write_text("under Numba's own name")
    (tmp_path / "f-1.py311.nbi").write_text("its index")
    set_source(monkeypatch, "now")
    now = CompiledCodeCache(tmp_path, "f-1.py311", "now")
    assert now.load("int32") is None
    now.save("int64", "new code")
    names = sorted(path.name.split(".py311")[0] for path in tmp_path.iterdir())
    assert names == ["f-1", "g-1"]  # a function that moved to another line is still the same
    assert now.load("int64") == "new code"


def test_a_process_whose_source_has_changed_neither_loads_nor_stores(
    files: CompiledCodeCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.save("int32", "code")
    set_source(monkeypatch, "later")
    assert files.load("int32") is None
    files.save("int64", "compiled from unknown source")
    assert len(list(tmp_path.iterdir())) == 1


def test_flush_removes_all_files(files: CompiledCodeCache, tmp_path: Path) -> None:
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


def test_editor_locks_and_folders_are_not_source(
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


def output_of(folder: Path, program: str, *arguments: str, **environment: str) -> str:
    """Output of a new process that can import the module `adding`."""
    (folder / "adding.py").write_text(ADDING)
    done = subprocess.run(
        [sys.executable, "-c", f"import adding, sys; {program}", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    program = "print(*(adding.hits(dtype) for dtype in sys.argv[1:]))"
    assert output_of(tmp_path, program, "int32") == "0"
    assert output_of(tmp_path, program, "int32", "int64") == "1 1"
    assert output_of(tmp_path, program, "int64", "int32") == "1 2"


def test_code_that_cannot_be_stored_still_runs(tmp_path: Path) -> None:
    """The cache folder exists at first and cannot be created again later."""
    program = (
        "import shutil, pathlib; shutil.rmtree('__pycache__', ignore_errors=True); "
        "pathlib.Path('__pycache__').write_text('no folder'); print(adding.hits('int32'))"
    )
    assert output_of(tmp_path, program) == "0"


def test_with_compilation_disabled_it_is_the_function_itself(tmp_path: Path) -> None:
    program = "print(type(adding.total).__name__, adding.total([1, 2]))"
    assert output_of(tmp_path, program, NUMBA_DISABLE_JIT="1") == "function 3"


def test_no_other_module_calls_njit() -> None:
    package = Path(under_test.__file__).parent.parent
    users = [
        path.name
        for path in sorted(package.rglob("*.py"))
        if re.search(r"\bnjit\b", path.read_text())
    ]
    assert users == ["compile_cache.py"]


def test_all_compiled_code_is_in_the_packages_whose_changes_count() -> None:
    package = Path(under_test.__file__).parent.parent
    using = [path for path in package.rglob("*.py") if "@cached_njit" in path.read_text()]
    assert len(using) > 5
    assert {path.relative_to(package).parts[0] for path in using} <= set(SOURCES)
