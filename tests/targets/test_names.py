"""Programs and parameters may be called what C or OpenCL C call something of their own."""

from __future__ import annotations

import numpy as np
import pytest

import lithify as lf

TAKEN = ("normalize", "mix", "round", "fdim", "printf", "lgamma", "isnan", "NULL", "M_PI", "SIZE_MAX", "INT_MAX",
         "int32_t", "float4", "as_float", "vload4", "atomic_add", "uint")  # fmt: skip
XS = np.arange(4, dtype=np.float32)


def programs() -> tuple[lf.Module, int]:
    """A program of every name that the language itself has not taken, and one whose parameter has it."""
    lines = []
    for name in TAKEN:
        for line in (f"{name} (arr : n.f32) = map (λ x . x + 1) arr", f"p_{name} ({name} : n.f32) = map exp {name}"):
            try:
                lf.parse(line)
            except lf.ParseError:  # a name of the language
                continue
            lines.append(line)
    return lf.parse("\n".join(lines)), len(lines)


def check(device: str) -> None:
    module, count = programs()
    assert count > len(TAKEN)
    for name, program in module.items():
        expected = np.exp(XS) if name.startswith("p_") else XS + 1
        np.testing.assert_allclose(program.on(device)(XS), expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["cpu", "c"])
def test_names(name: str) -> None:
    if not any(status.name == name and status.available for status in lf.devices()):
        pytest.skip(f"there is no device {name}")
    check(name)


@pytest.mark.opencl
def test_names_on_opencl(opencl_device: object) -> None:
    check("opencl:0")
