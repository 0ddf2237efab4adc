"""The navigation of the documentation site lists every page, and only files that exist.

Reads `mkdocs.yml` as text, needs no MkDocs and builds nothing; `make docs` does that.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "_site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS, NAVIGATION = hook("hooks"), hook("navigation")


def rules() -> list[str]:
    """Entries of the navigation: pages, optional pages and folders."""
    text = (ROOT / "mkdocs.yml").read_text()
    block = re.search(r"^nav:\n((?: .*\n)+)", text, flags=re.MULTILINE)
    assert block
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+[.*]\S*)$", block[1], flags=re.MULTILINE)


def pages() -> list[str]:
    """Pages of the site by their path there, without source files that pages link to."""
    docs = ROOT / "docs"
    inside = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    outside = [
        f"{folder}/{path.name}"
        for pattern, folder in HOOKS.OUTSIDE.items()
        for path in sorted(ROOT.glob(pattern))
        if path.suffix == ".md"
    ]
    made = [f"reference/{name}.md" for name in HOOKS.public_names()]
    return [page for page in inside if page != "README.md"] + outside + made


def reached_by(rule: str) -> list[str]:
    named = set(NAVIGATION.names_in(rules()))
    return [page for page in NAVIGATION.matches(rule, pages(), named) if page in pages()]


def test_every_page_is_in_the_navigation_once() -> None:
    reached = [page for rule in rules() for page in reached_by(rule)]
    assert sorted(reached) == sorted(pages()), "mkdocs.yml: expected every page in `nav`, once"


@pytest.mark.parametrize("rule", rules())
def test_every_entry_of_the_navigation_exists(rule: str) -> None:
    assert reached_by(rule) or rule.endswith("?"), "mkdocs.yml: expected a page of docs/"


def test_a_folder_omits_pages_listed_elsewhere_and_starts_with_its_readme() -> None:
    found = ["a/2.md", "a/1.md", "a/README.md", "a/b/3.md", "a/4.svg"]
    assert NAVIGATION.expanded([{"A": ["a/1.md", "a/*"]}], found) == [
        {"A": ["a/1.md", "a/README.md", "a/2.md"]}
    ]


def test_missing_optional_pages_are_omitted() -> None:
    nav = [{"A": [{"B": "b.md?"}, {"C": "c/*?"}]}, {"D": "d.md?"}]
    assert NAVIGATION.expanded(nav, ["d.md"]) == [{"D": "d.md"}]


def test_links_are_changed_outside_code_only() -> None:
    text = "[a](b.md)\n```\n[a](b.md)\n```\n[a](https://b.md) [a](#b)"
    changed = HOOKS.outside_code(text, lambda line: HOOKS.LINK.sub("](x", line))
    assert changed == "[a](x)\n```\n[a](b.md)\n```\n[a](https://b.md) [a](#b)"


def test_a_list_directly_after_text_gets_a_blank_line() -> None:
    assert HOOKS.outside_code("text\n- a\n- b\n  c\n- d", str) == "text\n\n- a\n- b\n  c\n- d"


def test_a_nested_list_is_indented_by_four_spaces() -> None:
    assert HOOKS.outside_code("1. a\n   - b\n     c", str) == "1. a\n    - b\n     c"


def test_public_names_are_read_from_the_source() -> None:
    assert {"Vesper", "Graph", "simulate"} <= set(HOOKS.public_names())
