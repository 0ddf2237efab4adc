"""Public names are exactly those documented, sorted, and quick to import."""

import re
import subprocess
import sys
from pathlib import Path

import vesper

DOCUMENTED = Path(__file__).parents[2] / "docs" / "api.md"


def test_public_names_are_exactly_those_documented() -> None:
    documented = re.findall(r"^\| `([A-Za-z_]+)` \|", DOCUMENTED.read_text(), flags=re.MULTILINE)
    assert documented == vesper.__all__
    assert vesper.__all__ == sorted(vesper.__all__)
    assert dir(vesper) == vesper.__all__


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in vesper.__all__:
        value = getattr(vesper, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name


def test_unknown_names_are_refused() -> None:
    assert not hasattr(vesper, "Vespre")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"torch", "numba", "pyarrow", "duckdb", "grpc", "scipy", "pydantic"}
    assert not heavy & loaded_by("import vesper")
    assert not heavy & loaded_by("import vesper.cli.app")


def test_privacy_needs_neither_torch_nor_numba() -> None:
    import vesper.privacy

    folder = Path(vesper.privacy.__file__).parent
    modules = [
        "vesper." + ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        for path in folder.rglob("[a-z]*.py")
    ]
    assert not {"torch", "numba", "scipy"} & loaded_by(f"import {', '.join(modules)}")
