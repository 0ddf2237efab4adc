"""MkDocs hook: rules in the navigation.

`folder/*` stands for all pages of a folder that the navigation does not name, README first. What
ends in `?` may be missing: a page is left out while it does not exist, and so is an empty section.
"""

import posixpath
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Replace rules by pages, after all other hooks have added theirs."""
    config.nav = expanded(config.nav, [file.src_uri for file in files])
    return files


def expanded(nav: Any, pages: list[str]) -> list[Any]:
    """Navigation without rules, for these pages of the site."""
    named = set(names_in(nav))

    def expand(item: Any) -> list[Any]:
        if isinstance(item, str):
            return matches(item, pages, named)
        if isinstance(item, list):
            return [each for part in item for each in expand(part)]
        ((title, value),) = item.items()
        inside = expand(value)
        if not inside:
            return []
        return [{title: inside if isinstance(value, list) or "*" in value else inside[0]}]

    return expand(nav)


def names_in(nav: Any) -> Iterator[str]:
    """Every page that a navigation names."""
    if isinstance(nav, str):
        yield nav.removesuffix("?")
    else:
        for each in nav.values() if isinstance(nav, dict) else nav:
            yield from names_in(each)


def matches(rule: str, pages: list[str], named: set[str]) -> list[str]:
    """Pages that a rule stands for; a plain name stands for itself."""
    plain = rule.removesuffix("?")
    if "*" not in plain:
        return [plain] if plain in pages or plain == rule else []
    folder, pattern = posixpath.split(plain)
    found = [
        page
        for page in pages
        if posixpath.dirname(page) == folder
        and fnmatch(posixpath.basename(page), pattern)
        and page.endswith(".md")
        and page not in named
    ]
    return sorted(found, key=lambda page: (not page.endswith("README.md"), page))
