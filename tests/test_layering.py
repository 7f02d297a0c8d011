"""The import order of the source tree: a folder of `lithify` imports only from the folders above it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "lithify"

# Lowest first. `version` is a module that everything may read. `kernel` stands below `lowering` because a strategy
# may translate a program in the plainest way to see how its loops walk through memory.
LAYERS = (
    "version", "arith", "lang", "views", "machine", "evaluate", "rewrite", "rules", "operators", "kernel",
    "lowering", "targets", "explore", "program", "report", "cli",
    "__main__",
)  # fmt: skip
# `lithify/__init__` re-exports what `program` offers, so only what stands above `program` may import it.
PACKAGE = "program"


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Every absolute dotted name that `tree` imports, at any depth, with its line.

    `from a.b import c` gives a.b.c: c may be a module. Relative imports are resolved against `package`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            argument = node.args[0]
            if name in ("import_module", "__import__") and isinstance(argument, ast.Constant):
                yield node.lineno, str(argument.value)


def violations(source: str, folder: str, package: str) -> list[str]:
    """The imports in `source`, a module of `folder`, that reach a folder which is not above it."""
    found = []
    for line, name in imported_modules(ast.parse(source), package):
        parts = name.split(".")
        if parts[0] != "lithify":
            continue
        known = len(parts) > 1 and parts[1] in LAYERS
        target = parts[1] if known else PACKAGE
        same_folder = known and target == folder
        if not same_folder and LAYERS.index(target) >= LAYERS.index(folder):
            found.append(f"line {line}: {folder} imports {name}, which is not above it")
    return found


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def test_every_folder_has_its_place() -> None:
    folders = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in modules()}
    assert folders <= set(LAYERS), f"give these a place in LAYERS: {sorted(folders - set(LAYERS))}"


def test_no_import_goes_down() -> None:
    found = []
    for path in modules():
        place = path.relative_to(SOURCE)
        parts = place.with_suffix("").parts
        package = ".".join(("lithify", *parts[:-1]))
        found += [f"{place} {each}" for each in violations(path.read_text(), parts[0], package)]
    assert not found, "\n".join(found)


def test_the_package_itself_imports_the_offered_folders_only() -> None:
    """`import lithify` must not pull in the command line or the report pages."""
    names = {name for _, name in imported_modules(ast.parse((SOURCE / "__init__.py").read_text()), "lithify")}
    assert not [name for name in names if name.startswith(("lithify.cli", "lithify.report"))]


@pytest.mark.parametrize(
    ("folder", "package", "source", "count"),
    [
        ("lang", "lithify.lang", "from lithify.arith import size", 0),
        ("lang", "lithify.lang", "from . import terms\nfrom .terms import Term", 0),
        ("lang", "lithify.lang", "import lithify.lang.terms", 0),
        ("lang", "lithify.lang", "import lithify.rules", 1),
        ("lang", "lithify.lang", "from ..rules import fusion", 1),
        ("lang", "lithify.lang.sub", "from ... import rules", 1),
        ("lang", "lithify.lang", "def f():\n    from lithify.views import embed", 1),
        ("lang", "lithify.lang", "import importlib\nimportlib.import_module('lithify.cli')", 1),
        ("lang", "lithify.lang", "import lithify", 1),
        ("lang", "lithify.lang", "from lithify import program", 1),
        ("cli", "lithify.cli", "import lithify", 0),
        ("targets", "lithify.targets", "from lithify.version import __version__\nimport numpy", 0),
    ],
)
def test_the_check_itself(folder: str, package: str, source: str, count: int) -> None:
    assert len(violations(source, folder, package)) == count
