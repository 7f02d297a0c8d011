"""The generated text, as it was when somebody last looked at it: `pytest --snapshot-update` accepts a change."""

from __future__ import annotations

from typing import Any

import pytest

from lithify.targets.c.source import program_source as c_source
from lithify.targets.opencl.devices import DEVICE_ALIGNMENT
from lithify.targets.opencl.source import program_source as opencl_source
from tests.targets.group_programs import CASES
from tests.targets.thread_programs import THREAD_CASES

OPENCL = ("transpose", "tree sum", "stencil", "symbolic", "16 lanes of 50 f32", "8 lanes of 27 f16", "gather 4 of 20",
          "halves", "histogram f32", "tree sum in one launch", "column sums of four in one launch")  # fmt: skip
THREADS = ("row reversals", "lane sums with a tail", "counts f32", "scalars", "symbolic outer product")


@pytest.mark.parametrize("name", OPENCL)
def test_opencl(name: str, snapshot: Any) -> None:
    assert opencl_source(CASES[name]().program, alignment=DEVICE_ALIGNMENT).text == snapshot


@pytest.mark.parametrize("name", THREADS)
def test_c(name: str, snapshot: Any) -> None:
    source = c_source(THREAD_CASES[name]().program)
    assert source.header == snapshot(name="header")
    assert source.text == snapshot(name="text")
