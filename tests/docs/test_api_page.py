"""The reference in docs/api.md is generated from signatures and docstrings by `make api-page`.

Signatures are read from the source, so they are the same under every version of Python.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import vesper

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
MARK = "<!-- below: made from docstrings by `make api-page` -->\n"

Definition = ast.ClassDef | ast.FunctionDef


def reference() -> str:
    """Generate everything below the mark."""
    names = [name for name in vesper.__all__ if name != "__version__"]
    found = {name: whole_definition_of(getattr(vesper, name)) for name in names}
    summaries = {name: summary_of(node) for name, (_, node) in found.items()}
    summaries["__version__"] = "The version, as text."
    rows = (f"| `{name}` | {summaries[name]} |\n" for name in vesper.__all__)
    parts = (entry(*each) for each in found.values())
    return "\n## Reference\n\n| name | what it is |\n| --- | --- |\n" + "".join([*rows, *parts])


def definition_of(value: object) -> tuple[ast.Module, Definition]:
    """Find the definition of a class or function, and its module."""
    assert inspect.isclass(value) or inspect.isfunction(value)
    file = inspect.getsourcefile(value)
    assert file is not None
    tree = ast.parse(Path(file).read_text())
    return tree, named(tree, value.__name__)


def whole_definition_of(value: object) -> tuple[ast.Module, Definition]:
    """Find the same, with what a class inherits from `Estimator` copied into its body."""
    tree, node = definition_of(value)
    if inspect.isclass(value) and isinstance(node, ast.ClassDef):
        for above in value.__mro__[1:]:
            if above.__name__ == "Estimator":
                _, common = definition_of(above)
                names = [getattr(each, "name", "") for each in common.body]
                after = names.index("fit") + 1
                first, rest = common.body[1:after], common.body[after:]  # without its docstring
                node.body = [node.body[0], *first, *node.body[1:], *rest]
    return tree, node


def named(tree: ast.Module, name: str) -> Definition:
    return next(
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name
    )


def entry(tree: ast.Module, node: Definition) -> str:
    """Entry of a public name: signature, docstring and members."""
    if isinstance(node, ast.FunctionDef):
        return f"\n### `{node.name}`\n\n{code(call(node))}\n{prose(node)}"
    methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
    made = methods.get("__init__")
    head = code(call(made, name=node.name)) + "\n" if made else ""
    public = (each for name, each in methods.items() if not name.startswith("_"))
    text = prose(node)
    own = [line for name, line in fields(tree, node) if f"- `{name}`:" not in text]
    listed = ["\nFields:\n\n", *own] if own else []
    return "".join([f"\n### `{node.name}`\n\n{head}{text}", *listed, *map(member, public)])


def member(node: ast.FunctionDef) -> str:
    """A method or a property."""
    kinds = {ast.unparse(decorator) for decorator in node.decorator_list}
    if "property" in kinds:
        return f"\n**`.{node.name}`** {summary_of(node)}\n"
    return f"\n{code('.' + call(node))}\n{prose(node)}"


def call(node: ast.FunctionDef, *, name: str = "") -> str:
    """Signature, over several lines if it is long."""
    own = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(own, ast.FunctionDef)
    own.args.args = [each for each in own.args.args if each.arg not in ("self", "cls")]
    for each in ast.walk(own.args):
        if isinstance(each, ast.arg):
            each.annotation = unquoted(each.annotation)
    own.returns = unquoted(own.returns)
    inside, result = ast.unparse(own.args), "" if own.returns is None else ast.unparse(own.returns)
    end = ")" if result in ("", "None") else f") -> {result}"
    line = f"{name or node.name}({inside}{end}"
    if len(line) <= 95:
        return line
    parts = re.split(r", (?![^\[\(]*[\]\)])", inside)
    return f"{name or node.name}(\n" + "".join(f"    {part},\n" for part in parts) + end


def unquoted(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation without the quotes that it has where its name is imported for types only."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return ast.parse(annotation.value, mode="eval").body
    return annotation


def fields(tree: ast.Module, node: ast.ClassDef, *, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield fields with the lines that explain them; a table of settings yields its own fields."""
    tables = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    for line, after in zip(node.body, [*node.body[1:], None], strict=True):
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
            continue
        name, kind = f"{within}{line.target.id}", ast.unparse(line.annotation)
        if kind in tables and node.name == "Config":
            yield from fields(tree, tables[kind], within=f"{name}.")
            continue
        words = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            words = ": " + " ".join(str(after.value.value).split())
        yield name, f"- `{name}: {kind}`{words}\n"


def prose(node: Definition) -> str:
    """Docstring as Markdown; sections in Google style become lists."""
    text = ast.get_docstring(node) or ""
    example = re.search(r"\n(?:Example:\n(?:    .*\n?|\n)+|>>> (?:.|\n)+)", text + "\n")
    shown = text if example is None else (text + "\n").replace(example[0], "\n")
    blocks = re.split(r"\n\n+", shown.strip())
    parts = [section(block) for block in blocks]
    if example is not None:
        lines = textwrap.dedent(example[0].strip().removeprefix("Example:\n"))
        parts.append(code(lines.strip()))
    return "\n".join(parts)


def section(block: str) -> str:
    """Format a paragraph, or a section such as `Args:` with its items."""
    title, _, rest = block.partition(":\n")
    if title not in ("Args", "Raises", "Attributes", "Returns"):
        return f"{block}\n"
    items = re.split(r"\n(?=\S)", textwrap.dedent(rest))
    bullets = (" ".join(item.split()) for item in items)
    shown = (re.sub(r"^(\w+):", r"- `\1`:", bullet) + "\n" for bullet in bullets)
    return "".join([f"{title}:\n\n", *shown])


def code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def summary_of(node: Definition) -> str:
    """The first sentence of the docstring."""
    text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    assert text, f"{node.name} has no docstring"
    return text


def with_reference(page: str) -> str:
    """The page with an up-to-date reference."""
    return page.partition(MARK)[0] + MARK + reference()


def test_the_reference_is_generated_from_the_docstrings() -> None:
    page = PAGE.read_text()
    assert MARK in page
    assert page == with_reference(page), "docs/api.md is out of date; run `make api-page`"


@pytest.mark.parametrize(
    "words",
    [
        "### `Vesper`",
        "- `epsilon`: privacy budget of the graph; inf for no privacy.",
        ".predict_proba(ids: Any) -> NDArray[np.float64]",
        "**`.num_edges`**",
        "- `InputError`: some input cannot be used; the message says what to do.",
    ],
)
def test_the_reference_contains_docstrings(words: str) -> None:
    assert words in reference()


def test_a_changed_signature_changes_the_entry() -> None:
    tree = ast.parse('def f(*, epsilon: float = 1.0) -> int:\n    """Give one."""\n')
    first = entry(tree, named(tree, "f"))
    assert "f(*, epsilon: float=1.0) -> int" in first
    other = ast.parse('def f() -> int:\n    """Give one."""\n')
    assert entry(other, named(other, "f")) != first


if __name__ == "__main__":
    PAGE.write_text(with_reference(PAGE.read_text()))
    sys.exit(0)
