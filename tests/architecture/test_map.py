"""The map of the source and the architecture page are complete and name existing files."""

import ast
import re
from pathlib import Path

from tests.architecture.source_tree import SOURCE, modules

ROOT = SOURCE.parents[1]
MAP = (SOURCE / "README.md").read_text()
DIAGRAM = MAP.split("```")[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def packages() -> set[str]:
    return {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")}


def test_the_map_names_every_package_and_sub_package() -> None:
    words = set(re.findall(r"\w+", DIAGRAM))
    names = {package.rpartition("/")[2] for package in packages() - {"."}}
    assert names <= words


def test_the_map_lists_packages_from_top_to_bottom() -> None:
    from tests.architecture.test_layers import ROW_OF

    lines = [line.split("   ")[0].split() for line in DIAGRAM.strip().splitlines()]
    # The command is drawn next to the estimators, and simulators next to the graph they fill.
    rows = [min(ROW_OF[name] for name in line) for line in lines if line[0] != "datasets"]
    assert rows == sorted(rows)


def test_files_named_on_the_pages_exist() -> None:
    for text in (MAP, PAGE):
        for name in re.findall(r"`([\w/]+\.py)`", text):
            base = ROOT if name.startswith("tests/") else SOURCE
            places = [base / name, *SOURCE.rglob(f"**/{name}"), *ROOT.glob(f"tests/*/{name}")]
            assert any(place.is_file() for place in places), name
        for name in re.findall(r"`([\w/]+)/`", text):
            assert (SOURCE / name).is_dir() or (ROOT / name).is_dir(), name
        for name in re.findall(r"`((?:mechanism|privacy|method|session)(?:\.\w+)+)`", text):
            assert name in modules() or name.rpartition(".")[0] in modules(), name


def modules_without_entry(init: Path) -> list[str]:
    """Modules and sub-packages that a package's docstring does not name."""
    text = ast.get_docstring(ast.parse(init.read_text())) or ""
    files = [path for path in init.parent.glob("*.py") if path.name != "__init__.py"]
    folders = [path.parent for path in init.parent.glob("*/__init__.py")]
    named = [path.stem for path in files] + [path.name for path in folders]
    if "<verb>_command" in text:  # one per verb, named like it
        named = [name for name in named if not name.endswith("_command")]
    return [name for name in sorted(named) if not re.search(rf"\b{name}\b", text)]


def test_every_package_says_what_is_in_it() -> None:
    inits = [path for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    missing = {path.parent.name: found for path in inits if (found := modules_without_entry(path))}
    assert missing == {}
