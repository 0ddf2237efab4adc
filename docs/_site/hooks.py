"""MkDocs hooks: bring in pages from outside docs/ and rewrite links to them.

The same Markdown is read on a code hosting site, where links are relative to the repository. Here
every page outside docs/ gets a place of its own, each file that some page links to gets a page with
its source, and links are rewritten. A link to nothing is left alone, and fails the strict build.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import File, Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {  # pattern of files, and the folder of the site that shows them
    "*.md": "project",
    "benchmarks/*.md": "benchmarks",
    "benchmarks/*.svg": "benchmarks",
    "examples/*.md": "examples",
    "docs/README.md": "documents",  # the first page of the site is index.md
}
LINK = re.compile(r'(\]\(|\]: +|\b(?:href|src|srcset)=")([^)"\s#:]+)(#[^)"\s]*)?(?=[)"\s]|$)', re.M)

shown: dict[str, "File"] = {}
"""Every file of the site, by its path in the repository."""
origins: dict[str, str] = {}
"""The path in the repository of every file of the site, by its path in the site."""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add pages from outside docs/, sources that pages link to, and the API reference."""
    from mkdocs.structure.files import File

    def add(path: str, file: File) -> None:
        shown[path], origins[file.src_uri] = file, path
        if file.src_uri not in files:
            files.append(file)

    shown.clear()
    origins.clear()
    for file in files:
        if file.inclusion.is_included():  # type: ignore[no-untyped-call]
            add(f"docs/{file.src_uri}", file)
    for pattern, folder in OUTSIDE.items():
        for path in sorted(ROOT.glob(pattern)):
            place = f"{folder}/{path.name}"
            file = File.generated(config, place, abs_src_path=str(path))
            add(path.relative_to(ROOT).as_posix(), file)
    pages = list(shown)
    while pages:
        pages = sorted(set(linked_files(pages)))
        for target in pages:
            add(target, File.generated(config, f"source/{target}.md", content=source_page(target)))
    for name in public_names():
        content = f"---\ntitle: {name}\n---\n\n::: vesper.{name}\n"
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: "Page", **_: Any) -> str:
    """Rewrite links so that they lead to where the site shows their targets."""
    if page.file.src_uri not in origins:
        return markdown
    here, folder = origins[page.file.src_uri], posixpath.dirname(page.file.src_uri)

    def rewrite(match: re.Match[str]) -> str:
        start, target, anchor = match[1], resolved(here, match[2]), match[3] or ""
        file = shown.get(target) or shown.get(resolved(f"{target}/", "README.md"))
        if file is None:
            return match[0]
        if file.src_uri.startswith("source/"):
            anchor = ""  # a line number on the hosting site
        if start.endswith('"'):  # MkDocs leaves HTML as it is
            return start + file.url_relative_to(page.file) + anchor
        return start + posixpath.relpath(file.src_uri, folder) + anchor

    return outside_code(markdown, lambda line: LINK.sub(rewrite, line))


def on_page_content(html: str, **_: Any) -> str:
    """For small screens: long names in tables break, numbers do not, figures open on their own."""
    html = html.replace("± ", "±&nbsp;")
    code = re.compile(r"(?<=<td><code>)[^<]{20,}(?=</code>)")
    html = code.sub(lambda name: re.sub(r"[./_](?=\w)", r"\g<0><wbr>", name[0]), html)
    image = re.compile(r'<p>(<img [^>]*src="([^"]+\.svg)"[^>]*>)</p>')
    return image.sub(r'<p><a href="\2">\1</a></p>', html)


def resolved(here: str, target: str) -> str:
    """Path in the repository of a link on the page at `here`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(here), target))


def linked_files(pages: Iterable[str]) -> Iterator[str]:
    """Files, and folders without a README, that pages link to and that have no page yet."""
    for here in pages:
        if here.endswith(".md"):
            for match in LINK.finditer((ROOT / here).read_text(encoding="utf-8")):
                target = resolved(here, match[2])
                has_page = target in shown or resolved(f"{target}/", "README.md") in shown
                if not has_page and (ROOT / target).exists() and not target.startswith(".."):
                    yield target


def source_page(path: str) -> str:
    """Show a file as it is in the repository, or the names in a folder."""
    name, suffix = posixpath.basename(path), posixpath.splitext(path)[1]
    if (ROOT / path).is_dir():
        inside = sorted(each.name for each in (ROOT / path).glob("[!_.]*"))
        links = (f"[{each}]({name}/{each})" if each.endswith(".md") else each for each in inside)
        init = f"{path}/__init__.py"
        text = source_page(init).partition("\n")[2] if (ROOT / init).exists() else ""
        return f"# {path}\n{text}\n" + "".join(f"- {each}\n" for each in links)
    text = (ROOT / path).read_text(encoding="utf-8")
    return text if suffix == ".md" else f"# {name}\n\n````{suffix[1:]}\n{text}\n````\n"


def public_names() -> list[str]:
    """Names in `vesper.__all__`, read without importing the package."""
    tree = ast.parse((ROOT / "src/vesper/__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [name for name in ast.literal_eval(node.value) if not name.startswith("_")]
    raise LookupError("src/vesper/__init__.py: expected __all__")


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Change every line that is not in a fenced block, and indent lists as Python-Markdown asks."""
    fence, lines = "", [""]
    item, text = re.compile(r"([-*+]|1\.) "), re.compile(r"(?![-*+] |\d+\. |[\s>|])")
    for line in markdown.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence and item.match(line) and lines[-1] and text.match(lines[-1]):
            lines.append("")
        nested = re.sub(r"^ {2,3}(?=[-*+] |\d+\. )", "    ", line)
        lines.append(line if fence or mark else change(nested))
    return "\n".join(lines[1:])
