"""Tests lie where their module lies: tests/<package>/test_<module>[_<aspect>].py."""

from pathlib import Path

from tests.architecture.source_tree import SOURCE, modules

TESTS = Path(__file__).parents[1]

ABOUT_MORE_THAN_ONE_MODULE = {
    "architecture",
    "benchmarks",
    "docs",
    "errata",
    "fixtures",
    "integration",
    "security",
}


def module_of(test: Path) -> str | None:
    """Find the module that a test file is about: the longest name that its name starts with."""
    folder = ".".join(test.relative_to(TESTS).parts[:-1])
    words = test.stem.removeprefix("test_").split("_")
    for length in range(len(words), 0, -1):
        name = f"{folder}.{'_'.join(words[:length])}".removeprefix(".")
        if name in modules():
            return name
    return None


def test_every_test_file_names_a_module_that_is_there() -> None:
    lost = [
        str(path.relative_to(TESTS))
        for path in sorted(TESTS.rglob("test_*.py"))
        if path.relative_to(TESTS).parts[0] not in ABOUT_MORE_THAN_ONE_MODULE
        and module_of(path) is None
    ]
    assert lost == []


def test_every_folder_of_tests_is_about_a_package() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name[0] != "_"}
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert folders - packages == ABOUT_MORE_THAN_ONE_MODULE
