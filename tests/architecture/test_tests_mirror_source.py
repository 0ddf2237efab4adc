"""Tests mirror the source: tests/<package>/test_<module>[_<aspect>].py."""

from pathlib import Path

from tests.architecture.source_tree import SOURCE, modules

TESTS = Path(__file__).parents[1]

ABOUT_MORE_THAN_ONE_MODULE = {
    "architecture",
    "benchmarks",
    "chaos",
    "docs",
    "errata",
    "fixtures",
    "integration",
    "security",
}


def module_of(test: Path) -> str | None:
    """Find the module that a test file tests: the longest one that its name starts with."""
    folder = ".".join(test.relative_to(TESTS).parts[:-1])
    words = test.stem.removeprefix("test_").split("_")
    for length in range(len(words), 0, -1):
        name = f"{folder}.{'_'.join(words[:length])}".removeprefix(".")
        if name in modules():
            return name
    return None


def test_every_test_file_is_named_after_a_module() -> None:
    without_module = [
        str(path.relative_to(TESTS))
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.relative_to(TESTS).parts[0] not in ABOUT_MORE_THAN_ONE_MODULE
        and module_of(path) is None
    ]
    assert without_module == []


def test_every_folder_of_tests_is_named_after_a_package() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] != "_"}
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders - packages == ABOUT_MORE_THAN_ONE_MODULE
