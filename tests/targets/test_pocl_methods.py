"""Each way in which PoCL makes work-group functions: its default, and the others that it offers.

A process chooses once, so each runs in a child.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NAMES = ("transpose", "tree sum", "stencil", "gather 8 of 21", "tree sum in one launch",
         "column sums of four in one launch")  # fmt: skip
METHODS = ("loopvec", "workitemrepl", "cbs")  # older versions take their default for a name they do not know

_CHILD = f"""
from lithify.targets.opencl import OpenCLTarget
from tests.targets.group_programs import CASES, close
target = OpenCLTarget("Portable Computing Language")
for name in {NAMES!r}:
    case = CASES[name]()
    close(target.compile(case.program)(*case.arguments), case.expected[0])
    print(name)
"""


@pytest.mark.parametrize("method", METHODS)
def test_work_group_method(pocl_device: Any, method: str, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    # a cache of its own: PoCL's does not tell the methods apart
    changed = {"POCL_WORK_GROUP_METHOD": method, "POCL_CACHE_DIR": str(tmp_path), "LITHIFY_CACHE": str(tmp_path),
               "PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}  # fmt: skip
    done = subprocess.run([sys.executable, "-c", _CHILD], env=os.environ | changed, capture_output=True, text=True,
                          check=False, timeout=300)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(NAMES)
