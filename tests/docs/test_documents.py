"""Every `vesper` command in the documents works, run in the order of the document."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(document: Path) -> list[str]:
    """Lines that start with `$ ` inside console blocks."""
    blocks = re.findall(r"```console\n(.*?)```", document.read_text(), flags=re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def with_commands() -> list[Path]:
    return [document for document in DOCUMENTS if commands(document)]


@pytest.mark.parametrize("document", with_commands(), ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_work(document: Path, tmp_path: Path) -> None:
    for command in commands(document):
        program, *arguments = shlex.split(command)
        if program == "make":  # run by the gate itself
            targets = re.findall(
                r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE
            )
            assert set(arguments) <= set(targets), command
            continue
        assert program == "vesper", f"{document}: a command that no test can run: {command}"
        done = subprocess.run(
            [sys.executable, "-m", "vesper", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_link_targets_exist(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document}: {target}"


def test_the_readme_names_the_test_command_of_the_gate() -> None:
    assert "make test" in commands(ROOT / "README.md")
    assert "make test" in (ROOT / ".ci" / "run").read_text()
