"""What a second process does not do again: read, derive, translate, compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
SCRIPT = """
import sys
import numpy as np
import lithify as lf
{define}
xs = np.arange(1000, dtype=np.float32)
assert program(xs) == 499500.0
assert program(xs=xs) == 499500.0
print(" ".join(sorted(name for name in sys.modules if name.startswith("lithify."))))
"""
TEXT = 'program = lf.load("total.lift")["total"]'
FUNCTION = "program = lf.program(lambda xs: lf.sum(xs))"
# what only a program's first process needs, by what it is for
READING = ("lithify.lang.parser", "lithify.lang.module")
MAKING = ("lithify.lowering", "lithify.rewrite", "lithify.rules", "lithify.kernel.translate")


def loaded(folder: Path, define: str) -> set[str]:
    """The modules of lithify that a process ends up with."""
    environment = os.environ | {"LITHIFY_CACHE": str(folder / "cache"), "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(define=define)],
        capture_output=True, text=True, check=True, cwd=folder, env=environment,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize(("define", "spared"), [(TEXT, READING + MAKING), (FUNCTION, MAKING)])
def test_a_second_process(tmp_path: Path, define: str, spared: tuple[str, ...]) -> None:
    (tmp_path / "total.lift").write_text("total = λ xs . reduce (+) 0 xs\n", encoding="utf-8")
    first = loaded(tmp_path, define)
    second = loaded(tmp_path, define)
    assert first.issuperset(spared)
    assert not second.intersection(spared)


def test_another_text_is_another_program(tmp_path: Path) -> None:
    path = tmp_path / "total.lift"
    path.write_text("total = λ xs . reduce (+) 0 xs\n", encoding="utf-8")
    loaded(tmp_path, TEXT)
    path.write_text("total = λ xs . reduce max 0 xs\n", encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):  # the assertion of the script: it is the maximum now
        loaded(tmp_path, TEXT)


def test_importing_imports_little() -> None:
    code = "import sys, lithify; print(*sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    heavy = {"numpy", "llvmlite", "rich", "typer", "lark", "pyopencl", "ml_dtypes", "lithify.lang", "lithify.program"}
    assert not heavy.intersection(done.stdout.split())
